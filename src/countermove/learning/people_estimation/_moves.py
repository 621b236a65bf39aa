r"""How far people advance under a model, and in which direction: what each feature costs.

The cost is :math:`t\,c_1` with :math:`c_1` scaled so that a person without bounds pays
:math:`a^2` for an advance :math:`a`: its scale is the price of an advance of one unit, and the
reach of a best responder :math:`\sqrt{2/t}`. Under :math:`\sum_j q_j \delta_j^2` all move along
one line, :math:`\delta_j \propto w_j/q_j`, whose direction gives the weights up to the scale.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from countermove._types import Floats, Mask
from countermove.learning.people_estimation._candidates import Candidate
from countermove.learning.people_estimation.observation import Observation
from countermove.people import ActionSet, Cost, QuadraticCost, WeightedQuadraticCost
from countermove.response.base import GAIN
from countermove.response.best import BestResponse
from countermove.response.reduction import ActionPlan
from countermove.response.smooth import ScalarResponse
from countermove.scores import LinearScore, Score

NODES = 400
"""Gaps at which people without bounds are solved for; the others lie between two of them."""
JUMP = 0.05
"""Two neighbouring nodes further apart than this share of the largest move enclose the jump."""
NEARER = 32
"""Parts into which the space between two people is divided to place the jump."""
CONCAVE = 0.2277
r"""From :math:`t\tau^2` of half the largest curvature of the smoothed step on there is no jump."""


def reach_of(scale: float) -> float:
    r"""Return :math:`\sqrt{2/t}`: how far a best responder advances at most."""
    return float(np.sqrt(GAIN / scale)) if scale > 0.0 else np.inf


def scale_of(reach: float) -> float:
    """Return the cost scale with that reach."""
    return float(GAIN / reach**2) if reach > 0.0 else np.inf


class Movement:
    """Predicted advances of the people of an observation under one shape of the cost."""

    def __init__(
        self,
        observed: Observation,
        weights: Floats | None = None,  # shape of the cost, scaled as above; None: all alike
        rows: NDArray[np.intp] | None = None,
    ) -> None:
        chosen = np.arange(len(observed.X)) if rows is None else rows
        self.X = observed.X[chosen]
        self.gap = observed.gap[chosen]
        self.score: Score = observed.score
        self.actions = observed.actions.of_rows(chosen)
        self.unit = observed.unit
        self.weights = weights
        self.free = self._without_bounds()
        self._nodes = np.quantile(self.gap, np.linspace(0.0, 1.0, NODES))
        self._cell = np.searchsorted(self._nodes, self.gap)

    def cost(self, scale: float) -> Cost:
        """Return the cost of that scale."""
        if self.weights is None:
            return QuadraticCost(scale)
        return WeightedQuadraticCost(scale * self.weights)

    def difficulty(self) -> Floats:
        """Return what must be reached to cross, shape (n,): crosses iff below the reach."""
        # The root of the cheapest crossing at scale 1; the gap itself where nothing bounds the
        # move, infinite where no allowed move crosses, 0 for the approved.
        if self.free:
            return np.maximum(self.gap, 0.0)
        price = BestResponse(self.cost(1.0), self.actions).crossing_cost(self.score, self.X)
        result: Floats = np.sqrt(price)
        return result

    def smooth(self, scale: float, temperature: float, exact: bool = False) -> Floats:
        """Return the advance of people who climb a smoothed step, shape (n,)."""
        if not self.free:
            people = ScalarResponse(self.cost(scale), self.actions, temperature)
            return self._gained(people, self.score, self.X, self.unit, self.gap)
        people = ScalarResponse(QuadraticCost(scale), ActionSet(), temperature)
        # Else people are interpolated between neighbours, except around the jump.
        if exact or len(self.gap) <= NODES:
            return _along(people, self.gap)
        solved = _along(people, self._nodes)
        advance: Floats = np.interp(self.gap, self._nodes, solved)
        if scale * temperature**2 < CONCAVE:
            leaps = np.abs(np.diff(solved)) > JUMP * float(np.abs(solved).max())
            near = np.concatenate([[False], leaps, [False]])[self._cell]
            if near.any():
                advance[near] = _along(people, self.gap[near])
        return advance

    def jump(
        self, scale: float, temperature: float, advance: Floats
    ) -> tuple[float, float, float] | None:
        """Return the gap at which the smooth response jumps, and the advance on either side."""
        # None where it does not jump, or where bounds let everybody jump elsewhere. People must be
        # sorted by gap; ``advance`` is what `smooth` returned for them.
        if not self.free or scale * temperature**2 >= CONCAVE or len(self.gap) < 2:
            return None
        k = int(np.argmin(np.diff(advance)))
        if advance[k] - advance[k + 1] <= JUMP * float(np.abs(advance).max()):
            return None
        gaps = np.linspace(self.gap[k], self.gap[k + 1], NEARER + 1)
        nearer = _along(ScalarResponse(QuadraticCost(scale), ActionSet(), temperature), gaps)
        j = int(np.argmin(np.diff(nearer)))
        return float(0.5 * (gaps[j] + gaps[j + 1])), float(nearer[j]), float(nearer[j + 1])

    def _without_bounds(self) -> bool:
        plan = ActionPlan(self.actions, self.X.shape[1])
        return plan.actions.A is None and plan.facts(len(self.X))[0]

    @staticmethod
    def _gained(
        people: ScalarResponse, score: Score, X: Floats, unit: float, gap: Floats
    ) -> Floats:
        with torch.no_grad():
            after: Floats = people.scores_after(score, torch.from_numpy(X)).numpy()
        return after / unit + gap


def _along(people: ScalarResponse, gap: Floats) -> Floats:
    """Return the advance of people who differ in their gap alone: a line is all there is."""
    line = LinearScore(1)
    with torch.no_grad():
        line.weight.fill_(1.0)
        after: Floats = people.scores_after(line, torch.from_numpy(-gap[:, None])).numpy()
    return after + gap


CLEARLY = 4.0
"""Standard deviations of the noise from which on an advance is a move."""
ENOUGH = 20
"""Movers below which a direction is not estimated."""
PLENTY = 100
"""Movers with room from which on those near a bound are not needed."""
ROOM = 2.0
STRIPS = 40
TURNS = 50
PRECISION = 1e-13
ALIKE = 1e-6
"""Directions that differ by less, with no noise to excuse it, are the same."""
NEAR_BOUND = 1e-7
UNMOVED_PRICE = 1e4
"""Price, in units of the scale, of a feature nobody moves although the rule would pay for it."""
UNEQUAL = 0.01
"""p-value below which features are not priced alike."""


@dataclass(frozen=True)
class WeightEstimate:
    """The price of one feature: cost per squared unit of its move."""

    name: str
    value: float
    low: float
    high: float
    # False where the rule gave no reason to move it, or nobody did: only ``low`` is then known.
    identified: bool
    per_original_unit: float | None = None


@dataclass(frozen=True)
class Direction:
    """The line along which movers went."""

    along: Floats  # change of each feature per unit of advance, (d,); zero where nobody responds
    deviation: Floats  # standard errors
    covariance: Floats  # of ``along``, over the usable features, (k, k)
    movers: int  # how many people it is read from
    scatter: float  # mean square of what is off the line, per person and free feature
    energy: float  # mean square of the moves, likewise
    usable: Mask  # features a response moves under this rule, (d,)

    def same_as(self, slope: Floats) -> float:
        """Return the p-value of "all weights are equal": movers go along the slope itself."""
        from scipy.stats import chi2

        target = slope[self.usable] / float(np.sum(slope[self.usable] ** 2))
        off = self.along[self.usable] - target
        if float(np.abs(off).max()) < ALIKE or len(off) < 2:
            return 1.0
        statistic = float(off @ np.linalg.pinv(self.covariance, hermitian=True, rcond=1e-9) @ off)
        if float(np.trace(self.covariance)) <= ALIKE**2:
            return 0.0
        return float(chi2.sf(statistic, len(off) - 1))


def estimate_direction(observed: Observation, noise: float) -> Direction | None:
    """Fit moves as lengths times one direction of unit advance; None with too few movers."""
    movers = _movers(observed, noise)
    if len(movers) < ENOUGH:
        return None
    roomy = _with_room(observed, float(np.quantile(observed.advance[movers], 0.99)))
    among = movers[roomy[movers]]
    enough = len(among) >= min(PLENTY, len(movers))
    # Exact records: alternating least squares over the movers. Otherwise picking movers by their
    # noisy advance would bend the line towards the rule's own slope, so the gap, known before,
    # serves as an instrument. People with room to move are preferred to those near a bound.
    if observed.recorded_exactly or not enough:
        return _from_movers(observed, among if enough else movers, tested=enough)
    return _by_gap(observed, np.flatnonzero(roomy), len(among))


def _from_movers(observed: Observation, who: NDArray[np.intp], tested: bool) -> Direction:
    """Fit movers by rank one; ``tested`` if none of them is near a bound."""
    usable, slope = observed.usable, observed.slope[observed.usable]
    moves = observed.moves[np.ix_(who, np.flatnonzero(usable))]
    free = _interior(observed, who)[:, usable]
    along, lengths = _rank_one(moves, free, slope)
    rest = np.where(free, moves - lengths[:, None] * along, 0.0)
    # First-order influence of every person on each coordinate.
    weight = np.maximum((free * lengths[:, None] ** 2).sum(axis=0), 1e-300)
    influence = rest * lengths[:, None] / weight
    size = float(slope @ along)
    influence = (influence - np.outer(influence @ slope / size, along)) / size
    scatter = float(np.sum(rest**2)) / max(int(free.sum()) - len(who), 1)
    energy = float(np.sum(np.where(free, moves, 0.0) ** 2)) / max(int(free.sum()), 1)
    facts = (len(who), scatter if tested else 0.0, energy)
    return _direction(usable, along / size, influence, facts)


def _by_gap(observed: Observation, who: NDArray[np.intp], movers: int) -> Direction:
    """Fit everybody's mean move by gap; noise averages out, whoever moved."""
    usable, slope = observed.usable, observed.slope[observed.usable]
    moves = observed.moves[np.ix_(who, np.flatnonzero(usable))]
    advance, order = moves @ slope, np.argsort(observed.gap[who], kind="stable")
    instrument = np.empty(len(who))
    for strip in np.array_split(order, STRIPS):
        # Everybody but oneself: else a person's own noise would come back in.
        rest = max(len(strip) - 1, 1)
        instrument[strip] = (advance[strip].sum() - advance[strip]) / rest
    total = float(instrument @ advance)
    along = instrument @ moves / total
    rest_moves = moves - np.outer(advance, along)
    influence = instrument[:, None] * rest_moves / total
    everybody = np.zeros(len(observed.X))
    everybody[who] = instrument
    drifted = observed.drift_influence(everybody)[:, usable]
    influence = np.vstack([influence, (drifted - np.outer(drifted @ slope, along)) / total])
    across = moves - np.outer(moves @ along, along) / float(along @ along)
    clear = advance > np.quantile(advance, 0.75)
    scatter = float(np.sum(across[clear] ** 2)) / max(int(clear.sum()) * (len(slope) - 1), 1)
    return _direction(usable, along, influence, (movers, scatter, float(np.mean(moves**2))))


def _direction(
    usable: Mask, along: Floats, influence: Floats, facts: tuple[int, float, float]
) -> Direction:
    covariance = influence.T @ influence
    full, errors = np.zeros(len(usable)), np.zeros(len(usable))
    full[usable], errors[usable] = along, np.sqrt(np.diag(covariance))
    return Direction(full, errors, covariance, *facts, usable)


def mean_shift(observed: Observation) -> Direction:
    """Return the direction from two samples: the difference of their means."""
    # Everybody's move lies on one line, so the mean move does too; bounds are not seen here.
    usable, slope = observed.usable, observed.slope[observed.usable]
    shift = (observed.X_after.mean(axis=0) - observed.X.mean(axis=0))[usable]
    size = float(slope @ shift)
    size = size if abs(size) > 1e-12 else 1e-12
    along = shift / size
    onto = (np.eye(len(shift)) - np.outer(along, slope)) / size
    parts = [
        (X[:, usable] - X[:, usable].mean(axis=0)) @ onto.T / len(X)
        for X in (observed.X, observed.X_after)
    ]
    return _direction(usable, along, np.vstack(parts), (len(observed.X_after), 0.0, 0.0))


def _movers(observed: Observation, noise: float) -> NDArray[np.intp]:
    advance = observed.moves @ observed.slope
    moved = advance > CLEARLY * noise
    if observed.recorded_exactly:
        moved &= ~observed.still
    return np.flatnonzero(moved & (advance > NEAR_BOUND * observed.spread))


def _with_room(observed: Observation, farthest: float) -> Mask:
    """Return who could have moved as far as the farthest without meeting a bound."""
    usable, slope = observed.usable, observed.slope
    bounds = observed.actions.for_response().bounds(*observed.X.shape)
    # Twice the move along the slope, feature by feature: weights may bend it.
    needed = ROOM * farthest * np.abs(slope)
    rising = slope > 0.0
    above = np.minimum(bounds.upper, bounds.max_value - observed.X)
    below = np.minimum(-bounds.lower, observed.X - bounds.min_value)
    room = (np.where(rising, above, below) >= needed)[:, usable]
    return np.asarray(room.all(axis=1), dtype=bool)


def _interior(observed: Observation, who: NDArray[np.intp]) -> Mask:
    """Return which cells stand at no bound after the move."""
    bounds = observed.actions.for_response().of_rows(who).bounds(len(who), observed.X.shape[1])
    after = observed.X_after[who]
    moves = after - observed.X[who]
    near = NEAR_BOUND * (1.0 + np.abs(after))
    free: Mask = (
        (after > bounds.min_value + near)
        & (after < bounds.max_value - near)
        & ((moves > bounds.lower + near) | (bounds.lower == 0.0))
        & ((moves < bounds.upper - near) | (bounds.upper == 0.0))
    )
    return free


def _rank_one(moves: Floats, free: Mask, start: Floats) -> tuple[Floats, Floats]:
    """Return direction and lengths of the best rank-one fit to the free cells."""
    along, weights = start / np.linalg.norm(start), free.astype(np.float64)
    for _ in range(TURNS):
        before = along
        lengths = (weights * moves) @ along / np.maximum(weights @ along**2, 1e-300)
        along = lengths @ (weights * moves) / np.maximum(lengths**2 @ weights, 1e-300)
        along = along / np.linalg.norm(along)
        if float(np.abs(along - before).max()) < PRECISION:
            break
    lengths = (weights * moves) @ along / np.maximum(weights @ along**2, 1e-300)
    return along, lengths


def chosen_shape(observed: Observation, direction: Direction | None, cost: str) -> Floats | None:
    """Return the weights of the cost, None for all alike."""
    if cost == "quadratic" or direction is None or int(direction.usable.sum()) < 2:
        return None
    if cost == "auto" and direction.same_as(observed.slope) >= UNEQUAL:
        return None
    return shape_of(observed, direction)


def shape_of(observed: Observation, direction: Direction) -> Floats:
    """Return weights q_j = u_j / b_j, shape (d,), with one unit of advance costing 1."""
    # Features without a reason to move, whose price the rows do not show, get 1; features nobody
    # moves get a price at which nobody would.
    usable = direction.usable
    slope, along = observed.slope[usable], direction.along[usable]
    with np.errstate(divide="ignore"):
        prices = np.where(along * slope > 0.0, slope / along, UNMOVED_PRICE)
    prices = np.minimum(prices, UNMOVED_PRICE)
    # The same line, scaled so that a unit of advance costs one.
    prices *= float(np.sum(slope**2 / prices))
    weights = np.ones(len(usable))
    weights[usable] = prices
    return weights


def weight_estimates(
    observed: Observation,
    direction: Direction,
    shape: Floats,
    chosen: Candidate,
    scales: Floats | None,
    z: float,
) -> tuple[WeightEstimate, ...]:
    """Return one price per feature; intervals include the scale's uncertainty."""
    if chosen.scale is None or chosen.scale_interval is None:
        return ()
    ends = chosen.scale_interval
    # ``scales``: original units per standardised unit; ``z``: standard errors to either side.
    slack = math.log(ends.high / ends.low) / 2 if ends.closed else math.inf
    found = []
    for j, name in enumerate(observed.names):
        value = float(chosen.scale * shape[j])
        use = float(direction.along[j] * np.sign(observed.slope[j]))
        error = z * float(direction.deviation[j])
        known = bool(direction.usable[j]) and use > error
        low, high = 0.0, math.inf
        if direction.usable[j] and use + error > 0.0:
            part = math.log1p(error / use) if known else 0.0
            low = chosen.scale * abs(float(observed.slope[j])) / (use + error)
            low *= math.exp(part - math.hypot(part, slack))
        if known:
            part = -math.log1p(-error / use)
            high = value * math.exp(math.hypot(part, slack))
        unit = None if scales is None else value / float(scales[j]) ** 2
        found.append(WeightEstimate(name, value, low, high, known, unit))
    return tuple(found)
