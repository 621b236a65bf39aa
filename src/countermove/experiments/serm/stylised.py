"""The three pictures of SERM's Figure 3: costs chosen, costs unknown, moves on a surface.

Each is a small made-up table on which one assumption about costs is dropped, a
rule that clings to it fails, and the rule that does not is compared with one that
knows the truth.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import torch

from countermove._types import Floats
from countermove.data.synthetic import ParabolaTangents, on_parabola, parabola, two_clouds
from countermove.errors import UnknownNameError, nearest
from countermove.execution import Mapper, map_ordered
from countermove.experiments.protocol import Experiment, Measured, Sources
from countermove.experiments.serm.stylised_figure import stylised_figure
from countermove.learning import StrategicClassifier
from countermove.learning.chosen_costs import FlexibleCost, UnknownCost
from countermove.people import MixtureCost, QuadraticCost, WeightedQuadraticCost
from countermove.people.cost_boxes import CostBox
from countermove.people.manifold import ContractiveAutoencoder
from countermove.randomness import torch_generator
from countermove.response import Response, named_response
from countermove.response.manifold import PointsResponse, TangentResponse
from countermove.scores import LinearScore

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

Rows = tuple[Floats, Floats]
Run = tuple[list[dict[str, Any]], dict[str, Any]]

PUBLISHED: Mapping[str, Any] = {
    "learning_rate": 0.1,
    "batch_size": 16,
    "max_epochs": 6,
    "patience": 4,
    "start": "random",
    "calibrate": False,
    "stop_by": "merit",
}
"""As in the experiments: few epochs, random start, the first epoch of the best accuracy."""
OURS: Mapping[str, Any] = {"start": "blind", "calibrate": True}
"""For the same people: from the blind rule, until validation is content, intercept settled."""


@dataclass(frozen=True)
class Stylised(Experiment[Sources]):
    """One of the pictures, repeated.

    Parameters
    ----------
    picture
        ``"flexible"``, ``"unknown"`` or ``"manifold"``.
    repetitions
        Tables and starts drawn afresh; the first of them is drawn as a picture.
    rows
        People in each; None: as published (300, 300 and 2,000).
    """

    picture: str = "flexible"
    repetitions: int = 5
    rows: int | None = None

    def __post_init__(self) -> None:
        if self.picture not in EXPERIMENTS:
            hint = nearest(self.picture, EXPERIMENTS)
            raise UnknownNameError(f"no experiment is called {self.picture!r}: {hint}")

    def cells(self, source: Sources, seed: int, mapper: Mapper | None = None) -> pd.DataFrame:
        """Return one row per repetition, people and rule."""
        return self.measure(source, seed, mapper).cells

    def measure(self, source: Sources, seed: int, mapper: Mapper | None = None) -> Measured:
        """Train every rule on every made-up table; beside the cells, the first picture."""
        return Measured(*run_stylised(self, seed, mapper))

    def means(self, cells: pd.DataFrame) -> pd.DataFrame:
        """Return the averages over repetitions."""
        measured = cells.drop(columns=["experiment", "repetition"])
        return measured.groupby(["people", "rule"], sort=False).mean().reset_index()

    def figure(self, found: Measured, means: pd.DataFrame, title: str) -> Figure:
        """Draw the first table."""
        return stylised_figure(found.beside, title)


@dataclass(frozen=True)
class Parts:
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


def run_stylised(
    stylised: Stylised, seed: int, mapper: Mapper | None = None
) -> tuple[pd.DataFrame, dict[str, Any]]:
    """Return one row per repetition, people and rule, and what the first picture shows.

    ``seconds`` are CPU seconds of training, that of the surface included. Repetitions are
    given to the ``mapper``'s workers; done here, one after the other, by default.
    """
    shared, named = (stylised, seed), {"experiment": stylised.picture}
    runs = map_ordered(repeat, range(stylised.repetitions), shared, mapper, "repetitions")
    rows = [
        named | {"repetition": number} | row
        for number, (cells, _) in enumerate(runs)
        for row in cells
    ]
    return pd.DataFrame(rows), named | runs[0][1]


def repeat(shared: tuple[Stylised, int], number: int) -> Run:
    """Do one repetition."""
    stylised, seed = shared
    return EXPERIMENTS[stylised.picture](stylised.rows, seed + number)


def flexible(rows: int | None, seed: int) -> Run:
    """Learn rule and cost together; the first cost hides what tells people apart."""
    parts = Parts(*two_clouds(rows or 300, 0.5, (0.1, 1.0), seed))
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
            told = {"v1": chosen[0], "v2": chosen[1], "seconds": seconds}
            cells.append({"people": people, "rule": rule + training, "accuracy": accuracy} | told)
            if settings.get("start") == "random":
                picture["rules"][rule] = _line(model) | {"direction": chosen}
    return cells, picture


def unknown(rows: int | None, seed: int) -> Run:
    """Learn for the worst cost of a box around a wrong estimate.

    ``worst`` is the accuracy at the worst of the truth and both ends of the box.
    """
    parts = Parts(*two_clouds(rows or 300, 0.6, (0.1, 0.1), seed))
    guess, truth = WeightedQuadraticCost([1.0, 1.0]), WeightedQuadraticCost([0.25, 0.25])
    box = CostBox.around(guess, "weights", 0.85)
    costs = {"naive": guess, "oracle": truth, "serm": UnknownCost(box=box)}
    cells, picture = [], _people(parts)
    for people, training, settings in _protocols(seed):
        cells += [] if training else [_benchmark(parts, people, seed)]
        answers = [
            named_response(people, cost, None, settings.get("eval_temperature") or 0.5)
            for cost in (truth, *box.ends())
        ]
        for rule, cost in costs.items():
            model, seconds = _fit(parts, seed, cost=cost, **settings)
            told = {"people": people, "rule": rule + training, "seconds": seconds}
            at_truth, *at_ends = (
                model.score_after_response(*parts["test"], response=answer) for answer in answers
            )
            cells.append(told | {"accuracy": at_truth, "worst": min(at_truth, *at_ends)})
            if settings.get("start") == "random":
                picture["rules"][rule] = _line(model)
    weights = {"estimate": 1.0, "truth": 0.25, "cheapest": 0.15, "dearest": 1.85}
    picture["reaches"] = {name: (2.0 / weight) ** 0.5 for name, weight in weights.items()}
    return cells, picture


def manifold(rows: int | None, seed: int) -> Run:
    """Learn for people who stay on a surface that has to be learned too."""
    parts, cost = Parts(*on_parabola(rows or 2000, seed)), QuadraticCost(1.0 / 70.0)
    started = time.process_time()
    surface = ContractiveAutoencoder(seed=seed).fit(parts["train"][0])
    learned = time.process_time() - started
    on_tangents = TangentResponse(surface, cost, "smooth", 1.0, "stay", normalised=False)
    curve = parabola(np.linspace(-8.0, 8.0, 3201))
    judges: dict[str, Response] = {
        "learned tangents": on_tangents,
        "true tangents": TangentResponse(ParabolaTangents(), cost, "smooth", 1.0, "stay", False),
        "true curve, climbing": PointsResponse(curve, cost, 1.0, "stay"),
        "true curve, rational": PointsResponse(curve, cost),
    }
    free = named_response("published", cost, None, 1.0)
    published = dict(PUBLISHED) | {"learning_rate": 0.5, "batch_size": 64}
    rules: list[tuple[str, Any, dict[str, Any]]] = [
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


def _protocols(seed: int) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Yield people, what to call their training, and how: published, then ours."""
    people = {"response": "published", "temperature": 1.0, "eval_temperature": 0.2}
    yield "published", "", people | dict(PUBLISHED) | {"score": _published_start(seed)}
    yield "published", ", settled", people | dict(OURS)
    yield "smooth", "", {"response": "smooth"}
    yield "best", "", {"response": "best"}


def _published_start(seed: int) -> LinearScore:
    """Return the start of these experiments: weights around zero, an intercept from U(0, 1)."""
    draw = torch_generator(seed, "start")
    score = LinearScore(2, draw)
    with torch.no_grad():
        score.bias.uniform_(0.0, 1.0, generator=draw)
    return score


def _fit(parts: Parts, seed: int, **settings: Any) -> tuple[StrategicClassifier, float]:
    started = time.process_time()
    model = StrategicClassifier(random_state=seed, **settings)
    model.fit(*parts["train"], validation=parts["validation"])
    return model, time.process_time() - started


def _benchmark(parts: Parts, people: str, seed: int) -> dict[str, Any]:
    """Return the accuracy of blind training where nobody moves."""
    model, seconds = _fit(parts, seed, response="none")
    accuracy = model.score(*parts["test"])
    return {"people": people, "rule": "benchmark", "accuracy": accuracy, "seconds": seconds}


def _direction(model: StrategicClassifier) -> list[float]:
    assert isinstance(model.cost_, MixtureCost)
    direction: list[float] = model.cost_.direction.tolist()
    return direction


def _people(parts: Parts) -> dict[str, Any]:
    X, y = parts["test"]
    return {"X": X.tolist(), "y": y.tolist(), "rules": {}}


def _line(model: StrategicClassifier) -> dict[str, Any]:
    return {"weight": model.coef_[0].tolist(), "bias": float(model.intercept_[0])}


def _moves(
    parts: Parts, model: StrategicClassifier, surface: Any, response: Response
) -> dict[str, Any]:
    """Return where some people of the picture go, and the tangents they go along."""
    shown = parabola(np.sort(parts["test"][0][:40, 0]))
    answer = response.respond(model.score_, shown)
    return {
        "from": shown.tolist(),
        "to": answer.x_new.tolist(),
        "tangents": surface.tangents(shown)[:, :, 0].tolist(),
    }
