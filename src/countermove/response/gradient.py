r"""Derivatives of responses, by implicit differentiation.

A response satisfies ``u = price(z)`` with ``z = s + w . action(u)``; the action moves
only along what its active bounds and kink leave free, by the tangent map T (the
restricted inverse Hessian). With ``p = T w`` and ``R = w . p`` every derivative is
a few sums over ``T h`` and ``p``, whatever the cost.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from countermove._types import Floats, Mask
from countermove.response.answer import Answer
from countermove.response.failures import raise_failures
from countermove.response.tangents import Tangent, tangent_of
from countermove.response.trade import STRAIGHT, Reduction


@dataclass(frozen=True)
class Stationarity:
    r"""The derivatives of the price equation :math:`u = f(z;\ s_{last}, N)`.

    Parameters
    ----------
    by_score
        :math:`\partial f/\partial z`, shape (n,); minus infinity pins the score
        (a crossing stops on the boundary).
    by_last
        With respect to the score of the last proxy's fixed point.
    by_unit
        With respect to N(w).
    """

    by_score: Floats
    by_last: Floats
    by_unit: Floats

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
    answer: Answer
    action: Floats
    equation: Stationarity
    last_action: Floats | None = None

    def backward(self, on_action: Floats | None, on_score: Floats) -> tuple[Any, ...]:
        """Return gradients for slope, weights, matrix, kink, unit, score, last score, X.

        ``on_action`` (n, d) and ``on_score`` (n,) are the incoming gradients on the
        action and on the score after it.
        """
        trade, action, price = self.reduction.trade, self.action, self.answer.price
        along = tangent_of(trade, self.rows, self.answer.price, self.answer.multiplier, action)
        p = along.apply(np.broadcast_to(trade.slope, action.shape))
        zero = Tangent(np.zeros_like(action), np.zeros(len(action)), np.zeros_like(action))
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
            -(self.answer.multiplier[:, None] * r + kinks[:, None] * action).sum(axis=0),
            float(rho @ self.equation.by_unit),
            eta,
            last,
            -edges * along.by_value,
        )

    def _weights_of(
        self, along: Any, p: Tangent, t: Tangent, on_action: Floats | None, on_score: Floats
    ) -> tuple[Floats, Floats, Floats]:
        """Return the weight on the score, on the price equation, and on stationarity."""
        slope = self.reduction.trade.slope
        by_score = self.equation.by_score
        R = p.moved @ slope
        c = np.zeros(len(R)) if on_action is None else (on_action * p.moved).sum(axis=1)
        pinned = np.isneginf(by_score)
        A = np.where(pinned, 0.0, by_score)
        rate = np.where(pinned & (R > 0.0), R, 1.0)
        eta = np.where(pinned, -c / rate, (c * A + on_score) / (1.0 - R * A))
        rho = np.where(pinned, 0.0, (c + R * on_score) / (1.0 - R * A))
        r = t.moved + eta[:, None] * p.moved
        if self.reduction.trade.kind == STRAIGHT:
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
        return torch.from_numpy(ctx.solved.action.copy())

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
    result: Tensor = _ActionOf.apply(*_inputs(solved.reduction, X, now, last), solved)  # type: ignore[no-untyped-call]
    return result


def attach_score(
    solved: Solved, after: Floats, X: Tensor, now: Tensor, last: Tensor | None = None
) -> Tensor:
    """Return the scores after the response with their graph."""
    result: Tensor = _ScoreAfter.apply(*_inputs(solved.reduction, X, now, last), (solved, after))  # type: ignore[no-untyped-call]
    return result


def _inputs(reduction: Reduction, X: Tensor, now: Tensor, last: Tensor | None) -> tuple[Any, ...]:
    return (
        reduction.slope,
        reduction.weights,
        reduction.matrix,
        reduction.kink,
        reduction.unit,
        now,
        now if last is None else last,
        X,
    )


class Reach(torch.autograd.Function):
    r"""The largest affordable score gain, :math:`\max\{w\cdot\delta : c(\delta) \le 2\}`.

    By the envelope theorem its derivative needs the maximising action only:
    :math:`\delta` in the slope, :math:`-\partial c/u` in the cost, and what the
    multipliers of active bounds say in the bounds.
    """

    @staticmethod
    def forward(ctx: Any, *inputs: Any) -> Tensor:
        """Solve for everybody's reach."""
        from countermove.response.engine import solve_reach

        reduction, rows, gain = inputs[-1]
        n = len(rows)
        answer = Answer.empty(n, np.zeros_like(rows))
        reach = np.empty(n)
        solve_reach(reduction.trade, rows, gain, answer, reach)
        raise_failures(rows, answer.status, reduction.trade)
        ctx.solved = (reduction, rows, answer)
        return torch.from_numpy(reach)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, *grads: Tensor) -> tuple[Any, ...]:
        """Apply the envelope theorem."""
        reduction, rows, answer = ctx.solved
        trade, action = reduction.trade, answer.out
        g = grads[0].numpy()
        per_cost = np.where(np.isfinite(answer.price), g / answer.price, 0.0)
        priced = per_cost[:, None] * action
        by_X = None
        if ctx.needs_input_grad[4]:
            along = tangent_of(trade, rows, answer.price, answer.multiplier, action)
            marginal = 2.0 * action * trade.weights
            if reduction.matrix is not None:
                marginal = 2.0 * action @ trade.matrix
            elif reduction.weights is None:
                marginal = np.zeros_like(action)
            marginal = marginal + answer.multiplier[:, None] * trade.kink
            rest = g[:, None] * trade.slope - per_cost[:, None] * marginal
            by_X = -along.edges(rest) * along.by_value
        gradients = (
            g @ action,
            -(priced * action).sum(axis=0),
            -(priced.T @ action),
            -(answer.multiplier @ priced),
            by_X,
        )
        return _packed(ctx, gradients)

    @classmethod
    def of(cls, reduction: Reduction, X: Tensor, gain: float) -> Tensor:
        """Return the reach of everybody, with its graph."""
        rows = np.ascontiguousarray(X.detach().numpy())
        result: Tensor = cls.apply(  # type: ignore[no-untyped-call]
            reduction.slope,
            reduction.weights,
            reduction.matrix,
            reduction.kink,
            X,
            (reduction, rows, gain),
        )
        return result


class CrossingAction:
    """The action of best responders, with the derivative of the crossing point."""

    @staticmethod
    def of(reduction: Reduction, X: Tensor, now: Tensor, answer: Answer) -> Tensor:
        """Return the actions with their graph."""
        rows = np.ascontiguousarray(X.detach().numpy())
        equation = Stationarity.pinned(answer.crossed)
        solved = Solved(reduction, rows, answer, answer.out, equation)
        return attach_action(solved, X, now)
