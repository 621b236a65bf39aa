r"""The threshold with the smallest error on the people it induces (App. E.1).

In the paper one feature, normal in each class; the share of label +1 answers by replicator
dynamics. That risk is smooth but not convex, and may be smallest at infinity (one class driven
out), so thresholds are bounded and several starts are tried. Of a real score on real people the
risk is a step function: every threshold, or a grid refined around its best, is tried.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from countermove._types import Floats
from countermove.errors import NotEnoughRowsError, ParameterError
from countermove.response import Response
from countermove.scores.base import score_of, values
from countermove.transfer.induced import answered_as_given
from countermove.transfer.sample import Sample
from countermove.transfer.shifts import Replicator, TargetShift, check_share, shifted_pair

RiskAndSlope = Callable[[float], tuple[float, float]]

SUFFICIENT = 1e-4
"""Armijo's rule: halve the step until the risk falls by this share of what the slope says."""
LONGEST, STEPS, STILL = 0.5, 500, 1e-9
"""Of a descent: its longest step, so that it stays in its valley, how many, and the least."""
TRIED = 60
"""Thresholds tried at once before the search goes into the neighbourhood of the best."""
TINY = 1e-12
"""Factor of the slope below which a step is none."""


@dataclass(frozen=True)
class GaussianClasses:
    """One feature, normal with the same spread in both classes."""

    means: tuple[float, float] = (0.0, 1.5)  # of label -1 and of label +1, the second larger
    spread: float = 1.0  # standard deviation

    def __post_init__(self) -> None:
        if not (self.spread > 0.0 and self.means[0] < self.means[1]):
            raise ParameterError(
                "expected a positive spread and the mean of label +1 above that of -1, got "
                f"means {self.means} and spread {self.spread}"
            )

    def rates(self, threshold: Floats) -> tuple[Floats, Floats]:
        """Return the true and the false positive rate of accepting from a threshold on."""
        from scipy.special import ndtr

        bad, good = ((mean - threshold) / self.spread for mean in self.means)
        return ndtr(good), ndtr(bad)

    def slopes(self, threshold: Floats) -> tuple[Floats, Floats]:
        """Return the derivatives of the rates."""
        bad, good = ((mean - threshold) / self.spread for mean in self.means)
        scale = -1.0 / (self.spread * math.sqrt(2.0 * math.pi))
        return scale * np.exp(-0.5 * good**2), scale * np.exp(-0.5 * bad**2)

    def best_threshold(self, favourable: float) -> float:
        """Return the optimal threshold when nobody answers."""
        check_share(favourable)
        bad, good = self.means
        odds = math.log((1.0 - favourable) / favourable)
        return (bad + good) / 2.0 + self.spread**2 * odds / (good - bad)


@dataclass(frozen=True)
class ThresholdProblem:
    """Which threshold to publish when the classes grow and shrink in answer to it."""

    favourable: float  # share of label +1 before
    replicator: Replicator  # how the shares answer
    classes: GaussianClasses = GaussianClasses()

    def share(self, threshold: float | Floats) -> Floats:
        r"""Return :math:`p(\theta)`."""
        rates = self.classes.rates(np.asarray(threshold, np.float64))
        return np.asarray(self.replicator.share(self.favourable, *rates))

    def risk(self, threshold: float | Floats) -> Floats:
        """Return the error on the people induced, p(t) FNR(t) + (1 - p(t)) FPR(t)."""
        true_positive, false_positive = self.classes.rates(np.asarray(threshold, np.float64))
        share = self.share(threshold)
        return share * (1.0 - true_positive) + (1.0 - share) * false_positive

    def slope(self, threshold: float | Floats) -> Floats:
        """Return the derivative of the risk, the answer of the shares included."""
        theta = np.asarray(threshold, np.float64)
        true_positive, false_positive = self.classes.rates(theta)
        rise_true, rise_false = self.classes.slopes(theta)
        (refused_bad, accepted_bad), (refused_good, accepted_good) = self.replicator.utility
        bad, good = self.replicator.fitness(true_positive, false_positive)
        p = self.favourable
        average = p * good + (1.0 - p) * bad
        turned = (accepted_good - refused_good) * rise_true * bad - good * (
            accepted_bad - refused_bad
        ) * rise_false
        rise_share = p * (1.0 - p) * turned / average**2
        share = p * good / average
        return np.asarray(
            rise_share * (1.0 - true_positive - false_positive)
            - share * rise_true
            + (1.0 - share) * rise_false
        )

    @property
    def source_best(self) -> float:
        """The threshold that is best when nobody answers."""
        return self.classes.best_threshold(self.favourable)


@dataclass(frozen=True, eq=False)
class ScoredPeople:
    """Which threshold of a real score to publish, of as many features as it has.

    Parameters
    ----------
    rule
        A score, or a model that has one.
    X, y
        People before deployment, shape (n, d), and their labels ±1.
    answer
        A `Response`: people move, and keep their labels. Or a `Replicator` or `Transition`: the
        classes grow and shrink.
    """

    rule: Any
    X: Floats
    y: Floats
    answer: Response | TargetShift

    def risk(self, threshold: float | Floats) -> Floats:
        """Return the share judged wrongly once "score at least this" is deployed."""
        tried = np.atleast_1d(np.asarray(threshold, np.float64))
        if isinstance(self.answer, Response):
            people, y = self.answer, np.asarray(self.y)
            after = [answered_as_given(self.rule, self.X, people, float(t))[1] for t in tried]
            wrong = [(s >= t) != (y > 0.0) for s, t in zip(after, tried, strict=True)]
            return np.array([float(np.mean(each)) for each in wrong])
        source = self._source()
        pairs = [shifted_pair(source, self.answer, float(t)) for t in tried]
        return np.array([p.induced.error(float(t)) for p, t in zip(pairs, tried, strict=True)])

    def thresholds(self) -> Floats:
        """Return every score that leaves people on either side, in either class."""
        source = self._source()
        good, bad = (source.score[source.label == label] for label in (1.0, -1.0))
        if not len(good) or not len(bad):
            raise NotEnoughRowsError("a threshold needs people of both labels, got one")
        low, high = max(good.min(), bad.min()), min(good.max(), bad.max())
        found = np.unique(source.score)
        inside = found[(found > low) & (found <= high)]
        return inside if len(inside) else found

    def _source(self) -> Sample:
        return Sample(values(score_of(self.rule), np.asarray(self.X)), self.y)


class ThresholdDescent(NamedTuple):
    """Where one descent ended, and whether it stands still there."""

    threshold: float
    risk: float
    still: bool


@dataclass(frozen=True)
class InducedMinimum:
    """The best threshold found; of a sample its risk is the least of many, hence too low."""

    threshold: float
    risk: float
    at_bound: bool  # the risk still falls there, often because a class is driven out
    descents: tuple[ThresholdDescent, ...]  # one per start; none where the risk is a step function
    # threshold and risk on a fine grid, polished: what descents are checked against
    exact: tuple[float, float]


def minimise_induced_risk(
    problem: ThresholdProblem | ScoredPeople,
    bounds: tuple[float, float] | None = None,
) -> InducedMinimum:
    """Return the threshold whose rule errs least on the people it induces.

    Parameters
    ----------
    problem
        The paper's classes and their answer, descended from the source-optimal threshold and nine
        between the bounds; or a real score and real people, whose thresholds are tried. Judge the
        latter on other people.
    bounds
        Thresholds allowed; None: -5 to 5 for the paper's classes, the scores for real people.
        Without bounds a fitness such as accuracy has no minimiser: driving one class out makes
        every decision right.
    """
    if isinstance(problem, ScoredPeople):
        return _smallest_step(problem, bounds)
    low, high = bounds = (-5.0, 5.0) if bounds is None else bounds
    if not low < high:
        raise ParameterError(f"bounds must be (low, high) with low < high, got {bounds!r}")
    starts = (problem.source_best, *np.linspace(low, high, 11)[1:-1].tolist())

    def risk_and_slope(theta: float) -> tuple[float, float]:
        return float(problem.risk(theta)), float(problem.slope(theta))

    descents = tuple(descend(risk_and_slope, float(np.clip(s, low, high)), bounds) for s in starts)
    best = min(descents, key=lambda found: found.risk)
    return InducedMinimum(
        threshold=best.threshold,
        risk=best.risk,
        at_bound=best.threshold in bounds,
        descents=descents,
        exact=smallest_on_interval(problem.risk, bounds),
    )


def _smallest_step(problem: ScoredPeople, bounds: tuple[float, float] | None) -> InducedMinimum:
    """Try quantiles of the scores between the bounds, then the scores around the best of them."""
    tried = problem.thresholds()
    if bounds is not None:
        if not bounds[0] < bounds[1]:
            raise ParameterError(f"bounds must be (low, high) with low < high, got {bounds!r}")
        tried = tried[(tried >= bounds[0]) & (tried <= bounds[1])]
    if not len(tried):
        raise ParameterError(f"no score lies within the bounds {bounds!r}")
    first, last, best = 0, len(tried) - 1, 0
    known: dict[int, float] = {}
    while True:
        step = max(1, (last - first) // TRIED)
        places = np.unique(np.append(np.arange(first, last + 1, step), [first, last]))
        new = [int(i) for i in places if int(i) not in known]
        known |= dict(zip(new, problem.risk(tried[new]).tolist(), strict=True)) if new else {}
        best = min(known, key=lambda i: (known[i], abs(tried[i])))
        if step == 1:
            break
        first, last = max(best - step, 0), min(best + step, len(tried) - 1)
    threshold, risk = float(tried[best]), known[best]
    at_bound = best in (0, len(tried) - 1)
    return InducedMinimum(threshold, risk, at_bound, (), (threshold, risk))


def descend(
    risk_and_slope: RiskAndSlope, start: float, bounds: tuple[float, float]
) -> ThresholdDescent:
    """Follow the negative slope, projected on the bounds, with Armijo's rule for its length."""
    # On flat stretches the factor of the slope doubles from step to step.
    low, high = bounds
    theta, step = start, 1.0
    risk, slope = risk_and_slope(theta)
    for _ in range(STEPS):
        step *= 2.0
        while True:
            moved = min(max(theta - min(max(step * slope, -LONGEST), LONGEST), low), high)
            new_risk, new_slope = risk_and_slope(moved)
            if new_risk <= risk - SUFFICIENT * slope * (theta - moved) or step < TINY:
                break
            step *= 0.5
        if abs(moved - theta) <= STILL:
            return ThresholdDescent(theta, risk, still=True)
        theta, risk, slope = moved, new_risk, new_slope
    return ThresholdDescent(theta, risk, still=False)


def smallest_on_interval(
    risk: Callable[[Floats], Floats], bounds: tuple[float, float], cells: int = 4_001
) -> tuple[float, float]:
    """Return the minimiser of a smooth function of one variable and its value, to 1e-9."""
    from scipy.optimize import minimize_scalar

    grid = np.linspace(*bounds, cells)
    values = np.asarray(risk(grid))
    best = int(np.argmin(values))
    around = (float(grid[max(best - 1, 0)]), float(grid[min(best + 1, cells - 1)]))
    found = minimize_scalar(
        lambda theta: float(risk(np.asarray(theta))),
        bounds=around,
        method="bounded",
        options={"xatol": 1e-10},
    )
    if found.fun < values[best]:
        return float(found.x), float(found.fun)
    return float(grid[best]), float(values[best])
