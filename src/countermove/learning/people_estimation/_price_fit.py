r"""Fitting prices that differ: best responders with a median price, its spread, and never-movers.

Exact records show who crossed, noisy ones do so in a mixture; either way three numbers are fitted
by maximum likelihood and their intervals are profiles. :math:`\sigma = 0` is a change point, not
a smooth model: its reaches are kept by a martingale bound and joined to the profile's.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from countermove._types import Floats, Index, Mask
from countermove.learning.people_estimation._candidates import (
    Candidate,
    Interval,
    Landing,
    Noise,
    Overshoot,
    expit,
    exponential,
    land,
    overshoot_nodes,
    summary,
)
from countermove.learning.people_estimation._likelihood import (
    Crossings,
    Likelihood,
    NoisyAdvances,
    climb,
    exponential_nodes,
    normal_parts,
    profile,
    stretched,
)
from countermove.learning.people_estimation._moves import scale_of
from countermove.learning.people_estimation.observation import CALM, Observation

ROUNDS = 3
"""Prices and the overshoot of those who stayed are fitted in turn."""
LEAST_CROSSED = 5
"""People who crossed below whom nothing is fitted."""
STARTS = ((-1.5, -2.0), (-0.4, -0.4), (-3.0, -1.2))
"""(log v, log-odds of never moving) from which the search starts."""
ONE = (np.zeros(1), np.ones(1))
"""The overshoot of people who all go by the same margin."""
NEEDED = 3.0
"""Log-likelihood an overshoot must add to be needed: its two numbers at one in twenty."""
SPREAD, FINER = 0.7, 1.3
"""Where the largest spread that goes with equal prices is looked for, downwards by this factor."""
CELLS = 10
"""Parameters that the histogram of landings counts for."""


@dataclass(frozen=True)
class Alike:
    """Everybody pays the same: the likelihood as a step function of the reach."""

    value: float
    never: float
    bounds: Floats  # rank k lies between bounds[k] and bounds[k + 1]
    curve: Floats
    separated: bool  # exactly those in reach crossed

    @property
    def rank(self) -> int:
        """The likeliest number of people in reach."""
        return int(np.argmax(self.curve))

    @property
    def reach(self) -> float:
        """Half way between the last in reach and the first out of it."""
        low, high = self.bounds[self.rank], self.bounds[self.rank + 1]
        return float(0.5 * (low + high)) if math.isfinite(high) else float(low)

    @property
    def bracket(self) -> Interval:
        """Prices between the hardest crossing made and the easiest not made."""
        low, high = self.bounds[self.rank], self.bounds[self.rank + 1]
        return Interval(scale_of(high), scale_of(low), "bracket")

    def joined(self, low: float, high: float, top: float, drop: float) -> tuple[float, float]:
        """Return an interval of reaches, widened by those that equal prices leave possible."""
        # Moving the rank away from the truth multiplies the likelihood by a non-negative
        # martingale of mean one on either side: by Ville's inequality the likelihood of the true
        # rank is within log(2/alpha) of the highest but with probability alpha.
        kept = np.flatnonzero(self.curve >= top - drop)
        if not kept.size:
            return low, high
        return min(low, float(self.bounds[kept[0]])), max(high, float(self.bounds[kept[-1] + 1]))


@dataclass(frozen=True)
class PriceFit:
    """A fitted likelihood of prices, with what intervals and tests need of it."""

    model: Likelihood
    peak: Floats
    value: float
    alike: Alike
    noise: Noise
    overshoot: Overshoot
    able: Mask  # refused, with an allowed move that crosses, (n,)
    reach: Floats  # root of the crossing's cost at unit price, mean overshoot included, (n,)
    chance: Floats  # of crossing, 0 for who is not able, (n,)
    crossed: Floats  # seen to have crossed; noisy records: how probably, (n,)
    mean: Floats  # advance of those who cross, (n,)
    log_likelihood: float  # of all advances, to be compared with other models
    parameters: int
    p_short: float = 1.0
    short: float = 0.0
    drift: tuple[float, float] = (0.0, 0.0)

    def margin(self, gap: Floats) -> Floats:
        """Return the least that those who cross go beyond the boundary, noisy records."""
        assert isinstance(self.model, NoisyAdvances)
        result: Floats = float(self.peak[3]) * (gap if self.model.proportional else np.ones(1))
        return result

    def intervals(self, level: float) -> tuple[Interval, Interval, Interval]:
        """Return intervals of the median price, of the log-sd and of the share of never-movers."""
        from scipy.special import ndtri

        limit = float(ndtri(0.5 + level / 2.0)) ** 2
        top = max(self.value, self.alike.value)
        ends = [profile(self.model, self.peak, top, place, limit) for place in range(3)]
        low, high = (exponential(end) for end in ends[0])
        low, high = self.alike.joined(low, high, top, math.log(2.0 / (1.0 - level)))
        price = Interval(scale_of(high), scale_of(low), "profile")
        if self.alike.separated:
            price = self.alike.bracket
        if not math.isfinite(ends[1][0]):
            ends[1] = (-math.inf, max(ends[1][1], self._most_spread(top, limit)))
        spread = [2.0 * exponential(end) for end in ends[1]]
        shares = [expit(end) for end in ends[2]]
        return (
            price,
            Interval(spread[0], spread[1], "profile"),
            Interval(shares[0], shares[1], "profile"),
        )

    def _most_spread(self, top: float, limit: float) -> float:
        """Return the largest log v within the limit, looked for from above."""
        # Below the distance between two people the likelihood is rough, and a search from there
        # would stop at its first ridge.
        free, last = self.peak.copy(), math.inf
        for at in np.arange(math.log(SPREAD), float(self.model.low[1]), -math.log(FINER)):
            free[0], free[1] = math.log(self.alike.reach), at
            free, value = climb(self.model, free, (1,))
            root = math.sqrt(max(2.0 * (top - value), 0.0))
            if root <= math.sqrt(limit):
                part = (math.sqrt(limit) - root) / (last - root) if math.isfinite(last) else 0.0
                return float(at + part * math.log(FINER))
            last = root
        return -math.inf


def fit_prices(observed: Observation, difficulty: Floats, level: float) -> Candidate | None:
    """Fit median price, log-sd, never-movers and noise; None with too few people who crossed."""
    exact = observed.recorded_exactly
    fit = _recorded(observed, difficulty) if exact else _measured(observed, difficulty)
    return None if fit is None else _priced(fit, level)


def _priced(fit: PriceFit, level: float) -> Candidate:
    """Return a fit as a candidate with intervals of that level."""
    price, spread, never = fit.intervals(level)
    scale, log_sd = scale_of(math.exp(fit.peak[0])), 2.0 * math.exp(fit.peak[1])
    share = expit(float(fit.peak[2]))
    if spread.low <= 0.0:
        scale, log_sd, share = scale_of(fit.alike.reach), 0.0, fit.alike.never
    return Candidate(
        name="best",
        log_likelihood=fit.log_likelihood,
        parameters=fit.parameters - (log_sd == 0.0),
        noise=replace(fit.noise, non_movers=share),
        mean=np.where(fit.able, fit.mean, 0.0),
        inside=fit.able,
        scale=scale,
        scale_interval=price,
        log_sd=log_sd,
        log_sd_interval=spread,
        non_movers_interval=never,
        prices=fit,
        at_level=partial(_priced, fit),
    )


def _recorded(observed: Observation, difficulty: Floats) -> PriceFit | None:
    """Fit exact records."""
    gap, advance = observed.gap, observed.advance
    able = np.isfinite(difficulty) & (difficulty > 0.0) & (gap > observed.unseen)
    landing = land(gap, advance, able & ~observed.still, observed.spread, observed.slack)
    order = np.concatenate(
        [np.flatnonzero(landing.crossed), np.flatnonzero(able & ~landing.crossed)]
    )
    k = int(landing.crossed.sum())
    if k < LEAST_CROSSED:
        return None
    reach, g, along = difficulty[order], gap[order], landing.proportional
    paid = stretched(reach[:k], g[:k], landing.planned, along)
    nodes, seen = overshoot_nodes(landing.planned)
    wanted = stretched(reach[:, None], g[:, None], nodes, along)
    strays, astray = _strays(observed, g)
    alike = _alike_recorded(np.concatenate([paid, wanted[k:] @ seen]), k, 1.0 - strays, astray)
    weights = seen
    free = _first(Crossings(paid, wanted[k:], weights, 1.0 - strays, astray), paid, alike)
    for _ in range(ROUNDS):
        model = Crossings(paid, wanted[k:], weights, 1.0 - strays, astray)
        free, value = climb(model, free)
        chances = normal_parts((free[0] - np.log(wanted)) / math.exp(free[1]))[0]
        if len(nodes) == 1:
            break
        # Whoever would go far beyond crosses less often: those who crossed went less far.
        weights = seen / np.maximum(chances.mean(axis=0), 1e-12)
        weights = weights / weights.sum()
    mean_over = float(nodes @ weights)
    typical = stretched(reach, g, np.full(len(g), mean_over), along)
    chance = (1.0 - strays) * (1.0 - expit(float(free[2]))) * (chances @ weights) + astray
    return PriceFit(
        model=model,
        peak=free,
        value=value,
        alike=alike,
        noise=Noise(0.0, landing.scatter, 0.0, strays),
        overshoot=landing.overshoot,
        able=able,
        reach=_scattered(order, typical, len(gap)),
        chance=_scattered(order, chance, len(gap)),
        crossed=landing.crossed.astype(np.float64),
        mean=gap * (1.0 + mean_over) if along else gap + mean_over,
        log_likelihood=_comparable(observed, able, landing, strays, max(value, alike.value)),
        parameters=3 + (CELLS if len(nodes) > 1 or landing.scatter else 1),
        p_short=landing.p_short,
        short=landing.short,
    )


def _strays(observed: Observation, gap: Floats) -> tuple[float, Floats]:
    """Return the share of strays, as the approved show it, and the chances to cross as one."""
    from scipy.special import ndtr

    calm = observed.gap <= 0.0
    share = 0.0 if calm.sum() < 20 else min(float((~observed.still[calm]).mean()), 0.5)
    return share, share * ndtr(-gap / observed.spread)


def _first(model: Likelihood, paid: Floats, alike: Alike) -> Floats:
    """Return likely prices, from the best of several starts."""
    far = np.log(np.quantile(paid, (0.7, 0.9, 0.99)))
    points = [np.array([m, *rest]) for m in far for rest in STARTS]
    points.append(_same_prices(alike, model.low[1]))
    points.sort(key=lambda point: -float(model.rows(point)[0].sum()))
    return max((climb(model, point) for point in points[:2]), key=lambda found: found[1])[0]


def _same_prices(alike: Alike, narrowest: float) -> Floats:
    """Return equal prices as free numbers."""
    share = min(max(alike.never, 1e-9), 1.0 - 1e-9)
    return np.array([math.log(alike.reach), narrowest, math.log(share / (1.0 - share))])


def _comparable(
    observed: Observation, able: Mask, landing: Landing, strays: float, value: float
) -> float:
    """Return the log-likelihood of all advances, those of strays and approved people included."""
    spread = observed.spread
    astray = ~observed.still & ~landing.crossed
    share = max(strays, float(astray.mean()), 1e-6 / len(able))
    far = observed.advance[astray] / spread
    value += float((-0.5 * far**2 - math.log(spread * math.sqrt(2.0 * math.pi))).sum())
    value += int(astray.sum()) * math.log(share) + int((~able & ~astray).sum()) * math.log1p(-share)
    return value + landing.log_density


def _scattered(order: Index, values: Floats, n: int) -> Floats:
    result = np.zeros(n)
    result[order] = values
    return result


def _alike_recorded(reach: Floats, k: int, kept: float, astray: Floats) -> Alike:
    """Return the likelihood of equal prices; the first ``k`` people crossed."""
    crossed, least = np.arange(len(reach)) < k, 1e-9 / len(reach)

    def given(never: float) -> Alike:
        moves = kept * (1.0 - never) + astray
        inside = np.where(crossed, moves, np.maximum(1.0 - moves, least))
        outside = np.where(crossed, np.maximum(astray, least), 1.0 - astray)
        return _alike(reach, np.log(inside), np.log(outside), never)

    found = given(0.2)
    for _ in range(ROUNDS):
        within = reach <= found.reach
        found = given(float(1.0 - crossed[within].mean()) if within.any() else found.never)
    within = reach < found.reach
    return replace(found, separated=bool((crossed == within).all()))


def _alike(reach: Floats, inside: Floats, outside: Floats, never: float) -> Alike:
    """Return the likelihood of everybody as a function of how many are in reach."""
    order = np.argsort(reach, kind="stable")
    bounds = np.concatenate([[0.0], reach[order], [np.inf]])
    curve = np.concatenate([[0.0], np.cumsum((inside - outside)[order])]) + outside.sum()
    # A reach lies between two different people: ties move together.
    curve = np.where(bounds[1:] > bounds[:-1], curve, -np.inf)
    return Alike(float(curve.max()), never, bounds, curve, False)


def _measured(observed: Observation, difficulty: Floats) -> PriceFit | None:
    """Fit noisy records, with an overshoot in distance or in proportion, whichever is likelier."""
    gap, advance = observed.gap, observed.advance
    line, noise = calm_line(gap, advance)
    moved = advance - line[0] - line[1] * gap
    clear = np.isfinite(difficulty) & (moved > 0.5 * gap) & (gap > 2.0 * noise)
    if int(clear.sum()) < LEAST_CROSSED:
        return None
    found: list[tuple[NoisyAdvances, Floats, float]] = []
    for along in (False, True):
        over = (moved - gap)[clear] / (gap[clear] if along else 1.0)
        size = max(float(np.mean(over)), 0.0)
        ratio = size * (float(np.median(gap[clear])) if along else 1.0) / noise
        model = NoisyAdvances(
            gap, advance, difficulty, observed.spread, noise, along, exponential_nodes(ratio)
        )
        rest = [0.5 * size, math.log(max(0.5 * size, 0.01)), math.log(0.03), math.log(noise)]
        rest += [*line, -6.0]
        if found:
            starts = [np.concatenate([found[0][1][:3], rest])]
        else:
            middle = math.log(float(np.quantile(difficulty[clear], 0.8)))
            starts = [np.array([middle, *begin, *rest]) for begin in STARTS[:2]]
        fits = (climb(model, start) for start in starts)
        found.append((model, *max(fits, key=lambda fit: fit[1])))
    model, free, value = max(found, key=lambda fit: fit[2])
    if free[4] <= model.low[4] + 1e-6:
        model = model.with_nodes(ONE)
    return _measured_fit(observed, difficulty, model, free, value)


def _measured_alike(
    model: NoisyAdvances, difficulty: Floats, free: Floats, value: float
) -> tuple[Alike, Floats, bool]:
    """Return equal prices, where they start, and whether an overshoot is needed."""
    able = model.able
    plain = model.with_nodes(ONE)
    plain.high[3] = 0.0
    simple, reached = climb(plain, free)
    needed = value - reached > NEEDED
    if not needed:
        model, free = plain, simple
    over = float(free[3] + math.exp(free[4]) * (model.u @ model.w))
    for _ in range(ROUNDS):
        reach = stretched(difficulty[able], model.g, over, model.proportional)
        alike = _alike(reach, *model.alike(free), expit(float(free[2])))
        # The noise and the share of never-movers as they are if that is the reach.
        free = np.concatenate([_same_prices(alike, model.low[1]), free[3:]])
        free, _ = climb(model, free, held=(0, 1))
    rest = float(model.rows(free)[0][~able].sum())
    return replace(alike, curve=alike.curve + rest, value=alike.value + rest), free, needed


def _measured_fit(
    observed: Observation, difficulty: Floats, model: NoisyAdvances, free: Floats, value: float
) -> PriceFit:
    able, gap = model.able, observed.gap
    alike, same, needed = _measured_alike(model, difficulty, free, value)
    free, value = max((climb(model, start) for start in (free, same)), key=lambda fit: fit[1])
    chance, crossed = model.chances(free)
    over, along = float(free[3] + math.exp(free[4]) * (model.u @ model.w)), model.proportional
    typical = np.zeros(len(gap))
    typical[able] = stretched(difficulty[able], gap[able], over, along)
    law = free[3] + math.exp(free[4]) * model.u
    return PriceFit(
        model=model,
        peak=free,
        value=value,
        alike=alike,
        noise=Noise(0.0, math.exp(free[5]), math.exp(free[6]), expit(float(free[9]))),
        overshoot=summary(law, model.w, along) if over > 2e-3 * observed.spread else Overshoot(),
        able=able,
        reach=typical,
        chance=_scattered(np.flatnonzero(able), chance, len(gap)),
        crossed=_scattered(np.flatnonzero(able), crossed, len(gap)),
        mean=gap * (1.0 + over) if along else gap + over,
        log_likelihood=max(value, alike.value),
        # Overshoot and drift count where they are needed.
        parameters=6 + 2 * needed + 2 * _drifts(model, free),
        drift=(float(free[7]), float(free[8])),
    )


def _drifts(model: NoisyAdvances, free: Floats) -> bool:
    """Return whether everybody drifts by more than three standard errors."""
    slopes = model.rows(free)[1]
    variance = np.diag(np.linalg.pinv(slopes.T @ slopes, hermitian=True))[7:9]
    return bool((np.abs(free[7:9]) > 3.0 * np.sqrt(np.maximum(variance, 0.0))).any())


def calm_line(gap: Floats, advance: Floats) -> tuple[tuple[float, float], float]:
    """Return the drift of people without a reason to move, by gap, and the noise around it."""
    calm = gap <= 0.0
    if int(calm.sum()) < CALM:
        return (0.0, 0.0), max(1.4826 * float(np.median(np.abs(advance))), 1e-6)
    g, a = gap[calm], advance[calm]
    rows = np.column_stack([np.ones(len(g)), g])
    line = np.linalg.lstsq(rows, a, rcond=None)[0]
    for _ in range(3):
        rest = a - rows @ line
        size = 1.4826 * float(np.median(np.abs(rest))) + 1e-12
        near = np.abs(rest) < 4.0 * size
        line = np.linalg.lstsq(rows[near], a[near], rcond=None)[0]
    noise = max(1.4826 * float(np.median(np.abs(a - rows @ line))), 1e-6)
    return (float(line[0]), float(line[1])), noise
