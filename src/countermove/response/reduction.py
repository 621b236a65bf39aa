"""What the solvers read of score, cost and actions, and what they found for everybody.

The compiled kernels read plain arrays; `Reduction` keeps the same quantities as tensors, so that
gradients can flow back into the score and the cost. Errors name those nothing was found for.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from countermove._types import Floats, Mask
from countermove.errors import CostError, DataError, ParameterError, UnboundedResponseError, shown
from countermove.people import ActionSet, Cost
from countermove.people.action_box import Bounds, infeasible
from countermove.people.costs import CanonicalCost
from countermove.scores import LinearScore, Score

if TYPE_CHECKING:
    from countermove.response._possible import BranchSolution, PossiblePeople

Limits: TypeAlias = tuple[Floats, Floats, Floats, Floats, bool]
"""Bounds of actions and of places, lower and upper, (1, d) or (n, d); whether they matter."""


class ActionPlan:
    """What a response knows of its actions before it meets a score; made once and kept."""

    def __init__(self, actions: ActionSet, n_features: int) -> None:
        self.actions = actions.for_response()
        down, up = self.actions.directions(n_features)
        self.down, self.up, self.moving = down, up, down | up
        self.all_free = bool(down.all() and up.all())
        self.all_move = bool(self.moving.all())
        self.ones = self.moving.astype(np.float64)
        self.rising, self.falling = up.astype(np.float64), down.astype(np.float64)
        self._tensors = tuple(torch.from_numpy(part) for part in (down, up, self.moving))
        parts = (actions.lower, actions.upper, actions.min_value, actions.max_value)
        self.per_person = any(part is not None and part.ndim == 2 for part in parts)
        possible = self.actions.possible
        self.possible = possible is not None
        self.tied = possible is not None and not possible.only_ranges
        self._people: PossiblePeople | None = None
        self._bounds: dict[int, Bounds] = {}
        self._facts: dict[int, tuple[bool, bool]] = {}

    def people(self, rows: Floats) -> PossiblePeople:
        """Return the branches of people who stay possible; kept for the next rule they meet."""
        from countermove.response._possible import PossiblePeople

        if self._people is None or not np.array_equal(self._people.X, rows):
            self._people = PossiblePeople(self.actions, rows)
        return self._people

    def facts(self, n_rows: int) -> tuple[bool, bool]:
        """Return whether nothing bounds a feature that moves, and whether all have one box."""
        bounds = self.bounds(n_rows)
        if id(bounds) not in self._facts:
            facts = (_unbounded(bounds), _shared(bounds, self.actions))
            self._facts = {id(bounds): (False, False) if self.possible else facts}
        return self._facts[id(bounds)]

    def bounds(self, n_rows: int) -> Bounds:
        """Return the bounds for so many people."""
        key = n_rows if self.per_person else 0
        if key not in self._bounds:
            self._bounds = {key: self.actions.bounds(n_rows, len(self.moving))}
        return self._bounds[key]

    def limits(self, n_rows: int) -> Limits:
        """Return the bounds as the kernels take them."""
        bounds, (unbounded, _) = self.bounds(n_rows), self.facts(n_rows)
        return bounds.lower, bounds.upper, bounds.min_value, bounds.max_value, not unbounded

    def box(self, X: Tensor) -> tuple[Tensor, Tensor]:
        """Return everybody's box of actions with its graph; refuse people without any action."""
        possible = self.actions.possible
        self.actions.box(X.detach().numpy())
        lower, upper, low, high = (torch.from_numpy(part) for part in self.limits(len(X))[:4])
        lower, upper = torch.maximum(lower, low - X), torch.minimum(upper, high - X)
        if possible is None:
            return lower, upper
        # Whoever stands outside the usual range may stay or move inward.
        usual = torch.from_numpy(possible.low) - X, torch.from_numpy(possible.high) - X
        return torch.maximum(lower, usual[0].clamp(max=0.0)), torch.minimum(
            upper, usual[1].clamp(min=0.0)
        )

    def movable(self, slope: Tensor) -> Tensor:
        """Return the slope over the features that move."""
        return slope if self.all_move else slope * self._tensors[2]

    def usable(self, slope: Floats) -> Floats:
        """Return the slope where a person can move in its direction, zero elsewhere."""
        if self.all_free:
            return slope
        result: Floats = np.where(slope > 0.0, self.up, self.down) * slope
        return result

    def unit(self, slope: Tensor) -> Tensor:
        r"""Return :math:`\sup\{w\cdot\delta : \|\delta\|_2 \le 1\}` over movable directions."""
        if not self.all_free:
            down, up, _ = self._tensors
            slope = slope * torch.where(slope > 0.0, up, down)
        norm: Tensor = torch.linalg.vector_norm(slope, dim=-1)
        return norm


def slope_of(score: Score) -> Tensor:
    """Return the score's slope; refuse scores that are not affine in what moves."""
    slope = score.slope()
    if slope is None:
        raise ParameterError(
            f"{type(score).__name__} has no slope: it is not affine in the features that move, so "
            "the response does not reduce to one number per person and there is no N(w) to measure "
            "distance by. unit=<score per unit of distance> can stand for N(w), but nothing can "
            "stand for the slope: publish a score that is affine in what moves (LinearScore, or "
            "PartlyLinearScore, any network in the other features), or let people climb it "
            "(AscentResponse; RepresentationResponse for a RepresentationScore)"
        )
    return slope


def refuse_moving_people(X: Tensor) -> None:
    """Refuse derivatives in the people themselves where they have to stay possible."""
    if X.requires_grad:
        raise ParameterError(
            "responses of people who stay possible follow the rule and the cost, not the people: "
            "which branch is open to somebody changes by jumps with where they stand. Detach X, "
            "or drop `possible` from the actions"
        )


def _unbounded(bounds: Bounds) -> bool:
    held = (bounds.lower == 0.0) & (bounds.upper == 0.0)
    loose = np.isinf(bounds.lower) & np.isinf(bounds.upper)
    by_value = np.isfinite(bounds.min_value).any() or np.isfinite(bounds.max_value).any()
    return not by_value and len(held) == 1 and bool((held | loose).all())


def _shared(bounds: Bounds, actions: ActionSet) -> bool:
    """Return whether everybody has the same box and constraints, hence the same polyline."""
    by_value = np.isfinite(bounds.min_value).any() or np.isfinite(bounds.max_value).any()
    alone = len(bounds.lower) == len(bounds.upper) == 1
    return alone and not by_value and (actions.b is None or actions.b.ndim == 1)


FREE, BOXED, KINKED, DENSE, STRAIGHT = range(5)
"""How the trade-off is traced: closed form, sorted bounds, kink, dual active set, knapsack."""


class KernelArrays(NamedTuple):
    """Arrays of one population and one rule, as the kernels take them."""

    kind: int
    shared: bool
    slope: Floats
    weights: Floats
    kink: Floats
    bounds: Limits
    matrix: Floats
    inverse: Floats
    rows: Floats
    coupling: Floats
    pull: Floats
    offsets: Floats


ROUNDING = 1e-15
"""Share of the largest weight below which a weight is rounding."""


@dataclass(frozen=True)
class Reduction:
    """One rule met by one population: arrays for the kernels, and tensors with their graphs."""

    arrays: KernelArrays
    plan: ActionPlan
    slope: Tensor
    weights: Tensor | None  # None where the cost has no such part
    matrix: Tensor | None
    kink: Tensor | None
    branches: BranchSolution | None = None  # where people stay possible and were solved

    @property
    def unit(self) -> Tensor:
        """N(w), the score per unit of distance over the movable directions."""
        return self.plan.unit(self.slope)

    @property
    def unit_value(self) -> float:
        """The same as a number."""
        return float(np.linalg.norm(self.plan.usable(self.arrays.slope)))


def make_reduction(score: Score, cost: Cost, plan: ActionPlan, n_rows: int) -> Reduction:
    """Bring score, cost and actions to the arrays and tensors a response works with."""
    slope = slope_of(score)
    d = slope.shape[0]
    shape = cost.canonical(d)
    if shape is None:
        raise CostError(
            "a conic cost has no scalar reduction; use ConicResponse, or BestResponse with it"
        )
    usable = plan.movable(slope)
    unbounded, shared = plan.facts(n_rows)
    kind = _kind(shape, unbounded, plan.actions)
    plain = as_array(usable)
    # A weight below the rounding of the largest moves no score, and only misleads a search.
    # One that is not a number stays, and is named below.
    plain = np.where(np.abs(plain) <= ROUNDING * np.abs(plain).max(initial=0.0), 0.0, plain)
    weights = np.ones(d) if shape.weights is None else as_array(shape.weights)
    kink = np.zeros(d) if shape.kink is None else as_array(shape.kink)
    arrays = KernelArrays(
        kind,
        shared,
        plain,
        weights,
        kink,
        plan.limits(n_rows),
        *_dense_parts(kind, shape.matrix, weights, plain, plan.moving, plan.actions),
    )
    _check_coefficients(arrays)
    return Reduction(arrays, plan, usable, shape.weights, shape.matrix, shape.kink)


def known_scores(score: Score, X: Tensor | Floats) -> tuple[Floats, Floats, float]:
    """Return ``(scores, weight, bias)``: weights for linear scores, else the scores themselves."""
    # The kernels form a linear score row by row, so that nobody's result depends on who else is
    # in the batch; other scores are evaluated here.
    if type(score) is LinearScore:
        return np.empty(0), as_array(score.weight), float(score.bias.detach())
    with torch.no_grad():
        values = score(torch.as_tensor(X).detach())
    return as_array(values), np.zeros(score.n_features), 0.0


def sharpness_of(temperature: float, unit: float) -> float:
    """Return score units to step units; a score nobody can raise keeps its own units."""
    return 1.0 / (temperature * unit) if unit > 0.0 else 1.0 / temperature


def _kind(shape: CanonicalCost, unbounded: bool, actions: ActionSet) -> int:
    if actions.A is not None and shape.kink is not None:
        raise CostError(
            "a linear or mixture cost with extra constraints A δ + b ≥ 0 has no scalar "
            "reduction; use ConicResponse"
        )
    if actions.A is not None or shape.matrix is not None:
        return DENSE
    if shape.weights is None:
        return STRAIGHT
    if shape.kink is not None:
        return KINKED
    return FREE if unbounded else BOXED


_EMPTY = np.empty((0, 0))
_NO_DENSE = (_EMPTY, _EMPTY, _EMPTY, _EMPTY, np.empty(0), _EMPTY)


def _dense_parts(
    kind: int,
    matrix: Tensor | None,
    weights: Floats,
    slope: Floats,
    moving: Mask,
    actions: ActionSet,
) -> tuple[Floats, ...]:
    if kind != DENSE:
        return _NO_DENSE
    d = len(slope)
    full = np.diag(weights) if matrix is None else as_array(matrix)
    inverse = np.zeros((d, d))
    block = np.ix_(moving, moving)
    if moving.any():
        inverse[block] = np.linalg.inv(2.0 * full[block])
    extra = np.empty((0, d)) if actions.A is None else actions.A
    offsets = np.empty((1, 0)) if actions.b is None else np.atleast_2d(actions.b)
    rows = np.vstack([np.eye(d), -np.eye(d), extra])
    coupling = rows @ inverse @ rows.T
    return full, inverse, rows, coupling, rows @ inverse @ slope, np.ascontiguousarray(offsets)


def _check_coefficients(arrays: KernelArrays) -> None:
    # One sum shows whether any weight is not finite, one minimum whether any is not positive.
    if not math.isfinite(arrays.slope.sum()):
        raise ParameterError("the score's weights hold NaN or infinity")
    if not arrays.weights.min() > 0.0:
        raise CostError(f"the weights of a quadratic cost must be positive, got {arrays.weights}")


def as_array(tensor: Tensor) -> Floats:
    """Return a tensor's numbers without its graph, contiguous."""
    return np.ascontiguousarray(tensor.detach().numpy(), dtype=np.float64)


FINE, NOT_FINITE, INFEASIBLE, NOT_CONVERGED, UNBOUNDED, STOPPED = range(6)
"""How a row ended; ``STOPPED`` rows met a bound and wait for their polyline."""


class RowSolutions(NamedTuple):
    """What the solvers found, one row per person; the kernels write it."""

    out: Floats  # the action, or where it leads, (n, d); (0, d) if not asked for
    price: Floats  # of score there, zero for those who stay
    multiplier: Floats  # of the cost's kink, in [0, 1]
    cost: Floats
    after: Floats  # the score there (smoothed step only)
    favoured: Mask  # the decision afterwards (hard step only)
    crossed: Mask  # who crossed the boundary for it (hard step only)
    moved: Mask
    status: NDArray[np.int64]  # how the row ended, see above

    @classmethod
    def empty(cls, n: int, out: Floats) -> RowSolutions:
        """Allocate the solutions of ``n`` people around an output array."""
        price, multiplier, cost, after = (np.zeros(n) for _ in range(4))
        favoured, crossed, moved = (np.zeros(n, dtype=bool) for _ in range(3))
        status = np.zeros(n, dtype=np.int64)
        return cls(out, price, multiplier, cost, after, favoured, crossed, moved, status)


def raise_not_finite(rows: Floats, scores: Floats) -> None:
    """Raise with the people whose features or score are NaN or infinite."""
    # A score is a sum over all features, so it is finite only if they are.
    bad = np.flatnonzero(~np.isfinite(scores))
    if not bad.size:
        return
    inside = ~np.isfinite(rows[bad]).all(axis=1)
    if inside.any():
        who = bad[inside]
        raise DataError(
            f"the features of the people in rows {shown(who)} hold NaN or infinity; "
            "clean or drop them first",
            rows=who,
        )
    raise DataError(
        f"the score is NaN or infinite for the people in rows {shown(bad)}; check its weights",
        rows=bad,
    )


def raise_failures(rows: Floats, status: NDArray[np.int64], arrays: KernelArrays) -> Mask:
    """Raise for bad input, impossible actions and runaway responses; return who converged."""
    if not status.any():
        return np.ones(len(status), dtype=bool)
    raise_not_finite(rows, np.where(status == NOT_FINITE, np.nan, 0.0))
    blocked = np.flatnonzero(status == INFEASIBLE)
    if blocked.size:
        raise infeasible(blocked)
    runaway = np.flatnonzero(status == UNBOUNDED)
    if runaway.size:
        free = np.flatnonzero((arrays.slope != 0.0) | (arrays.kink != 0.0))
        raise UnboundedResponseError(
            "a linear cost lets people move without end: some combination of features "
            f"{shown(free)} raises the score at no cost, so no best response exists for the "
            f"people in rows {shown(runaway)}. Bound the actions (lower, upper, min_value, "
            "max_value) of those features, or add a quadratic part (MixtureCost)",
            rows=runaway,
        )
    converged: Mask = status != NOT_CONVERGED
    return converged
