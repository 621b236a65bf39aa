"""The FICO experiment: K steps of decisions and scores, published procedure beside an honest one.

At every step the published search and its bounds, the same with labels averaged out,
and a choice judged on people it was not made on. The true difference is 0.
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
from countermove.errors import DataError, shown
from countermove.experiments.tables import Tables
from countermove.experiments.transfer.experiment import TransferExperiment
from countermove.experiments.transfer.figures import fico_figure
from countermove.experiments.transfer.published import (
    Drawn,
    cell_bounds,
    coded_lower_target,
    coded_upper_target,
    published_search,
)
from countermove.experiments.transfer.score_dynamics import Luck, ScoreDynamics, realities
from countermove.randomness import generator
from countermove.transfer import formulas
from countermove.transfer.optimal import Deploy, suboptimality
from countermove.transfer.sample import Pair

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

People = tuple[Floats, NDArray[np.int64]]

GROUPS = {"black": 0, "asian": 1, "hispanic": 2, "white": 3}
"""Numbers of the groups in the lender's features, as released."""


@dataclass(frozen=True)
class Lender:
    """A logistic regression of repayment.

    Parameters
    ----------
    penalty
        ``l2`` or ``l1``.
    inverse_strength
        scikit-learn's C; the released code has its default, L2 with 1.
    """

    penalty: Literal["l1", "l2"] = "l2"
    inverse_strength: float = 1.0

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
    """Lenders × seeds × steps.

    Parameters
    ----------
    lenders
        By name.
    dataset
        Table with ``score`` (0 to 100) and ``race``.
    seeds
        Repetitions.
    steps
        Realities, the first included.
    dynamics
        How scores answer.
    candidates
        Thresholds compared.
    failure_probability
        Of the interval of the difference.
    """

    lenders: Mapping[str, Lender] = field(default_factory=lambda: {"plain": Lender()})
    dataset: str = "fico"
    seeds: Sequence[int] = (0, 1, 2, 3, 4)
    steps: int = 6
    dynamics: ScoreDynamics = field(default_factory=ScoreDynamics)
    candidates: int = 100
    failure_probability: float = 0.05

    def people(self, tables: Tables) -> People:
        """Return everybody's score and group."""
        return _people(tables, self.dataset)

    def places(self) -> list[tuple[str, int]]:
        """Return lenders and seeds; steps follow each other."""
        return list(product(self.lenders, self.seeds))

    def measured(self, place: tuple[str, int], seed: int, people: People) -> list[dict[str, Any]]:
        """Return one row per step of a lender and seed."""
        name, number = place
        steps = enumerate(self._run(self.lenders[name], *people, seed, number))
        return [{"lender": name, "seed": number, "step": step, **found} for step, found in steps]

    def _run(
        self, lender: Lender, score: Floats, group: NDArray[np.int64], seed: int, number: int
    ) -> Iterator[dict[str, Any]]:
        rng = generator(seed, f"fico {number}")
        for now in realities(score, group, self.dynamics, lender.fit, self.steps, rng):
            yield self._published(now, rng) | self._expected(now) | self._held_out(now, rng)

    def _published(self, score: Floats, rng: np.random.Generator) -> dict[str, float]:
        good = rng.random(len(score)) < score

        def deploy(threshold: float) -> Drawn:
            moved = self.dynamics.after(score, score > threshold, good)
            return Drawn(moved, rng.random(len(score)) < moved)

        search = published_search(Drawn(score, good), deploy, candidates=self.candidates)
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
        """Return differences of rules chosen on one half and judged on the other.

        ``held_out``: chosen with labels averaged out; ``drawn``: chosen on drawn labels, as one
        who sees outcomes only. The second compares the two rules that were found, which may
        differ truly although the best ones do not.
        """
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
        measured = cells.drop(columns=["seed", "held_out_words", "drawn_words"])
        return measured.groupby(["lender", "step"], sort=False).mean().reset_index()

    def draw(self, cells: pd.DataFrame, means: pd.DataFrame) -> Figure:
        """Draw the experiment, without title and legend."""
        return fico_figure(cells, means)


def _people(tables: Tables, name: str) -> tuple[Floats, NDArray[np.int64]]:
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
