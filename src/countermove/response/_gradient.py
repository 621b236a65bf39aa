"""Along which directions a solved action may still move.

The tangent map T is the inverse Hessian of the cost restricted to moves that
keep every active bound, constraint and kink active.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from countermove._types import Floats, Mask
from countermove.response._dense_knots import dense_tangent_rows
from countermove.response._polyline_solver import Chunk, solve_reach
from countermove.response._possible import BranchSolution, solve_possible_reach
from countermove.response.reduction import (
    DENSE,
    KINKED,
    STRAIGHT,
    KernelArrays,
    Reduction,
    RowSolutions,
    raise_failures,
    refuse_moving_people,
)


class TangentImage(NamedTuple):
    """``T v`` per person, the multiplier of ``v`` on the kink, and what it pushes on the bounds."""

    moved: Floats
    kink: Floats
    edge: Floats


@dataclass(frozen=True)
class TangentMaps:
    """The tangent maps of a batch."""

    arrays: KernelArrays
    chunk: Chunk
    price: Floats
    action: Floats
    free: Mask  # features strictly inside their bounds, (n, d)
    on_kink: Mask  # whose action stays where kink . action = 0
    by_value: Mask  # features stopped by a bound on x_new, which moves with x, (n, d)

    branches: BranchSolution | None = None

    def apply(self, vector: Floats) -> TangentImage:
        """Return T times one vector per person, shape (n, d)."""
        if self.branches is not None:
            return TangentImage(
                self.branches.tangent(vector), np.zeros(len(vector)), np.zeros_like(vector)
            )
        if self.arrays.kind == DENSE:
            moved, edge = np.empty_like(self.action), np.empty_like(self.action)
            arrays, chunk = self.arrays, self.chunk
            dense_tangent_rows(
                arrays.inverse, arrays.rows, arrays.coupling, arrays.pull, chunk.h, self.price,
                np.ascontiguousarray(vector), moved, edge,
            )  # fmt: skip
            return TangentImage(moved, np.zeros(len(moved)), edge)
        if self.arrays.kind == STRAIGHT:
            return self._apply_straight(vector)
        inverse = self.free / (2.0 * self.arrays.weights)
        kink = self.arrays.kink
        share = np.zeros(len(vector))
        if self.arrays.kind == KINKED:
            square = inverse @ (kink * kink)
            live = self.on_kink & (square > 0.0)
            share[live] = ((vector * inverse) @ kink)[live] / square[live]
        rest = vector - share[:, None] * kink
        return TangentImage(rest * inverse, share, np.where(self.free, 0.0, rest))

    def edges(self, vector: Floats) -> Floats:
        """Return what a vector without free part pushes on the bounds."""
        if self.arrays.kind in (DENSE, STRAIGHT):
            return self.apply(vector).edge
        return np.where(self.free, 0.0, vector)

    def _apply_straight(self, vector: Floats) -> TangentImage:
        # A linear cost has no curvature: on the kink one feature makes up for the others.
        share = np.zeros(len(vector))
        pivot, has = self._pivot()
        live = has & self.on_kink
        rows = np.flatnonzero(live)
        share[rows] = vector[rows, pivot[rows]] / self.arrays.kink[pivot[rows]]
        rest = vector - share[:, None] * self.arrays.kink
        return TangentImage(np.zeros_like(vector), share, np.where(self.free, 0.0, rest))

    def _pivot(self) -> tuple[NDArray[np.int64], Mask]:
        return self.free.argmax(axis=1), self.free.sum(axis=1) == 1

    def level(
        self,
        on_action: Floats | None,
        on_score: Floats,
        by_score: Floats,
        eta: Floats,
        rho: Floats,
        r: Floats,
    ) -> None:
        """Set the weights of people on a level piece: the limit of no curvature, in place."""
        # Their price is fixed by one feature's ratio; that feature takes up whatever keeps the
        # score where the price wants it.
        pivot, has = self._pivot()
        w = self.arrays.slope
        for i in np.flatnonzero(has & ~self.on_kink & (w[pivot] != 0.0)):
            slope = w[pivot[i]]
            theta = 0.0 if on_action is None else on_action[i, pivot[i]] / slope
            total = theta + on_score[i]
            eta[i] = -theta
            rho[i] = 0.0 if np.isneginf(by_score[i]) else -total / by_score[i]
            r[i, pivot[i]] = rho[i] / slope
        many = self.free.sum(axis=1) > 1
        for i in np.flatnonzero(many & np.isneginf(by_score)):
            # A free crossing: the action is a share of the best free one and shrinks along itself.
            if on_action is not None:
                eta[i] = -(on_action[i] @ self.action[i]) / (w @ self.action[i])


def tangent_maps(reduction: Reduction, rows: Floats, solution: RowSolutions) -> TangentMaps:
    """Read the active bounds and kinks off a solved batch."""
    arrays = reduction.arrays
    chunk, action = Chunk(arrays, rows, np.arange(len(rows))), solution.out
    at_low, at_high = action <= chunk.lo, action >= chunk.hi
    free = ~(at_low | at_high)
    # The tighter bound is one on places where the box is narrower than the bounds on actions.
    lower, upper = arrays.bounds[:2]
    by_value = at_low & (chunk.lo > lower) | at_high & (chunk.hi < upper) & ~at_low
    on_kink = (solution.multiplier > 0.0) & (solution.multiplier < 1.0)
    return TangentMaps(
        arrays, chunk, solution.price, action, free, on_kink, by_value, reduction.branches
    )


@dataclass(frozen=True)
class Stationarity:
    r"""The derivatives of the price equation :math:`u = f(z;\ s_{last}, N)`, each (n,)."""

    by_score: Floats  # minus infinity pins the score: a crossing stops on the boundary
    by_last: Floats  # by the score of the last proxy's fixed point
    by_unit: Floats  # by N(w)

    @classmethod
    def pinned(cls, crosses: Mask) -> Stationarity:
        """Return the equation of people who stop on the boundary; the others stay."""
        zero = np.zeros(len(crosses))
        return cls(np.where(crosses, -np.inf, 0.0), zero, zero)


@dataclass(frozen=True)
class Solved:
    """A solved batch, ready to be differentiated."""

    reduction: Reduction
    rows: Floats
    solution: RowSolutions
    equation: Stationarity
    last_action: Floats | None = None
    prices: Tensor | None = None  # factors on everybody's cost: the equation is u = f / p then

    def backward(self, on_action: Floats | None, on_score: Floats) -> tuple[Any, ...]:
        """Return gradients for slope, weights, matrix, kink, unit, score, last score, X, prices."""
        # ``on_action`` (n, d) and ``on_score`` (n,) are the incoming gradients on the action and
        # on the score after it.
        arrays, action, price = self.reduction.arrays, self.solution.out, self.solution.price
        along = tangent_maps(self.reduction, self.rows, self.solution)
        p = along.apply(np.broadcast_to(arrays.slope, action.shape))
        zero = TangentImage(np.zeros_like(action), np.zeros(len(action)), np.zeros_like(action))
        t = zero if on_action is None else along.apply(on_action)
        eta, rho, r = self._weights_of(along, p, t, on_action, on_score)
        column = eta[:, None]
        last = rho * self.equation.by_last
        kinks = t.kink + eta * p.kink
        edges = t.edge + column * p.edge
        at = action if self.last_action is None else self.last_action
        by_slope = column * action + last[:, None] * at + price[:, None] * r
        return (
            by_slope.sum(axis=0),
            -2.0 * (r * action).sum(axis=0),
            None if self.reduction.matrix is None else -(r.T @ action + action.T @ r),
            -(self.solution.multiplier[:, None] * r + kinks[:, None] * action).sum(axis=0),
            float(rho @ self.equation.by_unit),
            eta,
            last,
            -edges * along.by_value,
            None if self.prices is None else -rho * price / self.prices.detach().numpy(),
        )

    def _weights_of(
        self,
        along: Any,
        p: TangentImage,
        t: TangentImage,
        on_action: Floats | None,
        on_score: Floats,
    ) -> tuple[Floats, Floats, Floats]:
        """Return the weight on the score, on the price equation, and on stationarity."""
        slope = self.reduction.arrays.slope
        by_score = self.equation.by_score
        R = p.moved @ slope
        c = np.zeros(len(R)) if on_action is None else (on_action * p.moved).sum(axis=1)
        pinned = np.isneginf(by_score)
        A = np.where(pinned, 0.0, by_score)
        rate = np.where(pinned & (R > 0.0), R, 1.0)
        eta = np.where(pinned, -c / rate, (c * A + on_score) / (1.0 - R * A))
        rho = np.where(pinned, 0.0, (c + R * on_score) / (1.0 - R * A))
        r = t.moved + eta[:, None] * p.moved
        if self.reduction.arrays.kind == STRAIGHT:
            along.level(on_action, on_score, by_score, eta, rho, r)
        return eta, rho, r


def _packed(ctx: Any, gradients: tuple[Any, ...]) -> tuple[Any, ...]:
    """Turn the NumPy gradients into tensors for the inputs that want one."""
    wanted = ctx.needs_input_grad[: len(gradients)]
    packed = [
        torch.as_tensor(value, dtype=torch.float64) if need else None
        for value, need in zip(gradients, wanted, strict=True)
    ]
    return (*packed, None)


class _ActionOf(torch.autograd.Function):
    """The solved action as a function of everything it depends on."""

    @staticmethod
    def forward(ctx: Any, *inputs: Any) -> Tensor:
        ctx.solved = inputs[-1]
        return torch.from_numpy(ctx.solved.solution.out.copy())

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, *grads: Tensor) -> tuple[Any, ...]:
        solved: Solved = ctx.solved
        h = np.ascontiguousarray(grads[0].numpy())
        return _packed(ctx, solved.backward(h, np.zeros(len(h))))


class _ScoreAfter(torch.autograd.Function):
    """The score after the response as a function of everything it depends on."""

    @staticmethod
    def forward(ctx: Any, *inputs: Any) -> Tensor:
        solved: Solved
        solved, after = inputs[-1]
        ctx.solved = solved
        return torch.from_numpy(after)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, *grads: Tensor) -> tuple[Any, ...]:
        return _packed(ctx, ctx.solved.backward(None, grads[0].numpy()))


def attach_action(solved: Solved, X: Tensor, now: Tensor, last: Tensor | None = None) -> Tensor:
    """Return the solved action with its graph; ``now`` and ``last`` are score tensors."""
    result: Tensor = _ActionOf.apply(*_inputs(solved, X, now, last), solved)  # type: ignore[no-untyped-call]
    return result


def attach_score(
    solved: Solved, after: Floats, X: Tensor, now: Tensor, last: Tensor | None = None
) -> Tensor:
    """Return the scores after the response with their graph."""
    result: Tensor = _ScoreAfter.apply(*_inputs(solved, X, now, last), (solved, after))  # type: ignore[no-untyped-call]
    return result


def _inputs(solved: Solved, X: Tensor, now: Tensor, last: Tensor | None) -> tuple[Any, ...]:
    reduction = solved.reduction
    if reduction.plan.possible:
        refuse_moving_people(X)
    return (
        reduction.slope,
        reduction.weights,
        reduction.matrix,
        reduction.kink,
        reduction.unit,
        now,
        now if last is None else last,
        X,
        solved.prices,
    )


class ReachFunction(torch.autograd.Function):
    r"""The largest affordable score gain, :math:`\max\{w\cdot\delta : c(\delta) \le g\}`.

    The budget :math:`g` is one number for everybody or one per person.
    """

    @staticmethod
    def forward(ctx: Any, *inputs: Any) -> Tensor:
        """Solve for everybody's reach."""
        (reduction, rows), budgets = inputs[-1], inputs[5].detach().numpy()
        n = len(rows)
        solution = RowSolutions.empty(n, np.zeros_like(rows))
        reach = np.empty(n)
        if reduction.plan.possible:
            reduction = solve_possible_reach(reduction, rows, budgets, solution, reach)
        else:
            solve_reach(reduction.arrays, rows, budgets, solution, reach)
        raise_failures(rows, solution.status, reduction.arrays)
        ctx.solved = (reduction, rows, solution)
        return torch.from_numpy(reach)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, *grads: Tensor) -> tuple[Any, ...]:
        """Apply the envelope theorem: the maximising action is all that is needed."""
        # δ in the slope, -∂c/u in the cost, 1/u in the budget, and the multipliers of active
        # bounds in the bounds.
        reduction, rows, solution = ctx.solved
        arrays, action = reduction.arrays, solution.out
        g = grads[0].numpy()
        per_cost = np.where(np.isfinite(solution.price), g / solution.price, 0.0)
        priced = per_cost[:, None] * action
        by_X = None
        if ctx.needs_input_grad[4]:
            along = tangent_maps(reduction, rows, solution)
            marginal = 2.0 * action * arrays.weights
            if reduction.matrix is not None:
                marginal = 2.0 * action @ arrays.matrix
            elif reduction.weights is None:
                marginal = np.zeros_like(action)
            marginal = marginal + solution.multiplier[:, None] * arrays.kink
            rest = g[:, None] * arrays.slope - per_cost[:, None] * marginal
            by_X = -along.edges(rest) * along.by_value
        gradients = (
            g @ action,
            -(priced * action).sum(axis=0),
            -(priced.T @ action),
            -(solution.multiplier @ priced),
            by_X,
            per_cost,
        )
        return _packed(ctx, gradients)

    @classmethod
    def of(cls, reduction: Reduction, X: Tensor, budgets: Tensor) -> Tensor:
        """Return the reach of everybody, with its graph; ``budgets`` has shape (1,) or (n,)."""
        if reduction.plan.possible:
            refuse_moving_people(X)
        rows = np.ascontiguousarray(X.detach().numpy())
        result: Tensor = cls.apply(  # type: ignore[no-untyped-call]
            reduction.slope,
            reduction.weights,
            reduction.matrix,
            reduction.kink,
            X,
            budgets,
            (reduction, rows),
        )
        return result


def crossing_action(reduction: Reduction, X: Tensor, now: Tensor, solution: RowSolutions) -> Tensor:
    """Return the actions of best responders, with the derivative of the crossing point."""
    rows = np.ascontiguousarray(X.detach().numpy())
    equation = Stationarity.pinned(solution.crossed)
    return attach_action(Solved(reduction, rows, solution, equation), X, now)
