"""The best threshold before and after deployment, chosen on some people and judged on others.

The least of many noisy errors is too low (winner's curse). So a rule is chosen on one
part and judged on another, both rules on the same people with the same luck, and a
difference that chance explains is called none.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from countermove._types import Floats, Mask
from countermove.certificates.betting import clustered_interval
from countermove.certificates.intervals import mean_interval, paired_interval
from countermove.errors import DataError, ParameterError
from countermove.transfer.sample import Pair, Sample

Deploy = Callable[[float], Pair]
"""From a threshold to the people before and after that rule is deployed, scored alike."""


@dataclass(frozen=True, eq=False)
class ThresholdErrors:
    """Errors of the rules "score at least t", for every t that decides differently."""

    thresholds: Floats  # rising; the first accepts everybody, the last (infinity) nobody
    errors: Floats

    def best(self, near: float = 0.0) -> tuple[float, float]:
        """Return the best threshold and its error; ties go to the one nearest ``near``."""
        least = self.errors.min()
        tied = self.thresholds[self.errors <= least + 1e-12]
        finite = tied[np.isfinite(tied)]
        among = finite if finite.size else tied
        return float(among[np.argmin(np.abs(among - near))]), float(least)


def threshold_errors(sample: Sample) -> ThresholdErrors:
    """Evaluate all thresholds by one sort."""
    order = np.argsort(sample.score, kind="stable")
    score = sample.score[order]
    mass = np.full(sample.n, 1.0) if sample.weight is None else sample.weight[order]
    favourable = sample.favourable[order]
    # Raising the threshold past a person loses them if favourable, else corrects a mistake.
    steps = np.cumsum(np.where(favourable, mass, -mass))
    start = float(mass[~favourable].sum())
    last_of_value = np.append(score[1:] != score[:-1], True)
    errors = np.concatenate([[start], start + steps[last_of_value]]) / mass.sum()
    first_of_value = np.append(True, score[1:] != score[:-1])
    thresholds = np.append(score[first_of_value], np.inf)
    return ThresholdErrors(thresholds, np.clip(errors, 0.0, 1.0))


def joint_sample(one: Sample, other: Sample) -> Sample:
    """Return both samples as one, half of the mass each: its error is half the joint error."""
    return Sample(
        np.concatenate([one.score, other.score]),
        np.concatenate([one.label, other.label]),
        weight=0.5 * np.concatenate([one.mass, other.mass]),
    )


@dataclass(frozen=True)
class Difference:
    """A difference of two rules' errors, judged on the same people."""

    value: float
    low: float  # low and high cover the true difference with probability level
    high: float
    level: float
    n: int

    @property
    def detectable(self) -> bool:
        """Whether chance alone does not explain it."""
        return self.low > 0.0 or self.high < 0.0

    @property
    def words(self) -> str:
        """The finding as people should read it."""
        if not self.detectable:
            return f"no detectable difference (at most {max(-self.low, self.high):.3f})"
        return f"{self.value:.3f} ({self.low:.3f} to {self.high:.3f})"


def difference(
    own: Floats | Mask,
    other: Floats | Mask,
    failure_probability: float,
    clusters: NDArray[Any] | None = None,
) -> Difference:
    """Compare what two rules get wrong on the same people: 0 or 1 each, or a probability.

    Of yes and no the interval is Tango's, of probabilities that of Maurer and Pontil, of rows in
    ``clusters`` by betting on these.
    """
    a, b = np.asarray(own, dtype=np.float64), np.asarray(other, dtype=np.float64)
    if a.shape != b.shape or a.ndim != 1:
        raise DataError(f"two rules are compared on the same people, got {a.shape} and {b.shape}")
    value, n = float(np.mean(a - b)), len(a)
    if clusters is not None:
        half = clustered_interval(0.5 + 0.5 * (a - b), clusters, failure_probability)
        ends = 2.0 * half[0] - 1.0, 2.0 * half[1] - 1.0
    elif np.isin(a, (0.0, 1.0)).all() and np.isin(b, (0.0, 1.0)).all():
        ends = paired_interval(int(np.sum(a > b)), int(np.sum(b > a)), n, failure_probability)
    else:
        ends = mean_interval(a - b, -1.0, 1.0, failure_probability)
    return Difference(value, *ends, 1.0 - failure_probability, n)


def worst_difference(
    own: Floats | Mask,
    other: Floats | Mask,
    failure_probability: float,
    clusters: NDArray[Any] | None = None,
) -> Difference:
    """Compare two rules, each after the worst of several responses to it: (responses, n) each.

    All pairs of responses have their intervals at once (union bound): the difference of the two
    largest errors lies between the largest least low end and the largest least high one.
    """
    part = failure_probability / (len(own) * len(other))
    pairs = [[difference(one, two, part, clusters) for two in other] for one in own]
    value, low, high = (
        max(min(getattr(pair, end) for pair in row) for row in pairs)
        for end in ("value", "low", "high")
    )
    return Difference(value, low, high, 1.0 - failure_probability, len(own[0]))


@dataclass(frozen=True)
class Suboptimality:
    """What the source-optimal rule loses against the best one after deployment."""

    source_threshold: float  # both were chosen on other people than those who judge the loss
    induced_threshold: float
    loss: Difference


def best_deployed(deploy: Deploy, thresholds: Sequence[float]) -> tuple[float, Pair]:
    """Return the threshold whose rule errs least on the people it induces, and those people."""
    # The least error of many is too low: judge the rule on other people.
    if not len(thresholds):
        raise ParameterError("no thresholds to choose from; expected at least one")
    pairs = [deploy(float(t)) for t in thresholds]
    errors = [pair.induced.error(float(t)) for pair, t in zip(pairs, thresholds, strict=True)]
    best = int(np.argmin(errors))
    return float(thresholds[best]), pairs[best]


def suboptimality(
    choose: Deploy, judge: Deploy, thresholds: Sequence[float], failure_probability: float = 0.05
) -> Suboptimality:
    """Estimate Err_D(h*_S)(h*_S) - Err_D(h*_T)(h*_T) over thresholds, without winner's curse.

    Parameters
    ----------
    choose, judge
        Deployments among the people to choose on, and among others to judge on. Each must
        use the same people and the same draws for every threshold.
    thresholds
        The class of rules, at least one.
    failure_probability
        Of the interval of the loss.
    """
    best, _ = best_deployed(choose, thresholds)
    source = choose(best).source
    at_source = float(thresholds[int(np.argmin([source.error(float(t)) for t in thresholds]))])
    judged = judge(at_source).induced, judge(best).induced
    if judged[0].n != judged[1].n or judged[0].weight is not None or judged[1].weight is not None:
        raise DataError("the people who judge must be the same unweighted rows for every rule")
    wrong = judged[0].wrong(at_source), judged[1].wrong(best)
    loss = difference(*wrong, failure_probability, judged[0].clusters)
    return Suboptimality(at_source, best, loss)
