"""The three pictures of SERM's Figure 3: costs chosen, costs unknown, moves on a surface.

Each is a small made-up table on which one assumption about costs is dropped, a
rule that clings to it fails, and the rule that does not is compared with one that
knows the truth.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import pandas as pd
import torch

from countermove._types import Floats
from countermove.errors import UnknownNameError, nearest
from countermove.experiments._drawing import GREY, OCHRE, OTHER, PUBLISHED, RIGHT, VIOLET
from countermove.experiments.protocol import Experiment, Measured, Row, Sources, averages
from countermove.experiments.serm.manifold import (
    ContractiveAutoencoder,
    CurveResponse,
    ParabolaTangents,
    TangentResponse,
    on_parabola,
    parabola,
)
from countermove.learning import StrategicClassifier
from countermove.learning.chosen_costs import FlexibleCost, UnknownCost
from countermove.people import MixtureCost, QuadraticCost, WeightedQuadraticCost
from countermove.people.cost_boxes import CostBox
from countermove.randomness import generator, torch_generator
from countermove.response import Response, named_response
from countermove.scores import LinearScore

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

Rows = tuple[Floats, Floats]
Run = tuple[list[Row], Row]

AS_PUBLISHED: Row = {
    "learning_rate": 0.1,
    "batch_size": 16,
    "max_epochs": 6,
    "patience": 4,
    "start": "random",
    "calibrate": False,
    "stop_by": "merit",
}
"""As in the experiments: few epochs, random start, the first epoch of the best accuracy."""
COLOURS = {"naive": OCHRE, "oracle": VIOLET, "serm": RIGHT, "blind": GREY}
CALLED = {
    "naive": "naive",
    "oracle": "knows the truth",
    "serm": "strategic",
    "blind": "blind",
}
PEOPLE = {1.0: ("favourable", OTHER), -1.0: ("unfavourable", PUBLISHED)}
"""How both kinds of people are called and drawn."""
AS_TRAINED: Row = {
    "loss": "hinge",
    "optimiser": "adam",
    "selection": "none",
    "standardise": False,
}
"""By the paper, in every protocol."""
OURS: Row = {"start": "blind", "calibrate": True}
"""For the same people: from the blind rule, until validation is content, intercept settled."""


@dataclass(frozen=True)
class Stylised(Experiment[Sources]):
    """One of the pictures over several draws of tables and starts; the first draw is shown."""

    what: ClassVar[str] = "repetitions"

    picture: str = "flexible"
    repetitions: int = 5
    rows: int | None = None

    def __post_init__(self) -> None:
        if self.picture not in EXPERIMENTS:
            hint = nearest(self.picture, EXPERIMENTS)
            raise UnknownNameError(f"no experiment is called {self.picture!r}: {hint}")

    def places(self, given: Sources) -> range:
        """Return the repetitions."""
        return range(self.repetitions)

    def measured_at(self, place: int, seed: int, given: Sources) -> Run:
        """Return one row per people and rule, and what the picture shows."""
        cells, picture = EXPERIMENTS[self.picture](self.rows, seed + place)
        named = {"experiment": self.picture}
        return [named | {"repetition": place} | row for row in cells], named | picture

    def beside(self, parts: Sequence[Row]) -> Row:
        """Return the first picture."""
        return parts[0]

    def means(self, cells: pd.DataFrame) -> pd.DataFrame:
        """Return the averages over repetitions."""
        return averages(cells, ["people", "rule"], ["experiment", "repetition"])

    def draw(self, found: Measured, means: pd.DataFrame) -> Figure:
        """Draw people, the rules learned, and what the experiment is about."""
        from plotly.graph_objects import Figure, Scatter

        X, y = np.array(found.beside["X"]), np.array(found.beside["y"])
        figure = Figure()
        for label, (name, colour) in PEOPLE.items():
            of_label = X[y == label]
            dots = {"color": colour, "size": 6, "opacity": 0.7}
            figure.add_trace(
                Scatter(x=of_label[:, 0], y=of_label[:, 1], mode="markers", name=name, marker=dots)
            )
        span = X.min(axis=0), X.max(axis=0)
        for rule, line in found.beside["rules"].items():
            ends = _boundary(np.array(line["weight"]), line["bias"], *span)
            look = {"color": COLOURS[rule], "width": 3}
            figure.add_trace(
                Scatter(x=ends[:, 0], y=ends[:, 1], mode="lines", name=CALLED[rule], line=look)
            )
        {"flexible": _directions, "unknown": _rings, "manifold": _tangents}[self.picture](
            figure, found.beside
        )
        low, high = span
        margin = 0.25 * (high - low)
        figure.update_xaxes(range=[low[0] - margin[0], high[0] + margin[0]], title="x1")
        figure.update_yaxes(range=[low[1] - margin[1], high[1] + margin[1]], title="x2")
        return figure


@dataclass(frozen=True)
class Fifths:
    """The first fifth to test on, the next to stop by, the rest to train on, as published."""

    X: Floats
    y: Floats

    def __getitem__(self, part: str) -> Rows:
        fifth = len(self.y) // 5
        rows = {
            "test": slice(0, fifth),
            "validation": slice(fifth, 2 * fifth),
            "train": slice(2 * fifth, None),
        }[part]
        return self.X[rows], self.y[rows]


def two_clouds(
    n: int, distance: float, spread: tuple[float, float], seed: int
) -> tuple[Floats, Floats]:
    """Return n people around (±``distance``, 0), half of either class, favourable on the right."""
    rng = generator(seed, "two clouds")
    y = np.where(np.arange(n) < n // 2, 1.0, -1.0)
    X = np.column_stack([distance * y, np.zeros(n)]) + rng.normal(size=(n, 2)) * np.array(spread)
    order = rng.permutation(n)
    return X[order], y[order]


def flexible(rows: int | None, seed: int) -> Run:
    """Learn rule and cost together; the first cost hides what distinguishes people."""
    parts = Fifths(*two_clouds(rows or 300, 0.5, (0.1, 1.0), seed))
    first = MixtureCost([0.5, 0.5], gamma=0.05, scale=0.5)
    truth = MixtureCost([1.0, 0.0], gamma=0.05, scale=0.5)
    box = CostBox.around(first, "direction", 2.0)
    costs = {
        "naive": first,
        "oracle": truth,
        "serm": FlexibleCost(box, strength=1e-3, penalty="published"),
    }
    cells, picture = [], _people(parts)
    for people, training, settings in _protocols(seed):
        cells += [] if training else [_benchmark(parts, people, seed)]
        for rule, cost in costs.items():
            model, seconds = _fit(parts, seed, cost=cost, **settings)
            chosen = _direction(model)
            accuracy = model.score_after_response(*parts["test"])
            learned = {"v1": chosen[0], "v2": chosen[1], "seconds": seconds}
            cells.append(
                {"people": people, "rule": rule + training, "accuracy": accuracy} | learned
            )
            if settings.get("start") == "random":
                picture["rules"][rule] = _line(model) | {"direction": chosen}
    return cells, picture


def unknown(rows: int | None, seed: int) -> Run:
    """Learn for the worst cost of a box around a wrong estimate."""
    # ``worst`` is the accuracy at the worst of the truth and both ends of the box.
    parts = Fifths(*two_clouds(rows or 300, 0.6, (0.1, 0.1), seed))
    guess, truth = WeightedQuadraticCost([1.0, 1.0]), WeightedQuadraticCost([0.25, 0.25])
    box = CostBox.around(guess, "weights", 0.85)
    costs = {"naive": guess, "oracle": truth, "serm": UnknownCost(box=box)}
    cells, picture = [], _people(parts)
    for people, training, settings in _protocols(seed):
        cells += [] if training else [_benchmark(parts, people, seed)]
        people_of = [
            named_response(people, cost, None, settings.get("eval_temperature") or 0.5)
            for cost in (truth, *box.ends())
        ]
        for rule, cost in costs.items():
            model, seconds = _fit(parts, seed, cost=cost, **settings)
            judged = {"people": people, "rule": rule + training, "seconds": seconds}
            at_truth, *at_ends = (
                model.score_after_response(*parts["test"], response=each) for each in people_of
            )
            cells.append(judged | {"accuracy": at_truth, "worst": min(at_truth, *at_ends)})
            if settings.get("start") == "random":
                picture["rules"][rule] = _line(model)
    weights = {"estimate": 1.0, "truth": 0.25, "cheapest": 0.15, "dearest": 1.85}
    picture["reaches"] = {name: (2.0 / weight) ** 0.5 for name, weight in weights.items()}
    return cells, picture


def manifold(rows: int | None, seed: int) -> Run:
    """Learn for people who stay on a surface that has to be learned too."""
    parts, cost = Fifths(*on_parabola(rows or 2000, seed)), QuadraticCost(1.0 / 70.0)
    started = time.process_time()
    surface = ContractiveAutoencoder(seed=seed).fit(parts["train"][0])
    learned = time.process_time() - started
    on_tangents = TangentResponse(surface, cost)
    curve = parabola(np.linspace(-8.0, 8.0, 3201))
    judges: dict[str, Response] = {
        "learned tangents": on_tangents,
        "true tangents": TangentResponse(ParabolaTangents(), cost),
        "true curve, climbing": CurveResponse(curve, cost, climbing=True),
        "true curve, rational": CurveResponse(curve, cost),
    }
    free = named_response("published", cost, None, 1.0)
    published = AS_PUBLISHED | {"learning_rate": 0.5, "batch_size": 64}
    rules: list[tuple[str, Any, Row]] = [
        ("blind", "none", published),
        ("naive", free, published),
        ("serm", on_tangents, published),
        ("serm, settled", on_tangents, {}),
    ]
    cells, picture = [_benchmark(parts, "nobody", seed)], _people(parts)
    for rule, response, settings in rules:
        model, seconds = _fit(parts, seed, response=response, **settings)
        took = seconds + (learned if response is on_tangents else 0.0)
        for people, judge in judges.items():
            accuracy = model.score_after_response(*parts["test"], response=judge)
            cells.append({"people": people, "rule": rule, "accuracy": accuracy, "seconds": took})
        if settings:
            picture["rules"][rule] = _line(model)
        if rule == "serm":
            picture |= _moves(parts, model, surface, on_tangents)
    return cells, picture


EXPERIMENTS: Mapping[str, Callable[[int | None, int], Run]] = {
    "flexible": flexible,
    "unknown": unknown,
    "manifold": manifold,
}


def _protocols(seed: int) -> Iterator[tuple[str, str, Row]]:
    """Yield people, what to call their training, and how: published, then ours."""
    people = {"response": "published", "temperature": 1.0, "eval_temperature": 0.2}
    yield "published", "", people | AS_PUBLISHED | {"score": _published_start(seed)}
    yield "published", ", settled", people | OURS
    yield "smooth", "", {"response": "smooth"}
    yield "best", "", {"response": "best"}


def _published_start(seed: int) -> LinearScore:
    """Return the start of these experiments: weights around zero, an intercept from U(0, 1)."""
    draw = torch_generator(seed, "start")
    score = LinearScore(2, draw)
    with torch.no_grad():
        score.bias.uniform_(0.0, 1.0, generator=draw)
    return score


def _fit(parts: Fifths, seed: int, **settings: Any) -> tuple[StrategicClassifier, float]:
    started = time.process_time()
    model = StrategicClassifier(random_state=seed, **(AS_TRAINED | settings))
    model.fit(*parts["train"], validation=parts["validation"])
    return model, time.process_time() - started


def _benchmark(parts: Fifths, people: str, seed: int) -> Row:
    """Return the accuracy of blind training where nobody moves."""
    model, seconds = _fit(parts, seed, response="none")
    accuracy = model.score(*parts["test"])
    return {"people": people, "rule": "benchmark", "accuracy": accuracy, "seconds": seconds}


def _direction(model: StrategicClassifier) -> list[float]:
    assert isinstance(model.cost_, MixtureCost)
    direction: list[float] = model.cost_.direction.tolist()
    return direction


def _people(parts: Fifths) -> Row:
    X, y = parts["test"]
    return {"X": X.tolist(), "y": y.tolist(), "rules": {}}


def _line(model: StrategicClassifier) -> Row:
    return {"weight": model.coef_[0].tolist(), "bias": float(model.intercept_[0])}


def _moves(parts: Fifths, model: StrategicClassifier, surface: Any, response: Response) -> Row:
    """Return where some people of the picture go, and the tangents they go along."""
    shown = parabola(np.sort(parts["test"][0][:40, 0]))
    moved = response.respond(model.score_, shown)
    return {
        "from": shown.tolist(),
        "to": moved.x_new.tolist(),
        "tangents": surface.tangents(shown)[:, :, 0].tolist(),
    }


def _boundary(weight: Any, bias: float, low: Any, high: Any) -> Any:
    """Return two far points of the line on which the score is zero."""
    length = float(np.linalg.norm(weight))
    if length == 0.0:
        return np.empty((0, 2))
    foot = -bias * weight / length**2
    along = np.array([-weight[1], weight[0]]) / length
    # Slide the foot to where the picture is, then reach well beyond its edges.
    middle = foot + along * float(along @ (0.5 * (low + high) - foot))
    far = 4.0 * float(np.linalg.norm(high - low))
    return np.stack([middle - far * along, middle + far * along])


def _arrow(figure: Figure, start: Any, end: Any, colour: str, text: str = "") -> None:
    figure.add_annotation(
        x=end[0], y=end[1], ax=start[0], ay=start[1], xref="x", yref="y", axref="x", ayref="y",
        showarrow=True, arrowhead=3, arrowwidth=2, arrowcolor=colour,
    )  # fmt: skip
    if text:
        figure.add_annotation(x=end[0], y=end[1], text=text, showarrow=False, yshift=14)


def _directions(figure: Figure, picture: Row) -> None:
    """Draw the directions in which a move is charged: given, best and learned."""
    names = {"naive": "v₀", "oracle": "v*", "serm": "v̂"}
    for rule, name in names.items():
        direction = np.array(picture["rules"][rule]["direction"])
        end = 0.7 * direction / np.linalg.norm(direction)
        _arrow(figure, (0.0, 0.0), end, COLOURS[rule], name)


def _rings(figure: Figure, picture: Row) -> None:
    """Draw how far people may go at the estimate, in truth, and at the ends of the box."""
    from plotly.graph_objects import Scatter

    centre = np.array([-0.6, 0.0])
    angles = np.linspace(0.0, 2.0 * np.pi, 181)
    looks = {
        "estimate": ("estimate", COLOURS["naive"], "solid"),
        "truth": ("truth", COLOURS["oracle"], "solid"),
        "cheapest": ("cheapest", COLOURS["serm"], "dot"),
        "dearest": ("most expensive", COLOURS["serm"], "dot"),
    }
    for name, (label, colour, dash) in looks.items():
        reach = picture["reaches"][name]
        x, y = centre[0] + reach * np.cos(angles), centre[1] + reach * np.sin(angles)
        figure.add_trace(
            Scatter(
                x=x, y=y, mode="lines", name=f"reach, {label}", line={"color": colour, "dash": dash}
            )
        )


def _tangents(figure: Figure, picture: Row) -> None:
    """Draw learned tangents, and where people go along them."""
    from plotly.graph_objects import Scatter

    at, to = np.array(picture["from"]), np.array(picture["to"])
    along = np.array(picture["tangents"])
    x, y = [], []
    for point, direction in zip(at, along, strict=True):
        ends = point + np.array([[-1.0], [1.0]]) * direction
        x += [*ends[:, 0].tolist(), None]
        y += [*ends[:, 1].tolist(), None]
    grey = {"color": "#4a5568", "width": 1}
    figure.add_trace(Scatter(x=x, y=y, mode="lines", name="learned tangents", line=grey))
    for start, end in zip(at, to, strict=True):
        if not np.allclose(start, end, atol=0.05):
            _arrow(figure, start, end, COLOURS["serm"])
