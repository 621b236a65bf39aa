"""Figure 4: four made-up populations, the published search beside what holds at many rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from countermove._types import Floats
from countermove.experiments._drawing import AGAIN, OTHER, PUBLISHED, RIGHT
from countermove.experiments.protocol import Measured, Row
from countermove.experiments.transfer import TransferExperiment
from countermove.experiments.transfer.dag_cases import (
    CovariateCase,
    DagCase,
    Reading,
    TargetCase,
    dag_case,
)
from countermove.experiments.transfer.published import (
    DrawnScores,
    cell_bounds,
    coded_lower_covariate,
    coded_lower_target,
    coded_upper_covariate,
    coded_upper_target,
    published_search,
)
from countermove.randomness import generator
from countermove.transfer import formulas
from countermove.transfer.optimal import Suboptimality, suboptimality
from countermove.transfer.sample import Pair, Sample

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

Chances = Callable[[Floats], Floats]


@dataclass(frozen=True)
class DagExperiment(TransferExperiment):
    """Cases × readings × seeds of the published size, and one large sample of each."""

    cases: Sequence[str] = ("CS1", "CS2", "TS1", "TS2")
    readings: Sequence[Reading] = ("paper", "released")
    seeds: Sequence[int] = tuple(range(10))
    candidates: int = 100
    large: int = 200_000  # half to choose on and half to judge on
    failure_probability: float = 0.05

    def places(self, given: Any) -> list[tuple[str, Reading, int | None]]:
        """Return cases, readings and seeds; None is the large sample."""
        return list(product(self.cases, self.readings, (*self.seeds, None)))

    def rows_at(self, place: tuple[str, Reading, int | None], seed: int, given: Any) -> list[Row]:
        """Return one row of a case, reading and seed, or of the large sample (no seed)."""
        name, reading, number = place
        case, stage = dag_case(name, reading), f"{name} {reading}"
        if number is None:
            found = self._large(case, seed, stage)
        else:
            found = self._published(case, reading, generator(seed, f"{stage} {number}"))
        return [{"case": name, "reading": reading, "seed": number, **found}]

    def _published(self, case: DagCase, reading: Reading, rng: np.random.Generator) -> Row:
        """Return the published search at the published size; released target shifts as coded."""
        X, y = case.source(case.n, rng)
        chances = fitted(X, y)

        def deploying(case: DagCase) -> Callable[[float], DrawnScores]:
            def deploy(threshold: float) -> DrawnScores:
                decision = np.where(chances(X) > threshold, 1.0, -1.0)
                after, label = case.induced(X, y, decision, rng)
                return DrawnScores(chances(after), label > 0, after)

            return deploy

        evaluate, compare = case, case
        if isinstance(case, TargetCase) and reading == "released":
            evaluate = replace(case, matched=False)
            compare = replace(case, matched=False, means=(0.0, 1.5), spread=0.25)
        search = published_search(
            DrawnScores(chances(X), y > 0, X),
            deploying(evaluate),
            deploying(compare),
            self.candidates,
        )
        covariate = isinstance(case, CovariateCase)
        upper = coded_upper_covariate if covariate else coded_upper_target
        lower = coded_lower_covariate if covariate else coded_lower_target
        return {
            "rows": case.n,
            "published": search.loss,
            "published_again": search.loss_again,
            "published_upper": upper(search),
            "published_larger_error": search.larger,
            "published_lower": lower(search),
        }

    def _large(self, case: DagCase, seed: int, stage: str) -> Row:
        """Return the difference and the bounds from many rows, with common random numbers."""
        rng = generator(seed, f"{stage} large")
        X, y = case.source(self.large, rng)
        mixed = rng.permutation(self.large)
        half = self.large // 2
        choose, judge = (
            Deployment(case, fitted(X[mixed[:half]], y[mixed[:half]]), X[rows], y[rows], seed, name)
            for name, rows in (("choose", mixed[:half]), ("judge", mixed[half:]))
        )
        grid = np.linspace(0.0, 1.0, self.candidates + 1)[1:-1].tolist()
        found = suboptimality(choose.pair, judge.pair, grid, self.failure_probability)
        return {
            "rows": self.large,
            "held_out": found.loss.value,
            "held_out_low": found.loss.low,
            "held_out_high": found.loss.high,
            "words": found.loss.words,
            "outside": judge.outside(found.source_threshold),
            **large_bounds(case, judge, found),
        }

    def means(self, cells: pd.DataFrame) -> pd.DataFrame:
        """Return one row per case and reading: averages of finite figures, and the large sample."""
        rows = []
        for _, part in cells.groupby(["case", "reading"], sort=False):
            small, large = part[part["seed"].notna()], part[part["seed"].isna()].iloc[0]
            published = small.filter(like="published").replace(np.inf, np.nan)
            rows.append(
                {
                    "case": large["case"],
                    "reading": large["reading"],
                    "seeds": len(small),
                    **published.mean().to_dict(),
                    "published_upper_infinite": int(np.isinf(small["published_upper"]).sum()),
                    **large.drop(["case", "reading", "seed"]).filter(regex="^(?!published)"),
                }
            )
        return pd.DataFrame(rows)

    def draw(self, found: Measured, means: pd.DataFrame) -> Figure:
        """Draw differences and upper bounds per case and reading."""
        from plotly.graph_objects import Bar
        from plotly.subplots import make_subplots

        figure = make_subplots(
            rows=1, cols=2, subplot_titles=("what h_S loses against h_T", "upper bounds on it")
        )
        where = [
            f"{case}, {reading}"
            for case, reading in zip(means["case"], means["reading"], strict=True)
        ]
        spread = (means["held_out_high"] - means["held_out_low"]) / 2
        for column, bars in enumerate(
            (
                (
                    ("published", "least of 100 noisy errors, as published", PUBLISHED),
                    ("published_again", "the same rules on fresh draws", AGAIN),
                    ("held_out", "judged on other people, common random numbers", RIGHT),
                ),
                (
                    ("published_upper", "as coded", PUBLISHED),
                    ("upper", "Theorem 4.2 on cells, or 5.1", OTHER),
                    ("upper_tighter", "tighter form", RIGHT),
                ),
            ),
            start=1,
        ):
            for name, label, colour in bars:
                bar = Bar(x=where, y=means[name].tolist(), name=label, marker_color=colour)
                if name == "held_out":
                    bar.error_y = {"array": spread.tolist()}
                figure.add_trace(bar, row=1, col=column)
        return figure


@dataclass(frozen=True, eq=False)
class Deployment:
    """A case's people, a fitted score, and one stream of draws for every threshold."""

    case: DagCase
    chances: Chances
    X: Floats
    y: Floats
    seed: int
    name: str

    def pair(self, threshold: float) -> Pair:
        """Return the people before and after, the same luck for every threshold."""
        after, label = self._after(threshold)
        return Pair(
            Sample(self.chances(self.X), self.y),
            Sample(self.chances(after), label),
            "follow" if isinstance(self.case, CovariateCase) else "kept",
            paired=True,
        )

    def outside(self, threshold: float) -> float | None:
        """Return the share of people whose first variable leaves the source's [-1, 1]."""
        if isinstance(self.case, TargetCase):
            return None
        return float(np.mean(np.abs(self._after(threshold)[0][:, 0]) > 1.0))

    def _after(self, threshold: float) -> tuple[Floats, Floats]:
        decision = np.where(self.chances(self.X) >= threshold, 1.0, -1.0)
        return self.case.induced(self.X, self.y, decision, generator(self.seed, self.name))


def large_bounds(case: DagCase, people: Deployment, found: Suboptimality) -> Row:
    """Return the bounds that belong to a case, at the two thresholds found."""
    own, best = found.source_threshold, found.induced_threshold
    pairs = people.pair(own), people.pair(best)
    source, induced = pairs[0].source, pairs[0].induced
    labels = [s.share(s.favourable) for s in (source, induced, pairs[1].induced)]
    accepted = source.share(source.accepted(own)), induced.share(induced.accepted(own))
    bounds: Row = {
        "larger_error": max(source.error(own), induced.error(own)),
        "lower_3_3": float(formulas.theorem_3_3(labels[0], labels[1], *accepted)),
    }
    if isinstance(case, CovariateCase):
        return bounds | cell_bounds(pairs, (own, best))
    rates = [(source.true_positive_rate(t), source.false_positive_rate(t)) for t in (own, best)]
    changes = rates[0][0] - rates[1][0], rates[0][1] - rates[1][1]
    shares = labels[0], labels[1], labels[2]
    return bounds | {
        "upper": float(formulas.theorem_5_1(*shares, *changes)),
        "upper_tighter": float(formulas.theorem_5_1_sharper(*shares, rates[0], rates[1])),
        "lower_5_2": float(formulas.theorem_5_2(labels[0], labels[1], *rates[0])),
    }


def fitted(X: Floats, y: Floats) -> Chances:
    """Return the chances of a logistic regression, scikit-learn's default as published."""
    from sklearn.linear_model import LogisticRegression

    model = LogisticRegression(solver="liblinear").fit(X, y > 0)
    return lambda Z: np.asarray(model.predict_proba(Z)[:, 1])
