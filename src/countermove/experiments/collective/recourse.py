"""Recourse alone and together over budgets: Figures 1 and 2 of the paper, and what users ask."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from countermove._types import Floats
from countermove.dynamics.collective.recourse import individual, individual_sphere, together
from countermove.dynamics.collective.recourse_analysis import (
    alternatives,
    break_even,
    least_budgets,
    marginal_values,
    side_effects,
)
from countermove.dynamics.collective.recourse_problem import (
    CollectiveRecourseProblem,
    Reach,
    RecourseOutcome,
    recourse_problem,
)
from countermove.dynamics.collective.recourse_search import RecourseSearch
from countermove.dynamics.collective.recourse_variants import Directions, with_retrainings
from countermove.dynamics.collective.shift_audit import audit_shift
from countermove.dynamics.learners import Learner, LogisticLearner
from countermove.dynamics.learners.centroids import CentroidLearner
from countermove.errors import ParameterError, UnknownNameError, nearest
from countermove.execution import Mapper
from countermove.experiments._drawing import BELOW, PUBLISHED, RIGHT, marked
from countermove.experiments.collective.figures import answer_tables, centroids_figure
from countermove.experiments.collective.people import CLASS, random_participants
from countermove.experiments.protocol import Experiment, Measured, Row
from countermove.randomness import generator

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

DRAWN = 300
"""People in the picture at most."""
PICTURE = ["budget", "who", CLASS, "x", "y"]
"""Columns of the picture; who: subject, centroid, query or alone."""
LINES = (
    ("individual", "alone", PUBLISHED, "solid"),
    ("collective", "together", RIGHT, "solid"),
    ("individual_sphere", "alone, one gradient on the sphere (published)", PUBLISHED, "dot"),
    ("collective_sphere", "together, one gradient on the sphere (published)", RIGHT, "dot"),
)


@dataclass(frozen=True, eq=False)
class Answers:
    """Everything asked, JSON-ready, and where everybody stands at every budget."""

    facts: Mapping[str, Any]
    picture: pd.DataFrame


@dataclass(frozen=True, kw_only=True)
class CollectiveExperiment(Experiment[pd.DataFrame]):
    """One query between two classes, budgets, and shares of participants."""

    layout: ClassVar[Row] = {
        "xaxis": {"title": "budget of each person (filled: goal reached)"},
        "yaxis": {"title": "loss of the goal", "rangemode": "tozero"},
        "legend": BELOW,
    }

    title: str
    goal: str
    start: str
    learner: str = "centroid"
    learner_settings: Mapping[str, Any] = field(default_factory=dict)
    share: float = 0.25  # of the way from the mean of start to that of goal: there the query is
    budgets: Sequence[float] = (0.0, 0.5, 1.0)
    absolute: bool = False  # budgets in units of the features, else shares of that distance
    answers_at: int = 1  # position of the budget at which questions are answered
    norm: float = 2.0
    participation: Sequence[float] = (0.5, 1.0)
    draws: int = 20
    retrainings: int = 201  # watched by those who do not see the learner
    false_alarm: float = 0.05

    def given(self, source: pd.DataFrame, seed: int) -> CollectiveRecourseProblem:
        """Return who asks for what."""
        X, y = _arrays(source)
        known = {str(name) for name in y}
        for name in (self.goal, self.start):
            if name not in known:
                raise UnknownNameError(f"no class {name!r}; {nearest(name, known)}")
        goal, start = (X[y == name].mean(axis=0) for name in (self.goal, self.start))
        query = self.share * goal + (1.0 - self.share) * start
        learner = self._learner(X.shape[1], len(known))
        return recourse_problem(X, y, query, self.goal, learner=learner)

    def places(self, given: CollectiveRecourseProblem) -> list[float]:
        """Return the budgets in the units of the features."""
        if self.absolute:
            return [float(budget) for budget in self.budgets]
        named = np.array(given.named(given.crowd.y))
        X = given.crowd.X
        apart = X[named == self.goal].mean(axis=0) - X[named == self.start].mean(axis=0)
        return [float(budget * np.linalg.norm(apart)) for budget in self.budgets]

    def measured_at(
        self, place: float, seed: int, given: CollectiveRecourseProblem
    ) -> tuple[list[Row], pd.DataFrame]:
        """Return the loss of the goal alone and together; beside: where everybody stands."""
        reach, row = Reach(place, self.norm), {"budget": place}
        ways = {
            "individual": individual(given, reach, _LENIENT),
            "collective": together(given, reach, search=_LENIENT),
            "individual_sphere": individual_sphere(given, reach),
            "collective_sphere": together(given, reach, method="sphere"),
        }
        for name, found in ways.items():
            row |= {f"{name}_loss": found.loss, f"{name}_reached": bool(found.reached.all())}
        moves, alone = ways["collective"].moves, ways["individual"].query
        return [row], self._standing(given, moves, alone, seed).assign(budget=place)[PICTURE]

    def beside(self, parts: Sequence[pd.DataFrame]) -> pd.DataFrame:
        """Return where everybody stands at every budget, in the plane, for an animation."""
        return pd.concat(parts, ignore_index=True)

    def measure(
        self, source: pd.DataFrame, seed: int = 0, mapper: Mapper | None = None
    ) -> Measured:
        """Return the losses over budgets; beside them the answers, and where everybody stands."""
        found = super().measure(source, seed, mapper)
        return Measured(found.cells, Answers(self.facts(source, found.cells, seed), found.beside))

    def titled(self, title: str) -> str:
        """Return the title of the figure."""
        return f"{self.title}: {self.start} wants to be {self.goal}"

    def draw(self, found: Measured, means: pd.DataFrame) -> Figure:
        """Draw the loss of the goal over budgets; lower is better. Filled marks: goal reached."""
        from plotly.graph_objects import Figure

        figure = Figure()
        for name, label, colour, dash in LINES:
            symbols = ["circle" if r else "circle-open" for r in found.cells[f"{name}_reached"]]
            look = {"line": {"dash": dash}, "marker": {"symbol": symbols, "size": 9}}
            line = marked(found.cells, "budget", f"{name}_loss", label, colour, **look)
            figure.add_trace(line)
        return figure

    def shown(self, found: Measured, means: pd.DataFrame) -> Row:
        """Show the moving centroids and the answers."""
        facts = found.beside.facts
        return {
            "more": [centroids_figure(found.beside.picture, facts)],
            "tables": answer_tables(facts),
            "title": f"Recourse together: {facts['experiment']}",
            "note": facts["audit"]["certificate"]["words"],
        }

    def _standing(
        self, problem: CollectiveRecourseProblem, moves: Floats, alone: Floats, seed: int
    ) -> pd.DataFrame:
        """Return where some people, the class means and the query are, helped and alone."""
        flat = _plane(problem, self.goal, self.start)
        some = generator(seed, "picture").permutation(problem.crowd.n)[:DRAWN]
        names = np.array(problem.named(problem.crowd.y))
        moved = problem.crowd.X + moves
        centres = {name: moved[names == name].mean(axis=0) for name in dict.fromkeys(names)}
        return pd.concat(
            [
                pd.DataFrame(flat(points), columns=["x", "y"]).assign(**{"who": who, CLASS: kinds})
                for who, kinds, points in (
                    ("subject", names[some], moved[some]),
                    ("centroid", list(centres), np.array(list(centres.values()))),
                    ("query", [self.goal], problem.query),
                    ("alone", [self.goal], alone),
                )
            ],
            ignore_index=True,
        )

    def facts(self, people: pd.DataFrame, curves: pd.DataFrame, seed: int) -> Row:
        """Return everything asked, as one JSON-ready document."""
        problem = self.given(people, seed)
        reach = Reach(self.places(problem)[self.answers_at], self.norm)
        helped = together(problem, reach, search=_LENIENT)
        least = least_budgets(problem, reach, tolerance=1e-3)
        decided = problem.goals.decide(problem.theta, problem.crowd.X)
        names = [str(name) for name in people.drop(columns=CLASS).columns]
        return {
            "experiment": self.title,
            "learner": {"kind": self.learner, **self.learner_settings},
            "people": problem.crowd.n,
            "features": problem.crowd.d,
            "classes": [str(name) for name in problem.labels or ()],
            "query": {"goal": self.goal, "start": self.start, "share": self.share},
            "norm": "inf" if np.isinf(self.norm) else self.norm,
            "seed": seed,
            "training_accuracy": float(problem.crowd.mean(decided == problem.crowd.y)),
            "curves": curves.to_dict(orient="list"),
            "least_budget": asdict(least),
            "budget_of_answers": reach.budget,
            "individual_loss": individual(problem, reach, _LENIENT).loss,
            "collective_loss": helped.loss,
            "break_even_participation": break_even(problem, reach, search=_LENIENT),
            "participation": list(self._shares(problem, reach, seed)),
            "who_should_help": self._worth(problem, reach),
            "alternatives": [
                {
                    "who": way.name,
                    "loss": way.recourse.loss,
                    "reached": bool(way.recourse.reached.all()),
                }
                for way in alternatives(problem, reach, features=names, search=_LENIENT)
            ],
            "side_effects": asdict(side_effects(helped)),
            "without_sight": self._blind(problem, reach, seed),
            "audit": self._audit(problem, helped, seed),
        }

    def _shares(
        self, problem: CollectiveRecourseProblem, reach: Reach, seed: int
    ) -> Iterator[dict[str, float | None]]:
        rng = generator(seed, "participants")
        for share in self.participation:
            exact = together(problem, reach, participation=share, search=_LENIENT).loss
            drawn = [
                together(
                    problem,
                    reach,
                    random_participants(problem.crowd.n, share, rng),
                    search=_LENIENT,
                ).loss
                for _ in range(self.draws if share < 1.0 else 1)
            ]
            yield {
                "participation": share,
                "loss": exact,
                "drawn_mean": float(np.mean(drawn)),
                "drawn_lowest": float(np.min(drawn)),
                "drawn_highest": float(np.max(drawn)),
            }

    def _worth(self, problem: CollectiveRecourseProblem, reach: Reach) -> dict[str, float]:
        worth = marginal_values(problem, reach)
        names = np.array(problem.named(problem.crowd.y)).astype(str)
        return {name: float(worth[names == name].mean()) for name in dict.fromkeys(names.tolist())}

    def _blind(
        self, problem: CollectiveRecourseProblem, reach: Reach, seed: int
    ) -> dict[str, float]:
        free, towards = (
            with_retrainings(
                problem,
                reach,
                retrainings=self.retrainings,
                directions=directions,
                seed=seed,
                search=_LENIENT,
            )
            for directions in _DIRECTIONS
        )
        return {
            "retrainings": free.retrainings,
            "loss": free.recourse.loss,
            "regret": free.regret,
            "loss_along_query": towards.recourse.loss,
            "regret_along_query": towards.regret,
        }

    def _audit(self, problem: CollectiveRecourseProblem, helped: RecourseOutcome, seed: int) -> Row:
        """Audit the shift as a platform sees it: matched, among moves of everyday size."""
        X = problem.crowd.X
        everyday = 0.5 * X.std(axis=0) * generator(seed, "everyday moves").normal(size=X.shape)
        audited = audit_shift(
            X,
            X + helped.moves + everyday,
            problem.crowd.y,
            false_alarm=self.false_alarm,
            seed=seed,
        )
        return {
            "alarm": audited.alarm,
            "p_value": audited.p_value,
            "mean_move": audited.mean_move,
            "certificate": audited.certificate.to_json(),
        }

    def _learner(self, d: int, classes: int) -> Learner:
        if self.learner == "centroid":
            return CentroidLearner(tuple(range(classes)))
        if classes != 2:
            raise ParameterError(
                f"a {self.learner} learner distinguishes two classes, the table has {classes}; "
                "take another label or the centroid learner"
            )
        if self.learner == "logistic":
            return LogisticLearner(penalty=self.learner_settings.get("penalty", 1e-2))
        from countermove.dynamics.learners.network import TorchLearner
        from countermove.scores import MLPScore

        score = MLPScore(d, self.learner_settings.get("hidden", (8,)), dropout=0.0)
        return TorchLearner(score, penalty=self.learner_settings.get("penalty", 1e-2))


_LENIENT = RecourseSearch(starts=2, max_steps=400, tolerance=1e-6, strict=False)
"""For curves of many points: each search ends, and says where it ended."""


_DIRECTIONS: tuple[Directions, Directions] = ("any", "query")


def _arrays(people: pd.DataFrame) -> tuple[Floats, NDArray[np.str_]]:
    X = people.drop(columns=CLASS).to_numpy(np.float64)
    return np.ascontiguousarray(X), people[CLASS].to_numpy(dtype=np.str_)


def _plane(problem: CollectiveRecourseProblem, goal: str, start: str) -> Any:
    """Return a map to the plane: itself in two dimensions, else goal-start and widest beside."""
    X = problem.crowd.X
    if problem.crowd.d == 2:
        return lambda points: points
    names = np.array(problem.named(problem.crowd.y))
    origin, end = X[names == start].mean(axis=0), X[names == goal].mean(axis=0)
    first = (end - origin) / np.linalg.norm(end - origin)
    means = np.array([X[names == name].mean(axis=0) for name in dict.fromkeys(names)]) - origin
    beside = means - np.outer(means @ first, first)
    _, _, axes = np.linalg.svd(beside - beside.mean(axis=0))
    second = axes[0] - (axes[0] @ first) * first
    frame = np.column_stack([first, second / np.linalg.norm(second)])
    return lambda points: (points - origin) @ frame
