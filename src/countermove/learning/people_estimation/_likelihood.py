r"""The likelihood of prices that differ, its maximum, and intervals by profile.

A person refused by :math:`r` (the root of the cheapest crossing at unit price) who goes
:math:`o` beyond the boundary crosses iff :math:`t (r+o)^2 < 2`:

.. math:: P(\text{cross} \mid r) = (1-\pi)\, E_o\, \Phi\bigl((m - \log(r + o)) / v\bigr),
          \qquad m = (\log 2 - \mu)/2,\ v = \sigma/2 .
"""

from __future__ import annotations

import math
from copy import copy
from typing import Protocol

import numba
import numpy as np

from countermove._types import Floats
from countermove.learning.people_estimation._candidates import expit

STEPS = 25
"""Of one climb; about six are usual."""
ENOUGH = 1e-4
"""Gain in log-likelihood a step must promise for the climb to go on."""
LONGEST = 1.5
"""Of one step in any free number: they are logarithms and log-odds."""
SEARCH = 25
"""Points of a profile that are looked at before an end counts as open."""
CLOSE = 1e-2
"""How near to the limit the signed root of an end must be."""


class Likelihood(Protocol):
    """A log-likelihood of free numbers between bounds: logarithms, log-odds and distances."""

    low: Floats
    high: Floats

    def rows(self, free: Floats) -> tuple[Floats, Floats]:
        """Return everybody's log-likelihood, (n,), and its derivatives, (n, parameters)."""


def climb(model: Likelihood, start: Floats, held: tuple[int, ...] = ()) -> tuple[Floats, float]:
    """Return the likeliest point near a start, some numbers held if asked, and its likelihood."""
    free = np.clip(start, model.low, model.high)
    rows, slopes = model.rows(free)
    value, damping = float(rows.sum()), 1e-4
    for _ in range(STEPS):
        step, promise = _step(model, free, slopes, damping, held)
        if promise < ENOUGH:
            break
        tried = np.clip(free + step, model.low, model.high)
        rows, better = model.rows(tried)
        if float(rows.sum()) > value:
            gained = float(rows.sum()) - value
            free, slopes, value = tried, better, value + gained
            damping = max(0.1 * damping, 1e-8)
            if gained < ENOUGH:
                break
        else:
            damping = max(10.0 * damping, 1e-3)
            if damping > 1e3:
                break
    return free, value


def _step(
    model: Likelihood, free: Floats, slopes: Floats, damping: float, held: tuple[int, ...]
) -> tuple[Floats, float]:
    """Return a damped scoring step within the bounds, and what it promises."""
    gradient = slopes.sum(axis=0)
    moving = ~((free <= model.low) & (gradient < 0.0) | (free >= model.high) & (gradient > 0.0))
    moving[list(held)] = False
    step = np.zeros(len(free))
    if not moving.any():
        return step, 0.0
    part = slopes[:, moving]
    information = part.T @ part
    size = np.diag(information)
    matrix = information + np.diag(damping * size + 1e-9 * (1.0 + size.max()))
    step[moving] = np.linalg.solve(matrix, gradient[moving])
    step *= min(1.0, LONGEST / max(float(np.abs(step).max()), 1e-300))
    return step, 0.5 * float(step @ gradient)


def profile(
    model: Likelihood, peak: Floats, value: float, place: int, limit: float
) -> tuple[float, float]:
    """Return both ends of a profile interval; a bound within the limit makes an end infinite."""
    slopes = model.rows(peak)[1]
    covariance = np.linalg.pinv(slopes.T @ slopes, hermitian=True)
    error = math.sqrt(max(float(covariance[place, place]), 0.0))
    step = min(max(error, 1e-4), 0.5) * math.sqrt(limit)
    ends = [_end(model, peak, value, place, side * step, limit) for side in (-1.0, 1.0)]
    return ends[0], ends[1]


def _end(
    model: Likelihood, peak: Floats, value: float, place: int, step: float, limit: float
) -> float:
    target, edge = math.sqrt(limit), float((model.low if step < 0.0 else model.high)[place])
    if peak[place] == edge:
        return math.copysign(math.inf, step)
    inside, near = (float(peak[place]), 0.0), peak
    outside: tuple[float, float] | None = None
    at = inside[0] + step
    for _ in range(SEARCH):
        at = max(at, edge) if step < 0.0 else min(at, edge)
        begin = near.copy()
        begin[place] = at
        found, reached = climb(model, begin, (place,))
        root = math.sqrt(max(2.0 * (value - reached), 0.0))
        if abs(root - target) < CLOSE:
            return at
        if root < target:
            if at == edge:
                return math.copysign(math.inf, step)
            inside, near = (at, root), found
        else:
            outside = (at, root)
        at = _next(inside, outside, step, target)
        if outside is not None and abs(outside[0] - inside[0]) < 1e-7 * (1.0 + abs(at)):
            break
    return at


def _next(
    inside: tuple[float, float], outside: tuple[float, float] | None, step: float, target: float
) -> float:
    """Return where to look next: interpolated on the root, or further out."""
    if outside is None:
        gain = target / max(inside[1], 0.25 * target)
        return inside[0] + step * (min(gain - 1.0, 2.0) + 0.25 if inside[1] > 0.0 else 1.0)
    part = (target - inside[1]) / max(outside[1] - inside[1], 1e-12)
    return inside[0] + min(max(part, 0.05), 0.95) * (outside[0] - inside[0])


LOG_ROOT = 0.5 * math.log(2.0 * math.pi)
ROOT_HALF = math.sqrt(0.5)
NARROWEST = 2e-4
"""Of v: prices that differ by less than half a per mille are alike in all but name."""
WIDEST = 3.0
TINY = 1e-300
ALMOST = 1e-15
"""Floors of the chances to cross and to stay, whose logarithms are taken."""
RAREST = -9.0
"""Of log-odds: a share below one in ten thousand is none."""


def normal_parts(z: Floats) -> tuple[Floats, Floats]:
    """Return the normal distribution function and its density."""
    from scipy.special import ndtr

    return ndtr(z), np.exp(-0.5 * z * z - LOG_ROOT)


def stretched(reach: Floats, gap: Floats, over: Floats | float, proportional: bool) -> Floats:
    """Return the root of what going beyond the boundary costs at unit price."""
    # Exact without bounds; near a bound the last stretch is priced like the way to the boundary.
    return reach * (1.0 + (over if proportional else over / gap))


@numba.njit(cache=True, error_model="numpy", nogil=True)
def _normal(z):  # type: ignore[no-untyped-def]
    """Return the normal distribution function and its density."""
    return 0.5 * math.erfc(-ROOT_HALF * z), math.exp(-0.5 * z * z - LOG_ROOT)


@numba.njit(cache=True, error_model="numpy", nogil=True)
def _crossing_rows(m, v, never, paid, wanted, weights, kept, astray, values, slopes):  # type: ignore[no-untyped-def]
    """Write log-likelihoods, (n,), and derivatives, (n, 3): those who crossed, then the others."""
    k, moves = len(paid), kept * (1.0 - never)
    for i in range(len(astray)):
        share, first, second = 0.0, 0.0, 0.0
        for j in range(1 if i < k else len(weights)):
            z = (m - (paid[i] if i < k else wanted[i - k, j])) / v
            below, density = _normal(z)
            weight = 1.0 if i < k else weights[j]
            share += weight * below
            first += weight * density
            second -= weight * density * z
        crosses = moves * share + astray[i]
        total = max(crosses, TINY) if i < k else max(1.0 - crosses, ALMOST)
        factor = (moves if i < k else -moves) / total
        values[i] = math.log(total)
        slopes[i, 0] = factor * first / v
        slopes[i, 1] = factor * second
        slopes[i, 2] = -factor * never * share


class Crossings:
    """Exact records: who crossed is seen, and how far beyond the boundary those who did went."""

    # Free numbers: m, log v, log-odds of never moving. Those who crossed went ``paid``; the others
    # would have had to go ``wanted``, (n, nodes) for overshoots of these ``weights`` among
    # everybody. ``astray``: chances to cross for reasons of one's own, those who crossed first.

    def __init__(
        self, paid: Floats, wanted: Floats, weights: Floats, kept: float, astray: Floats
    ) -> None:
        ends = [np.log(values) for values in (paid, wanted.ravel())]
        least, most = (float(f([f(e) for e in ends if len(e)])) for f in (np.min, np.max))
        self.low = np.array([max(least, most - 15.0) - 1.0, math.log(NARROWEST), RAREST])
        self.high = np.array([most + 2.0, math.log(WIDEST), 7.0])
        self.paid, self.wanted = ends[0], ends[1].reshape(wanted.shape)
        self.weights, self.kept, self.astray = weights, kept, astray

    def rows(self, free: Floats) -> tuple[Floats, Floats]:
        """Return log-likelihoods and their derivatives: those who crossed, then the others."""
        values, slopes = np.empty(len(self.astray)), np.empty((len(self.astray), 3))
        law = (float(free[0]), math.exp(free[1]), expit(float(free[2])))
        people = (self.paid, self.wanted, self.weights, self.kept, self.astray)
        _crossing_rows(*law, *people, values, slopes)
        return values, slopes


def exponential_nodes(ratio: float) -> tuple[Floats, Floats]:
    """Return nodes and weights of a standard exponential, finer where noise is finer than it."""
    # ``ratio``: overshoot to noise. Between two nodes lies about one standard deviation.
    fine = min(0.35, 1.0 / max(ratio, 1e-9))
    edges = [0.0]
    while edges[-1] < 8.0 and len(edges) < 40:
        edges.append(edges[-1] + max(fine, 0.45 * edges[-1] * min(1.0, fine / 0.35)))
    ends = np.array([*edges, np.inf])
    tail = np.exp(-ends)
    above = np.append((1.0 + ends[:-1]) * tail[:-1], 0.0)
    weights = tail[:-1] - tail[1:]
    return (above[:-1] - above[1:]) / weights, weights


@numba.njit(cache=True, error_model="numpy", nogil=True)
def _noisy_rows(free, logs, shares, people, u, w, along, values, slopes):  # type: ignore[no-untyped-def]
    """Write log-likelihoods, (n,), and derivatives, (n, 10); ``slopes`` are zero before."""
    gap, advance, able, stretch, stray = people
    v, beta, blur, tau = logs[0], logs[1], logs[2], logs[3]
    never, strays = shares[0], shares[1]
    q, kept = 1.0 - never, 1.0 - strays
    for i in range(len(gap)):
        g, row = gap[i], slopes[i]
        x = advance[i] - free[7] - free[8] * g
        stay = math.exp(-0.5 * (x / tau) ** 2 - LOG_ROOT) / tau
        left, landed = 1.0, 0.0
        if able[i]:
            unit = g if along else 1.0
            variance = tau**2 + (blur * g) ** 2
            height = math.exp(-LOG_ROOT) / math.sqrt(variance)
            spreading = 0.0
            for k in range(len(u)):
                over = (free[3] + beta * u[k]) * unit
                whole = g + over
                z = (free[0] - stretch[i] - math.log(whole)) / v
                share, density = _normal(z)
                rest = x - g - over
                normal = height * math.exp(-0.5 * rest * rest / variance)
                pushed = q * w[k] * density * (normal - stay)
                moved = q * w[k] * share * normal
                pull = moved * rest / variance
                further = (pull - pushed / (v * whole)) * unit
                left -= q * w[k] * share
                landed += moved
                spreading += (rest * pull - moved) / variance
                row[0] += pushed / v
                row[1] -= pushed * z
                row[2] -= never * q * w[k] * share * (normal - stay)
                row[3] += further
                row[4] += beta * u[k] * further
                row[7] += pull
            row[5] = spreading * (blur * g) ** 2
            row[6] = spreading * tau**2
        row[6] += left * stay * ((x / tau) ** 2 - 1.0)
        row[7] += left * stay * x / tau**2
        row[8] = row[7] * g
        inner = left * stay + landed
        total = max(kept * inner + strays * stray[i], TINY)
        row *= kept / total
        row[9] = strays * kept * (stray[i] - inner) / total
        values[i] = math.log(total)


class NoisyAdvances:
    """Noisy records: moves show through drift and noise, which whoever has no reason shows too."""

    # Free numbers: m, log v, log-odds of never moving; margin and log of the mean exponential
    # overshoot beyond it; log of the optimisation error; log of the noise; drift: constant and
    # slope by gap; log-odds of strays.

    def __init__(
        self,
        gap: Floats,
        advance: Floats,
        reach: Floats,
        spread: float,
        noise: float,
        proportional: bool = False,
        nodes: tuple[Floats, Floats] | None = None,
    ) -> None:
        self.able = np.isfinite(reach) & (reach > 0.0)
        self.gap, self.advance, self.spread = gap, advance, spread
        self.g, self.a = gap[self.able], advance[self.able]
        self.stretch = np.log(reach[self.able] / self.g)
        self.stretched = np.zeros(len(gap))  # the same of everybody
        self.stretched[self.able] = self.stretch
        self.proportional = proportional
        self.u, self.w = exponential_nodes(1.0) if nodes is None else nodes
        self.width = math.hypot(spread, noise)
        self.stray = np.exp(-0.5 * (advance / self.width) ** 2 - LOG_ROOT) / self.width
        lowest, highest = math.log(reach[self.able].min()), math.log(reach[self.able].max())
        size = 1.0 if proportional else spread
        # Margin, its exponential part, optimisation error, noise, drift, strays.
        least = [0.0, math.log(1e-3 * size), math.log(1e-3), math.log(1e-4 * spread)]
        least += [-5.0 * spread, -2.0, -12.0]
        most = [size, math.log(size), 0.0, math.log(spread), 5.0 * spread, 2.0, 0.0]
        nearest = max(lowest, highest - 12.0) - 1.0
        self.low = np.array([nearest, math.log(NARROWEST), RAREST, *least])
        self.high = np.array([highest + 2.0, math.log(WIDEST), 7.0, *most])

    def rows(self, free: Floats) -> tuple[Floats, Floats]:
        """Return log-likelihoods and derivatives, in the order of people."""
        values, slopes = np.empty(len(self.gap)), np.zeros((len(self.gap), 10))
        logs = np.exp(free[[1, 4, 5, 6]])
        shares = np.array([expit(float(free[2])), expit(float(free[9]))])
        people = (self.gap, self.advance, self.able, self.stretched, self.stray)
        _noisy_rows(free, logs, shares, people, self.u, self.w, self.proportional, values, slopes)
        return values, slopes

    def with_nodes(self, nodes: tuple[Floats, Floats]) -> NoisyAdvances:
        """Return the same likelihood with other nodes of the overshoot."""
        other = copy(self)
        other.u, other.w = nodes
        other.high = self.high.copy()
        if len(other.u) == 1:  # one with the margin: it stays where it is
            other.high[4] = self.low[4]
        return other

    def _refused(self, free: Floats) -> tuple[Floats, Floats, Floats, Floats]:
        """Return densities of staying and of landing, (nodes, n), shares of crossing and rests."""
        tau, blur = math.exp(free[6]), math.exp(free[5])
        x = self.a - free[7] - free[8] * self.g
        unit = self.g if self.proportional else np.ones(1)
        over = (free[3] + math.exp(free[4]) * self.u)[:, None] * unit
        z = (free[0] - self.stretch - np.log(self.g + over)) / math.exp(free[1])
        deviation = np.hypot(tau, blur * self.g)
        rest = (x - self.g - over) / deviation
        landed = np.exp(-0.5 * rest**2 - LOG_ROOT) / deviation
        return np.exp(-0.5 * (x / tau) ** 2 - LOG_ROOT) / tau, landed, normal_parts(z)[0], rest

    def chances(self, free: Floats) -> tuple[Floats, Floats]:
        """Return the refused's chance of crossing, and the same once their advance is known."""
        q, strays = 1.0 - expit(float(free[2])), expit(float(free[9]))
        stay, landed, share, _ = self._refused(free)
        chance = q * (self.w @ share)
        moved = (1.0 - strays) * q * (self.w @ (share * landed))
        other = strays * self.stray[self.able] * chance
        total = (1.0 - strays) * (1.0 - chance) * stay + moved + strays * self.stray[self.able]
        return chance, (moved + other) / np.maximum(total, TINY)

    def alike(self, free: Floats) -> tuple[Floats, Floats]:
        """Return the refused's log-likelihoods if in reach, and if not, prices being equal."""
        never, strays = expit(float(free[2])), expit(float(free[9]))
        stay, landed, _, _ = self._refused(free)
        astray = strays * self.stray[self.able]
        inside = (1.0 - strays) * (never * stay + (1.0 - never) * (self.w @ landed)) + astray
        outside = (1.0 - strays) * stay + astray
        return np.log(np.maximum(inside, TINY)), np.log(np.maximum(outside, TINY))

    def drawn(self, free: Floats, rng: np.random.Generator) -> NoisyAdvances:
        """Return the same people with advances drawn from the model."""
        from scipy.special import ndtr

        n, g = len(self.gap), self.g
        tau, blur = math.exp(free[6]), math.exp(free[5])
        node = rng.choice(len(self.u), len(g), p=self.w / self.w.sum())
        over = (free[3] + math.exp(free[4]) * self.u[node]) * (g if self.proportional else 1.0)
        share = ndtr((free[0] - self.stretch - np.log(g + over)) / math.exp(free[1]))
        crosses = rng.random(len(g)) < (1.0 - expit(float(free[2]))) * share
        advance = free[7] + free[8] * self.gap + tau * rng.standard_normal(n)
        advance[self.able] += np.where(crosses, g + over, 0.0)
        advance[self.able] += np.where(crosses, blur * g * rng.standard_normal(len(g)), 0.0)
        astray = rng.random(n) < expit(float(free[9]))
        other = copy(self)
        other.advance = np.where(astray, self.width * rng.standard_normal(n), advance)
        other.a = other.advance[self.able]
        other.stray = np.exp(-0.5 * (other.advance / self.width) ** 2 - LOG_ROOT) / self.width
        return other

    def places(self, free: Floats) -> Floats:
        """Return where in their predicted distribution people's advances are, (n,)."""
        from scipy.special import ndtr

        never, strays = expit(float(free[2])), expit(float(free[9]))
        x = self.advance - free[7] - free[8] * self.gap
        place: Floats = ndtr(x / math.exp(free[6]))
        _, _, share, rest = self._refused(free)
        crosses = (1.0 - never) * self.w[:, None] * share
        moved = (crosses * ndtr(rest)).sum(axis=0)
        place[self.able] = (1.0 - crosses.sum(axis=0)) * place[self.able] + moved
        result: Floats = (1.0 - strays) * place + strays * ndtr(self.advance / self.width)
        return result
