r"""People who want a higher score, whatever is decided: the response of performative prediction.

.. math:: \Delta(x) = \arg\max_{x'} s(x') - c(x, x')

Where the score is affine in what moves and the cost quadratic, everybody moves by
:math:`\frac12 Q^{-1} w`, cut off at the bounds. Other scores with a gradient are climbed from where
people stand, up to a move that its own slope asks for.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from countermove._types import Floats, Mask
from countermove.errors import CostError, ParameterError
from countermove.response._gradient import Solved, Stationarity, attach_action
from countermove.response._possible import solve_possible_gain
from countermove.response.base import (
    OnFailure,
    Response,
    Responses,
    check_converged,
    checked_rows,
)
from countermove.response.reduction import (
    RowSolutions,
    raise_failures,
    raise_not_finite,
    slope_of,
)
from countermove.scores import Score
from countermove.scores.base import values

CLIMBS = 500
"""Steps up a score without a slope."""
SETTLED = 1e-8
"""A move that its own slope would change by no more has been climbed."""


class GainResponse(Response):
    r"""The exact response of people to whom each point of score is worth one unit of cost.

    .. math:: x'_j = x_j + \mathrm{clip}\bigl(w_j / (2 q_j),\, lo_j(x),\, hi_j(x)\bigr)

    Parameters
    ----------
    cost
        Quadratic, weighted quadratic, or (where nothing bounds what moves) Mahalanobis.
        ``QuadraticCost(t)`` is the response strength :math:`\epsilon = 1/(2t)` of the
        performative-prediction papers: :math:`x' = x + \epsilon w`.
    actions
        Which moves are allowed; all by default. Bounds and, at costs without cross terms, who
        can exist, but no constraints ``A``.

    Notes
    -----
    Unlike every other response this one reads the *scale* of the score: twice the score moves
    people twice as far. That is the model of Perdomo et al. (2020) and of look-ahead reasoning;
    for people who want the decision, use `BestResponse`.
    """

    name = "gain"
    exact_reach = True

    def answers(self, score: Score) -> bool:
        """Return whether the score has a slope, or a gradient to climb."""
        return score.differentiable

    def respond(self, score: Score, X: Any, on_failure: OnFailure = "raise") -> Responses[Any]:
        """Return where people move to; tensors carry gradients to score, ``X`` and cost.

        A score without a slope is climbed, and only by people given as an array.
        """
        tensor, tied = isinstance(X, Tensor), self.plan(score.n_features).tied
        if not tensor and score.slope() is None and self.answers(score):
            return self._climbed(score, checked_rows(X, score), on_failure)
        if not tensor and not tied:
            with torch.no_grad():
                return self._respond_plainly(score, checked_rows(X, score))
        given = X if tensor else torch.from_numpy(checked_rows(X, score))
        with torch.set_grad_enabled(tensor and torch.is_grad_enabled()):
            moves = self._moves(score, given)
            cost = self.cost.price(torch.zeros_like(moves), moves)
        moved = (moves.detach() != 0.0).any(dim=1)
        return Responses.like(X, given + moves, cost, moved, torch.ones_like(moved))

    def scores_after(self, score: Score, X: Tensor) -> Tensor:
        """Return the score where people end up, with its whole gradient."""
        after: Tensor = score(X + self._moves(score, X))
        return after

    def decisions_after(self, score: Score, X: Any) -> Mask:
        """Return who gets the favourable decision once people have moved, shape (n,)."""
        if score.slope() is not None:
            return super().decisions_after(score, X)
        moved = self.respond(score, checked_rows(X, score), on_failure="mask")
        return values(score, moved.x_new) >= 0.0

    def worth(self, score: Score, after: Tensor) -> Tensor:
        """Return the score itself, unbounded: that is what these people want."""
        return after

    def _respond_plainly(self, score: Score, rows: Floats) -> Responses[Floats]:
        """Respond without gradients; where nothing bounds them, all people share one move."""
        wanted, bounded = self._wanted_move(score, rows)
        moves = self._within_bounds(wanted, torch.from_numpy(rows)) if bounded else wanted[None]
        cost = self.cost.price(torch.zeros_like(moves), moves).numpy()
        action, n = moves.numpy(), len(rows)
        x_new = rows.copy()
        for j in np.flatnonzero(action.any(axis=0)):
            x_new[:, j] += action[:, j]
        return Responses(
            x_new,
            np.broadcast_to(cost, n).copy(),
            np.broadcast_to(action.any(axis=1), n).copy(),
            np.ones(n, dtype=bool),
        )

    def _climbed(self, score: Score, rows: Floats, on_failure: OnFailure) -> Responses[Floats]:
        """Climb the score less the cost, halving steps that do not rise, person by person."""
        refuse_infinite(rows)
        if self.plan(score.n_features).tied:
            raise ParameterError(
                "people who want a higher score climb one without a slope inside bounds, not under "
                "relations between columns; let them relax these: response.relaxed()"
            )
        X, moves = torch.from_numpy(rows), torch.zeros(rows.shape, dtype=torch.float64)
        movable = torch.from_numpy(self.plan(score.n_features).ones)

        def at(action: Tensor) -> tuple[Tensor, Tensor]:
            value, slope = score.value_and_gradient(X + action)
            wanted = self._wanted_of(slope * movable)
            return value - self.cost.price(torch.zeros_like(action), action), wanted

        with torch.no_grad():
            worth, wanted = at(moves)
            length = torch.ones(len(rows), dtype=torch.float64)
            for _ in range(CLIMBS):
                away = self._within_bounds(wanted, X) - moves
                converged = away.abs().amax(dim=1) <= SETTLED
                if bool(converged.all()):
                    break
                tried = moves + length[:, None] * away
                value, there = at(tried)
                better = value >= worth
                moves = torch.where(better[:, None], tried, moves)
                worth = torch.where(better, value, worth)
                wanted = torch.where(better[:, None], there, wanted)
                length = torch.where(better, (2.0 * length).clamp(max=1.0), 0.5 * length)
            cost = self.cost.price(torch.zeros_like(moves), moves).numpy()
        check_converged(converged.numpy(), on_failure)
        action = moves.numpy()
        moved = (np.abs(action) > SETTLED).any(axis=1)
        return Responses(rows + action, cost, moved, converged.numpy())

    def _wanted_of(self, slopes: Tensor) -> Tensor:
        """Return everybody's unbounded move, given the slope where they stand, (n, d)."""
        shape = self.cost.canonical(slopes.shape[1])
        if shape is None or shape.kink is not None or shape.weights is None:
            raise CostError(
                "people climb a score without a slope at quadratic or weighted quadratic costs; "
                f"got {self.cost!r}"
            )
        return slopes / (2.0 * shape.weights)

    def _moves(self, score: Score, X: Tensor) -> Tensor:
        """Return everybody's move, shape (n, d)."""
        if self.plan(score.n_features).tied:
            return self._possible_moves(score, X)
        wanted, bounded = self._wanted_move(score, checked_rows(X, score))
        return self._within_bounds(wanted, X) if bounded else wanted.expand(len(X), -1)

    def _possible_moves(self, score: Score, X: Tensor) -> Tensor:
        """Return the moves of people who stay possible, each in their best branch."""
        rows = checked_rows(X, score)
        refuse_infinite(rows)
        shape = self.cost.canonical(score.n_features)
        if shape is None or shape.weights is None or shape.kink is not None:
            raise CostError(
                "people who want a higher score and stay possible move exactly for quadratic and "
                f"weighted quadratic costs; got {self.cost!r}"
            )
        reduction = self.reduction(score, len(rows))
        solution = RowSolutions.empty(len(rows), np.empty_like(rows))
        reduction = solve_possible_gain(reduction, rows, solution)
        check_converged(raise_failures(rows, solution.status, reduction.arrays), "raise")
        fixed_price = Stationarity.pinned(np.zeros(len(rows), bool))
        return attach_action(Solved(reduction, rows, solution, fixed_price), X, score(X))

    def _wanted_move(self, score: Score, rows: Floats) -> tuple[Tensor, bool]:
        """Return the move of people whom nothing bounds, shape (d,), and whether bounds matter."""
        refuse_infinite(rows)
        plan = self.plan(score.n_features)
        if plan.actions.A is not None:
            raise ParameterError(
                "GainResponse reads bounds, not constraints A δ + b ≥ 0; drop A and b"
            )
        slope = plan.movable(slope_of(score))
        if not bool(torch.isfinite(slope.detach()).all()):
            raise ParameterError("the score's weights hold NaN or infinity")
        unbounded, _ = plan.facts(len(rows))
        return self._wanted(slope, torch.from_numpy(plan.moving), unbounded), not unbounded

    def _within_bounds(self, wanted: Tensor, X: Tensor) -> Tensor:
        plan = self.plan(wanted.shape[-1])
        lower, upper = plan.box(X)
        moves = torch.minimum(torch.maximum(wanted, lower), upper)
        # Who stands beyond a bound by rounding does not step back where nothing may change.
        return moves * torch.from_numpy(plan.ones)

    def _wanted(self, slope: Tensor, moving: Tensor, unbounded: bool) -> Tensor:
        """Return the move of people whom nothing bounds, shape (d,)."""
        shape = self.cost.canonical(len(slope))
        if shape is not None and shape.kink is None and shape.weights is not None:
            return slope / (2.0 * shape.weights)
        if shape is not None and shape.matrix is not None and unbounded:
            moves = torch.zeros_like(slope)
            block = shape.matrix[moving][:, moving]
            moves[moving] = torch.linalg.solve(2.0 * block, slope[moving])
            return moves
        raise CostError(
            f"people who want a higher score move exactly for quadratic and weighted quadratic "
            f"costs, and for Mahalanobis costs where nothing bounds what moves; got {self.cost!r}"
            f"{'' if unbounded else ' with bounds'}"
        )


def refuse_infinite(rows: Floats) -> None:
    """Raise with the people whose features are not finite; one sum shows whether there are any."""
    with np.errstate(over="ignore", invalid="ignore"):
        if np.isfinite(rows.sum()):
            return
        raise_not_finite(rows, np.where(np.isfinite(rows).all(axis=1), 0.0, np.nan))
