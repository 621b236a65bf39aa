r"""People who want a higher score, whatever is decided: the response of performative prediction.

.. math:: \Delta(x) = \arg\max_{x'} s(x') - c(x, x')

Where the score is affine in what moves and the cost quadratic, everybody moves by
:math:`\frac12 Q^{-1} w`, cut off at the bounds.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from countermove.errors import CostError, ParameterError
from countermove.response.base import OnFailure, Response, Responses, people
from countermove.response.failures import raise_not_finite
from countermove.response.trade import slope_of
from countermove.scores import Score


class GainResponse(Response):
    r"""The exact answer of people to whom each point of score is worth one unit of cost.

    .. math:: x'_j = x_j + \mathrm{clip}\bigl(w_j / (2 q_j),\, lo_j(x),\, hi_j(x)\bigr)

    Parameters
    ----------
    cost
        Quadratic, weighted quadratic, or (where nothing bounds what moves) Mahalanobis.
        ``QuadraticCost(t)`` is the response strength :math:`\epsilon = 1/(2t)` of the
        performative-prediction papers: :math:`x' = x + \epsilon w`.
    actions
        Which moves are allowed; all by default. Bounds, but no constraints ``A``.

    Notes
    -----
    Unlike every other response this one reads the *scale* of the score: twice the score moves
    people twice as far. That is the model of Perdomo et al. (2020) and of look-ahead reasoning;
    for people who want the decision, use `BestResponse`.
    """

    name = "gain"
    exact_reach = True

    def respond(self, score: Score, X: Any, on_failure: OnFailure = "raise") -> Responses[Any]:
        """Return where people move to; tensors carry gradients to score, ``X`` and cost."""
        if not isinstance(X, Tensor):
            with torch.no_grad():
                found = self.respond(score, torch.from_numpy(people(X, score)))
            return Responses(
                found.x_new.numpy(),
                found.cost.numpy(),
                found.moved.numpy(),
                found.converged.numpy(),
            )
        moves = self._moves(score, X)
        cost = self.cost.price(torch.zeros_like(moves), moves)
        moved = (moves.detach() != 0.0).any(dim=1)
        return Responses(X + moves, cost, moved, torch.ones_like(moved))

    def scores_after(self, score: Score, X: Tensor) -> Tensor:
        """Return the score where people end up, with its whole gradient."""
        after: Tensor = score(X + self._moves(score, X))
        return after

    def worth(self, score: Score, after: Tensor) -> Tensor:
        """Return the score itself, unbounded: that is what these people want."""
        return after

    def _moves(self, score: Score, X: Tensor) -> Tensor:
        rows = people(X, score)
        raise_not_finite(rows, rows.sum(axis=1))
        plan = self.plan(score.n_features)
        if plan.actions.A is not None:
            raise ParameterError(
                "GainResponse reads bounds, not constraints A δ + b ≥ 0; drop A and b"
            )
        free = plan.movable(slope_of(score))
        if not bool(torch.isfinite(free.detach()).all()):
            raise ParameterError("the score's weights hold NaN or infinity")
        unbounded, _ = plan.facts(len(rows))
        wanted = self._wanted(free, torch.from_numpy(plan.moving), unbounded)
        if unbounded:
            return wanted.expand(len(rows), -1)
        plan.actions.box(rows)  # Refuses people without any allowed action, by row.
        parts = plan.bounds(len(rows))
        lower, upper, low, high = map(
            torch.from_numpy, (parts.lower, parts.upper, parts.min_value, parts.max_value)
        )
        raised = torch.maximum(wanted, torch.maximum(lower, low - X))
        moves = torch.minimum(raised, torch.minimum(upper, high - X))
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
