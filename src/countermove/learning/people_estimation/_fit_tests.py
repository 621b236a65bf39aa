r"""Whether a model fits: by place, and whether one log-normal price explains who crossed.

Score tests: what was left of crossings, by bins of the gap, by features and groups, is cleared of
what fitting could explain and compared with its own variance. Where the gap is what is not
explained, two prices and an awareness that depends on the gap are fitted, and the likelier named.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from countermove._types import Floats, Index
from countermove.learning.people_estimation._candidates import (
    LEAST_ERROR,
    Advances,
    Candidate,
    expit,
)
from countermove.learning.people_estimation._likelihood import NoisyAdvances, normal_parts
from countermove.learning.people_estimation._moves import scale_of
from countermove.learning.people_estimation._price_fit import PriceFit
from countermove.learning.people_estimation.observation import CALM, Observation
from countermove.randomness import generator

PLACES = 6
STRIPS = 10
PER_CELL = 8
"""Cells: at most 10 strips of gap with 6 places each, and no fewer than 8 people expected."""
SHARP = 1e-5
"""Of the spread: noise below this is rounding."""
REJECTED = 1e-3
"""p-value below which a model is said not to fit: one true model in a thousand is refused."""
PRICES_REJECTED = 0.01
"""The same for prices, whose tests are named: one true model in a hundred is refused."""
BINS = 12
"""Of the gap, equal in information."""
PER_BIN = 5.0
"""Information of a bin from which on the sum of its residuals is as good as normal."""
DROPPED = 0.01
"""Of the largest eigenvalue: directions of which fitting leaves less are left out."""
CLEAR = 3.0
"""Standard deviations from both ends at which a mover is under way."""
DRAWS = 16
"""Tables drawn from a fit to noisy records, for the variance of scores."""
CURVE = 200
"""Bins of the gap in which alternatives are fitted."""


@dataclass(frozen=True)
class Misfit:
    """One way in which people are not as the model says."""

    # "stop short", "two prices", "awareness by gap", "price by group" or "elsewhere".
    name: str
    words: str
    p_value: float  # allowing for the number of tests


@dataclass(frozen=True)
class GoodnessOfFit:
    """How well a model fits."""

    p_value: float
    misplaced: float  # share of people who would have to be elsewhere for the counts to be equal
    strip: tuple[float, float]  # gaps (from, to) where it fits worst
    counts: NDArray[np.int64]  # people per strip and place
    level: float = REJECTED
    misfits: tuple[Misfit, ...] = ()

    @property
    def rejected(self) -> bool:
        """Whether the model does not fit."""
        return self.p_value < self.level


def goodness_of_fit(gap: Floats, seen: Advances, model: Candidate) -> GoodnessOfFit:
    """Test a fitted model on the people it was fitted to."""
    # If it fits, everybody's place in their own predicted distribution is uniform on (0, 1),
    # whatever their gap: a chi-square test of equal counts in cells of gap by place. Conservative:
    # no degrees are taken off for what was fitted.
    return by_place(gap, _places(seen, model))


def by_place(gap: Floats, places: Floats) -> GoodnessOfFit:
    """Test that places are uniform whatever the gap."""
    n = len(gap)
    strips = max(1, min(STRIPS, n // (PLACES * PER_CELL)))
    edges = np.unique(np.quantile(gap, np.linspace(0.0, 1.0, strips + 1)))
    strip = np.clip(np.searchsorted(edges, gap, side="right") - 1, 0, max(len(edges) - 2, 0))
    place = np.minimum((places * PLACES).astype(np.int64), PLACES - 1)
    counts = np.zeros((max(len(edges) - 1, 1), PLACES), dtype=np.int64)
    np.add.at(counts, (strip, place), 1)
    expected = counts.sum(axis=1, keepdims=True) / PLACES
    return _test(counts, np.broadcast_to(expected, counts.shape), edges)


def _test(counts: NDArray[np.int64], expected: Floats, edges: Floats) -> GoodnessOfFit:
    from scipy.stats import chi2

    parts = (counts - expected) ** 2 / np.maximum(expected, 1e-12)
    freedom = counts.shape[0] * (counts.shape[1] - 1)
    worst = int(np.argmax(parts.sum(axis=1)))
    return GoodnessOfFit(
        p_value=float(chi2.sf(float(parts.sum()), freedom)),
        misplaced=float(0.5 * np.abs(counts - expected).sum() / counts.sum()),
        strip=(float(edges[worst]), float(edges[min(worst + 1, len(edges) - 1)])),
        counts=counts,
    )


def _places(seen: Advances, model: Candidate) -> Floats:
    """Return where in their predicted distribution people are; an atom is spread at random."""
    from scipy.special import ndtr

    noise, mean = model.noise, model.mean
    share = np.where(model.inside, noise.non_movers, 1.0)
    if model.name == "drift":
        share = np.full(len(mean), noise.non_movers if seen.exact else 0.0)
    error = noise.optimisation_error * np.abs(mean)
    floor = max(noise.measurement, LEAST_ERROR * seen.spread)
    rng = generator(0, "places at an atom")
    deviation = np.hypot(error, floor)
    moving = ndtr((seen.values - mean) / deviation)
    # Without noise to speak of everybody who moves is at one point: an atom too.
    sharp = np.maximum(deviation, np.abs(seen.values - mean)) < SHARP * seen.spread
    moving = np.where(sharp, rng.random(len(mean)), moving)
    straying = ndtr(seen.values / math.hypot(seen.spread, 0.0 if seen.exact else floor))
    moved = noise.strays * straying + (1.0 - noise.strays) * (1.0 - share) * moving
    stayed = (1.0 - noise.strays) * share
    if not seen.exact:
        result: Floats = moved + stayed * ndtr(seen.values / floor)
        return result
    atom = np.where(seen.still, rng.random(len(mean)), (seen.values > 0.0).astype(np.float64))
    spread: Floats = moved + stayed * atom
    return spread


def price_fit_test(
    observed: Observation, fit: PriceFit, groups: Floats | None = None, names: Sequence[str] = ()
) -> GoodnessOfFit:
    """Test a fit of prices; misfits are named, and their p-values allow for the other tests."""
    rows = np.flatnonzero(fit.able)
    noisy = isinstance(fit.model, NoisyAdvances)
    rest = _Measured(fit, rows) if noisy else _Recorded(fit, rows)
    columns, called = _covariates(observed, rows, groups, names)
    by_group = _chi_square(*rest.by_price(columns))
    p_short, share = _short(observed, fit)
    place = _placed(observed, fit, rows)
    tests = {"gap": _chi_square(*rest.by_gap()), "group": by_group, "short": p_short}
    if noisy:
        tests["place"] = place.p_value
    adjusted = {name: min(1.0, len(tests) * p) for name, p in tests.items()}
    said: dict[str, Callable[[], tuple[str, str]]] = {
        "short": lambda: ("stop short", f"{share:.0%} of the movers stop short of approval"),
        "gap": lambda: _gap_words(fit, rows),
        "group": lambda: ("price by group", _group_words(rest, columns, called)),
        "place": lambda: ("elsewhere", f"{place.misplaced:.1%} of the people stand elsewhere"),
    }
    misfits = tuple(
        Misfit(*said[name](), adjusted[name]) for name in said
        if adjusted.get(name, 1.0) < PRICES_REJECTED
    )  # fmt: skip
    smallest = min(adjusted.values())
    return replace(place, p_value=smallest, level=PRICES_REJECTED, misfits=misfits)


class _Recorded:
    """Residuals of crossings that were seen: binary, with known variance."""

    def __init__(self, fit: PriceFit, rows: Index) -> None:
        self.reach, chance = fit.reach[rows], fit.chance[rows]
        self.rest = fit.crossed[rows] - chance
        self.variance = np.maximum(chance * (1.0 - chance), 1e-12)
        m, v, never = float(fit.peak[0]), math.exp(fit.peak[1]), expit(float(fit.peak[2]))
        z = (m - np.log(self.reach)) / v
        share, density = normal_parts(z)
        moves = (1.0 - fit.noise.strays) * (1.0 - never)
        self.slopes = moves * np.column_stack([density / v, -density * z, -share])

    def by_gap(self) -> tuple[Floats, Floats]:
        """Return what is left of crossings by bins of the gap, and its covariance."""
        return self._cleared(_bins(self.reach, self.variance))

    def by_price(self, columns: Floats) -> tuple[Floats, Floats]:
        """Return the same in the directions of a price that depends on columns."""
        return self._cleared((self.slopes[:, :1] / self.variance[:, None]) * columns)

    def _cleared(self, weights: Floats) -> tuple[Floats, Floats]:
        fitted = self.slopes / self.variance[:, None]
        inner = np.linalg.pinv(self.slopes.T @ fitted, hermitian=True)
        shared = weights.T @ self.slopes
        sums = weights.T @ self.rest - shared @ inner @ (fitted.T @ self.rest)
        spread = (weights * self.variance[:, None]).T @ weights - shared @ inner @ shared.T
        return sums, spread


class _Measured:
    """Scores of people whose crossings show through noise, and of people drawn from the fit."""

    # The variance of a score by its own square is correlated with the score, and rejects twice as
    # often as it should at these sizes; that of drawn people is not.

    def __init__(self, fit: PriceFit, rows: Index) -> None:
        assert isinstance(fit.model, NoisyAdvances)
        self.reach, self.rows, self.stays = fit.reach[rows], rows, 1.0 - fit.chance[rows]
        self.never = max(expit(float(fit.peak[2])), 1e-12)
        self.slopes = fit.model.rows(fit.peak)[1]
        rng = generator(0, "people drawn from a fit")
        models = (fit.model.drawn(fit.peak, rng) for _ in range(DRAWS))
        self.drawn = [model.rows(fit.peak)[1] for model in models]

    def by_gap(self) -> tuple[Floats, Floats]:
        """Return what is left of crossings by bins of the gap, and its covariance."""
        squared = np.mean([self._more(slopes) ** 2 for slopes in self.drawn], axis=0)
        bins = _bins(self.reach, squared)
        return self._cleared(lambda slopes: bins * self._more(slopes)[:, None])

    def by_price(self, columns: Floats) -> tuple[Floats, Floats]:
        """Return the same in the directions of a price that depends on columns."""
        return self._cleared(lambda slopes: slopes[self.rows, :1] * columns)

    def _more(self, slopes: Floats) -> Floats:
        """Return scores by the log-odds of crossing: defined also where nobody never moves."""
        result: Floats = -slopes[self.rows, 2] / self.never * self.stays
        return result

    def _cleared(self, scores: Callable[[Floats], Floats]) -> tuple[Floats, Floats]:
        both = [np.hstack([slopes[self.rows], scores(slopes)]) for slopes in self.drawn]
        information = np.mean([part.T @ part for part in both], axis=0)
        k = self.slopes.shape[1]
        calm = np.ones(len(self.slopes), dtype=bool)
        calm[self.rows] = False
        rest = np.mean([slopes[calm].T @ slopes[calm] for slopes in self.drawn], axis=0)
        size = np.sqrt(np.maximum(np.diag(information)[:k] + np.diag(rest), 1e-300))
        inner = (information[:k, :k] + rest) / np.outer(size, size)
        shared = information[k:, :k] / size
        project = shared @ np.linalg.pinv(inner, rcond=1e-8, hermitian=True)
        sums = scores(self.slopes).sum(axis=0) - project @ (self.slopes.sum(axis=0) / size)
        return sums, information[k:, k:] - project @ shared.T


def _bins(reach: Floats, information: Floats) -> Floats:
    """Return indicators of bins of the gap that hold equal information; none with too little."""
    order = np.argsort(reach, kind="stable")
    total = np.cumsum(information[order])
    count = min(BINS, int(total[-1] / PER_BIN))
    if count < 4:
        return np.zeros((len(reach), 0))
    which = np.minimum((count * (total - 0.5 * information[order]) / total[-1]), count - 1)
    indicators = np.zeros((len(reach), count))
    indicators[order, which.astype(np.intp)] = 1.0
    return indicators


def _chi_square(sums: Floats, covariance: Floats) -> float:
    from scipy.stats import chi2

    if not len(sums):
        return 1.0
    size = np.sqrt(np.maximum(np.diag(covariance), 1e-300))
    values, vectors = np.linalg.eigh(covariance / np.outer(size, size))
    kept = values > DROPPED * values.max()
    parts = (vectors[:, kept].T @ (sums / size)) ** 2 / values[kept]
    return float(chi2.sf(float(parts.sum()), int(kept.sum())))


def _covariates(
    observed: Observation, rows: Index, groups: Floats | None, names: Sequence[str]
) -> tuple[Floats, list[str]]:
    """Return what a price may depend on, cleared of the gap (a test of its own), with names."""
    columns = observed.X if groups is None else np.hstack([observed.X, groups])
    columns, called = columns[rows], [*observed.names, *names]
    gap = observed.gap[rows]
    curve = np.column_stack([np.ones(len(gap)), gap, gap**2])
    rest = columns - curve @ np.linalg.lstsq(curve, columns, rcond=None)[0]
    spread = rest.std(axis=0)
    kept = np.flatnonzero(spread > 1e-6 * (1.0 + columns.std(axis=0)))
    return rest[:, kept] / spread[kept], [called[j] for j in kept]


def _short(observed: Observation, fit: PriceFit) -> tuple[float, float]:
    """Return the p-value of "movers do not stop short", and the share of movers who do."""
    if not isinstance(fit.model, NoisyAdvances):
        return fit.p_short, fit.short
    from scipy.special import ndtr
    from scipy.stats import poisson

    tau, gap = fit.noise.measurement, observed.gap
    x = observed.advance - fit.drift[0] - fit.drift[1] * gap
    deviation = np.hypot(tau, fit.noise.optimisation_error * np.maximum(gap, 0.0))
    # Under way: clear of both ends by the noise of the records.
    start, aim = CLEAR * tau, gap + fit.margin(gap)
    end = aim - CLEAR * tau
    far = fit.able & (end > 2.0 * start)
    seen = int((far & (x > start) & (x < end)).sum())
    calm, strays = gap <= 0.0, fit.noise.strays
    if int(calm.sum()) >= CALM:
        strays = float((np.abs(x[calm]) > 4.0 * tau).mean())
    # A symmetric error leaves people under way, too.
    missed = ndtr((end - aim) / deviation) - ndtr((start - aim) / deviation)
    expected = float((fit.chance * missed + (1.0 - fit.chance) * ndtr(-CLEAR) + strays)[far].sum())
    movers = max(float((far & (x > start)).sum()), 1.0)
    return float(poisson.sf(seen - 1, max(expected, 1e-9))), seen / movers


def _placed(observed: Observation, fit: PriceFit, rows: Index) -> GoodnessOfFit:
    """Compare people's places with those the fit predicts."""
    if isinstance(fit.model, NoisyAdvances):
        return by_place(observed.gap, fit.model.places(fit.peak))
    draws = generator(0, "places at an atom").random(len(rows))
    stays, crossed = 1.0 - fit.chance[rows], fit.crossed[rows] > 0.5
    places = np.where(crossed, stays + draws * (1.0 - stays), draws * stays)
    return by_place(observed.gap[rows], places)


def _group_words(rest: _Recorded | _Measured, columns: Floats, names: Sequence[str]) -> str:
    """Say which column the price depends on most clearly."""
    sums, spread = rest.by_price(columns)
    marks = sums / np.sqrt(np.maximum(np.diag(spread), 1e-300))
    j = int(np.argmax(np.abs(marks)))
    # A longer reach is a lower price.
    pay = "less" if marks[j] > 0.0 else "more"
    return f"the price depends on {names[j]}: those with more of it pay {pay}"


def _gap_words(fit: PriceFit, rows: Index) -> tuple[str, str]:
    """Fit two prices and an awareness that depends on the gap; name the likelier."""
    order = rows[np.argsort(fit.reach[rows], kind="stable")]
    parts = np.array_split(order, min(CURVE, len(order)))
    x = np.array([float(np.log(fit.reach[part]).mean()) for part in parts])
    n = np.array([float(len(part)) for part in parts])
    k = np.array([float(fit.crossed[part].sum()) for part in parts])
    m, v, odds = (float(value) for value in fit.peak[:3])
    begin = [m, v - 0.7, -odds]
    two = _best(
        _two_prices, [[*begin, far, share] for far in (0.5, 1.0) for share in (-1.0, 1.0)], x, k, n
    )
    aware = _best(_aware, [[m, v, -odds, slope] for slope in (-1.0, 1.0)], x, k, n)
    # Two prices have one number more.
    if two[1] - 0.5 * math.log(len(rows)) > aware[1]:
        free = two[0]
        prices = [scale_of(math.exp(free[0] + side * math.exp(free[3]))) for side in (1.0, -1.0)]
        return "two prices", (
            f"there are two prices rather than one: about {expit(free[4]):.0%} pay {prices[0]:.2g} "
            f"and the others {prices[1]:.2g} for a move of one standard deviation"
        )
    free = aware[0]
    ends = [expit(free[2] + free[3] * math.exp(at)) for at in np.quantile(x, (0.05, 0.9))]
    return "awareness by gap", (
        f"whether people respond at all depends on the gap: {ends[0]:.0%} of those near the "
        f"boundary, {ends[1]:.0%} of those far from it"
    )


def _two_prices(free: Floats, x: Floats) -> Floats:
    from scipy.special import ndtr

    v, apart, share = math.exp(free[1]), math.exp(free[3]), expit(float(free[4]))
    near, far = ndtr((free[0] - apart - x) / v), ndtr((free[0] + apart - x) / v)
    result: Floats = expit(float(free[2])) * (share * far + (1.0 - share) * near)
    return result


def _aware(free: Floats, x: Floats) -> Floats:
    from scipy.special import ndtr

    odds = np.clip(free[2] + free[3] * np.exp(x), -30.0, 30.0)
    result: Floats = ndtr((free[0] - x) / math.exp(free[1])) / (1.0 + np.exp(-odds))
    return result


def _best(
    curve: Callable[[Floats, Floats], Floats],
    starts: Sequence[Sequence[float]],
    x: Floats,
    k: Floats,
    n: Floats,
) -> tuple[list[float], float]:
    """Return the likeliest curve of crossing by log reach from several starts."""
    from scipy.optimize import minimize

    def badness(free: Floats) -> float:
        free = np.clip(free, -30.0, [30.0, 2.0, 9.0, 9.0, 9.0][: len(free)])
        p = np.clip(curve(free, x), 1e-9, 1.0 - 1e-9)
        return -float(k @ np.log(p) + (n - k) @ np.log1p(-p))

    found = [
        minimize(badness, start, method="Nelder-Mead", options={"maxfev": 600}) for start in starts
    ]
    best = min(found, key=lambda fit: fit.fun)
    return best.x.tolist(), -float(best.fun)
