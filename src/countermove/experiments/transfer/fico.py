r"""The FICO experiment: K steps of decisions and scores, published procedure beside an honest one.

A person's score :math:`Q` is their chance to repay. A decision multiplies it by a little more or
less than 1, so P(Y | Q) is kept: a covariate shift. Accepting from .5 on is then best before and
after, and the true difference between :math:`h_S` and :math:`h_T` is 0.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from countermove._types import Floats, Mask
from countermove.errors import DataError, ParameterError, shown
from countermove.experiments._drawing import AGAIN, DARK, OTHER, PUBLISHED, RIGHT, line
from countermove.experiments.protocol import Measured, Row, Sources, averages
from countermove.experiments.tables import Tables
from countermove.experiments.transfer import TransferExperiment
from countermove.experiments.transfer.published import (
    DrawnScores,
    cell_bounds,
    coded_lower_target,
    coded_upper_target,
    published_search,
)
from countermove.randomness import generator
from countermove.transfer import formulas
from countermove.transfer.optimal import Deploy, suboptimality
from countermove.transfer.sample import Pair, Sample

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

ScoredPeople = tuple[Floats, NDArray[np.int64]]

GROUPS = {"black": 0, "asian": 1, "hispanic": 2, "white": 3}
"""Numbers of the groups in the lender's features, as released."""
SMALLEST = 1e-6
"""Scores stay this far from 0 and 1, as published."""


@dataclass(frozen=True)
class ScoreDynamics:
    r"""What a decision and an outcome do to a score.

    .. math:: Q' = \mathrm{clip}\bigl(Q\,(1 + \alpha_D (2D - 1) + \alpha_Y (2Y - 1))\bigr)
    """

    decision_effect: float = 0.01
    label_effect: float = 0.0  # .005 in the paper, 0 in the released code

    def __post_init__(self) -> None:
        total = abs(self.decision_effect) + abs(self.label_effect)
        if not total < 1.0:
            raise ParameterError(
                f"effects of {self.decision_effect} and {self.label_effect} could turn a score "
                "negative; their sizes must sum to less than 1"
            )

    def after(self, score: Floats, accepted: Mask, repaid: Mask) -> Floats:
        """Return the scores after decisions and outcomes, shape (n,)."""
        grown = (
            1.0
            + self.decision_effect * np.where(accepted, 1.0, -1.0)
            + self.label_effect * np.where(repaid, 1.0, -1.0)
        )
        moved: Floats = np.clip(score * grown, SMALLEST, 1.0 - SMALLEST)
        return moved

    def expected_pair(self, score: Floats, threshold: float) -> Pair:
        """Return the people before and after with labels averaged out, as weighted rows."""
        # Every person counts once per outcome before and after, with its probability; errors
        # of such samples are expectations, and a minimum over them is no lucky draw.
        before, after = [], []
        for repaid, chance in ((True, score), (False, 1.0 - score)):
            label = np.full(len(score), 1.0 if repaid else -1.0)
            before.append((score, label, chance))
            moved = self.after(score, score >= threshold, label > 0.0)
            for then, share in ((1.0, moved), (-1.0, 1.0 - moved)):
                after.append((moved, np.full(len(score), then), chance * share))
        source, induced = (
            Sample(scores, labels, weight=weight)
            for scores, labels, weight in (
                (np.concatenate(column) for column in zip(*rows, strict=True))
                for rows in (before, after)
            )
        )
        return Pair(source, induced, "follow", paired=False)

    def pair(self, score: Floats, threshold: float, luck: Luck) -> Pair:
        """Return the people before and after a threshold is deployed; common random numbers."""
        repaid = luck.before < score
        moved = self.after(score, score >= threshold, repaid)
        source = Sample(score, np.where(repaid, 1.0, -1.0), score[:, None])
        induced = Sample(moved, np.where(luck.after < moved, 1.0, -1.0), moved[:, None])
        return Pair(source, induced, "follow", paired=True)


@dataclass(frozen=True, eq=False)
class Luck:
    """Uniform draws, one per person: who repays now, and who repays after a decision."""

    before: Floats
    after: Floats

    @classmethod
    def draw(cls, n: int, rng: np.random.Generator) -> Luck:
        """Draw for n people."""
        return cls(rng.random(n), rng.random(n))

    def of_rows(self, rows: Mask) -> Luck:
        """Return that of some people."""
        return Luck(self.before[rows], self.after[rows])


def realities(
    score: Floats,
    group: NDArray[np.int64],
    dynamics: ScoreDynamics,
    fit: Callable[[Floats, Mask], Callable[[Floats], Floats]],
    steps: int,
    rng: np.random.Generator,
    first_accepted: float = 0.4,
) -> Iterator[Floats]:
    """Yield the scores at every step, when a fitted rule decides and scores change with it."""
    # At each step a model is fitted on those whose outcome is known (accepted the step before; at
    # first a random share), everybody is decided on by its chances, and the chances *replace* the
    # scores before they move, as published.
    if np.any((score < 0.0) | (score > 1.0)):
        rows = np.flatnonzero((score < 0.0) | (score > 1.0))
        raise DataError("scores are chances to repay and must lie in [0, 1]", rows=rows)
    now = np.clip(score, SMALLEST, 1.0 - SMALLEST)
    repaid = rng.random(len(now)) < now
    known = rng.random(len(now)) < first_accepted
    for step in range(steps):
        yield now
        if step + 1 == steps:
            return
        X = observed_features(now, group, rng)
        estimate = fit(X[known], repaid[known])(X)
        accepted = estimate >= 0.5
        outcome = np.where(known, repaid, rng.random(len(now)) < estimate)
        now = dynamics.after(estimate, accepted, outcome)
        repaid = rng.random(len(now)) < now
        known = accepted


def observed_features(score: Floats, group: NDArray[np.int64], rng: np.random.Generator) -> Floats:
    """Return what the lender sees: the group and three noisy signals, shape (n, 4)."""
    n = len(score)
    return np.column_stack(
        [
            group,
            1.5 * score + rng.uniform(-0.1, 0.1, n),
            score + 0.8 * group + rng.uniform(-0.1, 0.1, n),
            group + rng.normal(0.0, 0.1, n),
        ]
    )


@dataclass(frozen=True)
class Lender:
    """A logistic regression of repayment; the released code has scikit-learn's default."""

    penalty: Literal["l1", "l2"] = "l2"
    inverse_strength: float = 1.0  # scikit-learn's C

    def fit(self, X: Floats, repaid: Mask) -> Callable[[Floats], Floats]:
        """Return the chances the fitted model gives."""
        from sklearn.linear_model import LogisticRegression

        if repaid.all() or not repaid.any():
            raise DataError(
                "everybody whose outcome is known has the same one; a lender needs both"
            )
        sparse = self.penalty == "l1"
        model = LogisticRegression(
            C=self.inverse_strength,
            l1_ratio=1.0 if sparse else 0.0,
            solver="liblinear" if sparse else "lbfgs",
            random_state=0,
        ).fit(X, repaid)
        return lambda Z: np.asarray(model.predict_proba(Z)[:, 1])


@dataclass(frozen=True)
class FicoExperiment(TransferExperiment):
    """Lenders × seeds × steps, on a table with ``score`` (0 to 100) and ``race``."""

    lenders: Mapping[str, Lender] = field(default_factory=lambda: {"plain": Lender()})
    dataset: str = "fico"
    seeds: Sequence[int] = (0, 1, 2, 3, 4)
    steps: int = 6
    dynamics: ScoreDynamics = field(default_factory=ScoreDynamics)
    candidates: int = 100
    failure_probability: float = 0.05

    def given(self, source: Sources, seed: int) -> ScoredPeople:
        """Return everybody's score and group."""
        return _people(source.tables, self.dataset)

    def places(self, given: ScoredPeople) -> list[tuple[str, int]]:
        """Return lenders and seeds; steps follow each other."""
        return list(product(self.lenders, self.seeds))

    def rows_at(self, place: tuple[str, int], seed: int, given: ScoredPeople) -> list[Row]:
        """Return one row per step of a lender and seed."""
        name, number = place
        steps = enumerate(self._run(self.lenders[name], *given, seed, number))
        return [{"lender": name, "seed": number, "step": step, **found} for step, found in steps]

    def _run(
        self, lender: Lender, score: Floats, group: NDArray[np.int64], seed: int, number: int
    ) -> Iterator[dict[str, Any]]:
        rng = generator(seed, f"fico {number}")
        for now in realities(score, group, self.dynamics, lender.fit, self.steps, rng):
            yield self._published(now, rng) | self._expected(now) | self._held_out(now, rng)

    def _published(self, score: Floats, rng: np.random.Generator) -> dict[str, float]:
        good = rng.random(len(score)) < score

        def deploy(threshold: float) -> DrawnScores:
            moved = self.dynamics.after(score, score > threshold, good)
            return DrawnScores(moved, rng.random(len(score)) < moved)

        search = published_search(DrawnScores(score, good), deploy, candidates=self.candidates)
        return {
            "published": search.loss,
            "published_again": search.loss_again,
            "published_larger_error": search.larger,
            "published_upper": coded_upper_target(search),
            "published_lower": coded_lower_target(search),
        }

    def _expected(self, score: Floats) -> dict[str, float | None]:
        """Return the true difference, and the bounds that hold, labels averaged out."""
        low, high = float(score.min()), float(score.max())
        grid = low + np.arange(self.candidates) * (high - low) / self.candidates
        pairs = [self.dynamics.expected_pair(score, float(t)) for t in grid]
        before = [pair.source.error(float(t)) for pair, t in zip(pairs, grid, strict=True)]
        after = [pair.induced.error(float(t)) for pair, t in zip(pairs, grid, strict=True)]
        own, best = int(np.argmin(before)), int(np.argmin(after))
        found: dict[str, float | None] = {
            "expected": after[own] - after[best],
            "larger_error": max(before[own], after[own]),
        }
        source, induced, t = pairs[own].source, pairs[own].induced, float(grid[own])
        labels = source.share(source.favourable), induced.share(induced.favourable)
        accepted = source.share(source.accepted(t)), induced.share(induced.accepted(t))
        rates = source.true_positive_rate(t), source.false_positive_rate(t)
        found["lower_3_3"] = float(formulas.theorem_3_3(*labels, *accepted))
        found["lower_5_2"] = float(formulas.theorem_5_2(*labels, *rates))
        pair_of = pairs[own], pairs[best]
        return found | cell_bounds(pair_of, (t, float(grid[best])))

    def _held_out(self, score: Floats, rng: np.random.Generator) -> dict[str, Any]:
        """Return differences of rules chosen on one half and judged on the other."""
        # held_out: chosen with labels averaged out; drawn: chosen on drawn labels, as one who sees
        # outcomes only. The second compares the two rules that were found, which may differ truly
        # although the best ones do not.
        luck, chosen = Luck.draw(len(score), rng), rng.random(len(score)) < 0.5
        grid = np.quantile(score, (np.arange(self.candidates) + 0.5) / self.candidates).tolist()
        known, unseen = score[chosen], score[~chosen]

        def judge(threshold: float) -> Pair:
            return self.dynamics.pair(unseen, threshold, luck.of_rows(~chosen))

        ways: dict[str, Deploy] = {
            "held_out": lambda t: self.dynamics.expected_pair(known, t),
            "drawn": lambda t: self.dynamics.pair(known, t, luck.of_rows(chosen)),
        }
        found: dict[str, Any] = {}
        for name, choose in ways.items():
            loss = suboptimality(choose, judge, grid, self.failure_probability).loss
            found |= {
                name: loss.value,
                f"{name}_low": loss.low,
                f"{name}_high": loss.high,
                f"{name}_detectable": loss.detectable,
                f"{name}_words": loss.words,
            }
        return found

    def means(self, cells: pd.DataFrame) -> pd.DataFrame:
        """Return averages over seeds per lender and step; ``…_detectable`` are shares."""
        return averages(cells, ["lender", "step"], ["seed", "held_out_words", "drawn_words"])

    def draw(self, found: Measured, means: pd.DataFrame) -> Figure:
        """Draw differences (above) and bounds (below) over steps, one column per lender."""
        from plotly.subplots import make_subplots

        lenders = list(dict.fromkeys(means["lender"]))
        figure = make_subplots(
            rows=2,
            cols=len(lenders),
            subplot_titles=lenders,
            shared_xaxes=True,
            vertical_spacing=0.08,
        )
        for column, lender in enumerate(lenders, start=1):
            part = means[means["lender"] == lender]
            for row, lines in enumerate((_DIFFERENCES, _BOUNDS), start=1):
                for name, label, colour in lines:
                    look = {"legendgroup": label, "showlegend": column == 1}
                    trace = line(part["step"], part[name], label, colour, **look)
                    if name == "expected":
                        trace.line.dash = "dot"
                    if name == "held_out":
                        width = ((part["held_out_high"] - part["held_out_low"]) / 2).tolist()
                        trace.error_y = {"array": width}
                    figure.add_trace(trace, row=row, col=column)
            figure.update_xaxes(title="K", row=2, col=column)
        figure.update_yaxes(type="log", row=2)
        figure.update_yaxes(title="difference", row=1, col=1)
        figure.update_yaxes(title="bounds", row=2, col=1)
        return figure.update_layout(height=700)


_DIFFERENCES = (
    ("published", "above: difference as published (least of 100 noisy errors)", PUBLISHED),
    ("published_again", "the same rules on fresh draws", AGAIN),
    ("expected", "labels averaged out", DARK),
    ("held_out", "judged on other people, with interval", RIGHT),
)
_BOUNDS = (
    ("larger_error", "below: larger error of h_S", DARK),
    ("published_upper", "upper bound as coded", PUBLISHED),
    ("upper_tighter", "Theorem 4.2 on cells, tighter form", RIGHT),
    ("published_lower", "lower bound as coded", AGAIN),
    ("lower_3_3", "Theorem 3.3", OTHER),
)


def _people(tables: Tables, name: str) -> ScoredPeople:
    """Return scores in [0, 1] and group numbers of a table."""
    table, _ = tables(name)
    missing = [column for column in ("score", "race") if column not in table]
    if missing:
        raise DataError(
            f"table {name!r} has no column {shown(missing)}; the experiment needs a score from "
            f"0 to 100 and a race among {', '.join(GROUPS)}"
        )
    unknown = np.flatnonzero(~table["race"].isin(list(GROUPS)))
    if unknown.size:
        raise DataError(
            f"table {name!r}: race is none of {', '.join(GROUPS)} in {unknown.size} row(s): "
            f"{shown(unknown)}",
            rows=unknown,
        )
    score = table["score"].to_numpy(np.float64) / 100.0
    return score, np.asarray(table["race"].map(GROUPS), np.int64)
