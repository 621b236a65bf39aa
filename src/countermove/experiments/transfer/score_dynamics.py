r"""Credit scores that a decision moves: the FICO experiment of the paper, step by step.

A person's score :math:`Q` is their chance to repay. A decision multiplies it by a little
more or less than 1, so P(Y | Q) is kept: a covariate shift. Accepting from .5 on is then best
before and after, and the true difference between :math:`h_S` and :math:`h_T` is 0.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from countermove._types import Floats, Mask
from countermove.errors import DataError, ParameterError
from countermove.transfer.sample import Pair, Sample

Fit = Callable[[Floats, Mask], Callable[[Floats], Floats]]
"""From features, shape (n, d), and who repaid to chances of repaying, shape (n,)."""

SMALLEST = 1e-6
"""Scores stay this far from 0 and 1, as published."""


@dataclass(frozen=True)
class ScoreDynamics:
    r"""What a decision and an outcome do to a score.

    .. math:: Q' = \mathrm{clip}\bigl(Q\,(1 + \alpha_D (2D - 1) + \alpha_Y (2Y - 1))\bigr)

    Parameters
    ----------
    decision_effect
        :math:`\alpha_D`.
    label_effect
        :math:`\alpha_Y`; .005 in the paper, 0 in the released code.
    """

    decision_effect: float = 0.01
    label_effect: float = 0.0

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
        """Return the people before and after with labels averaged out, as weighted rows.

        Every person counts once per outcome before and after, with its probability; errors
        of such samples are expectations, and a minimum over them is no lucky draw.
        """
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
        """Return the people before and after a threshold on the score is deployed.

        The same luck for every threshold makes thresholds comparable (common random numbers).
        """
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
    fit: Fit,
    steps: int,
    rng: np.random.Generator,
    first_accepted: float = 0.4,
) -> Iterator[Floats]:
    """Yield the scores at every step, when a fitted rule decides and scores answer.

    At each step a model is fitted on those whose outcome is known (accepted the step
    before; at first a random share), everybody is decided on by its chances, and the
    chances *replace* the scores before they move, as published.

    Parameters
    ----------
    score
        Scores at the start, in (0, 1), shape (n,).
    group
        Group numbers, shape (n,).
    dynamics
        How scores move.
    fit
        Fits a model.
    steps
        How many realities, the first included.
    first_accepted
        Share whose outcome is known at the start.
    """
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
