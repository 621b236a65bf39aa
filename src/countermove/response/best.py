r"""The best response to the hard step: fully rational people.

A person crosses iff the cheapest crossing costs less than the gain of 2, and
then stops on the boundary. The decision afterwards is "score + reach >= 0", with
reach the score gain a person can afford; that sum is also the training signal.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np
import torch
from torch import Tensor

from countermove._types import Floats, Mask
from countermove.errors import ParameterError
from countermove.people import QuadraticCost
from countermove.response._asked import AskedBest
from countermove.response._bounded_rows import safety_rows, score_rows
from countermove.response._gradient import ReachFunction, crossing_action
from countermove.response._polyline_solver import solve_best
from countermove.response._possible import solve_possible_best
from countermove.response._rows import best_rows, unbounded_path
from countermove.response.base import (
    GAIN,
    Crossing,
    OnFailure,
    Response,
    Responses,
    check_converged,
    checked_rows,
)
from countermove.response.reduction import (
    KINKED,
    STOPPED,
    Reduction,
    RowSolutions,
    known_scores,
    raise_failures,
    raise_not_finite,
    slope_of,
)
from countermove.response.tree_best import SearchedScore, TreeBest
from countermove.scores import Score
from countermove.scores.trees import TreeScore

if TYPE_CHECKING:
    import pandas as pd

    from countermove.response._conic_best import ConicBest


class BestResponse(Response):
    r"""The global best response to the decision :math:`\mathrm{sign}\, s(x')`.

    >>> import numpy as np, torch
    >>> from countermove.people import QuadraticCost
    >>> from countermove.response import BestResponse
    >>> from countermove.scores import LinearScore
    >>> score = LinearScore(2)
    >>> score.weight.data[:] = torch.tensor([1.0, 0.0])
    >>> BestResponse(QuadraticCost(2.0)).respond(score, np.array([[-0.5, 0.0], [-3.0, 0.0]])).moved
    array([ True, False])

    .. math:: \Delta(x) = \arg\max_{x'} \mathrm{sign}\, s(x') - c(x, x')

    Parameters
    ----------
    cost
        What a move costs; ``QuadraticCost(1.0)`` by default.
    actions
        Which moves are allowed; all by default.

    Notes
    -----
    A score of exactly 0 is favourable, and whoever crosses has ``score(x_new) >= 0``
    in floating point, in whatever order the score is summed. At equal cost and
    gain a person stays. For :math:`t\|\delta\|^2` the reach is :math:`\sqrt{2/t}\,\|w\|`.
    """

    name = "best"
    exact_reach = True
    priced_by_person = True
    _solver: ConicBest | None = None

    def __copy__(self) -> Self:
        """Return other rational people, with a conic solver of their own."""
        other = super().__copy__()
        other._solver = None
        return other

    def __getstate__(self) -> dict[str, Any]:
        """Leave the conic solver behind: its layers do not pickle."""
        return super().__getstate__() | {"_solver": None}

    def respond(self, score: Score, X: Any, on_failure: OnFailure = "raise") -> Responses[Any]:
        """Return where people move to; tensors carry the derivative of the crossing point."""
        if isinstance(score, SearchedScore):
            return self._searching(score).respond(score, X)
        if self._is_conic(score):
            return self._conic().respond(score, X)
        if isinstance(X, Tensor):
            return self._respond_with_gradient(score, X, on_failure)
        rows = checked_rows(X, score)
        reduction = self.reduction(score, len(rows))
        x_new = np.empty_like(rows)
        solution, _ = self._solve(score, rows, reduction, x_new, as_action=False)
        converged = raise_failures(rows, solution.status, reduction.arrays)
        check_converged(converged, on_failure)
        return Responses(x_new, self._paid(rows, solution.cost), solution.moved, converged)

    def scores_after(self, score: Score, X: Tensor) -> Tensor:
        r"""Return score plus reach, whose sign is the decision after everybody's move.

        .. math:: s(x) + \max\{w\cdot\delta : c(\delta) \le 2/p(x),\ \delta\ \text{allowed}\}

        with :math:`p(x)` the price of the person at :math:`x` (1 unless prices differ).
        Its gradient is that of the reach itself (envelope theorem), not of the
        decision, which is flat.
        """
        if isinstance(score, SearchedScore):
            return self._searching(score).scores_after(score, X)
        if self._is_conic(score):
            return self._conic().scores_after(score, X)
        now: Tensor = score(X)
        plan, prices = self.plan(score.n_features), self.prices(X)
        if (
            isinstance(self.cost, QuadraticCost)
            and plan.facts(len(X))[0]
            and plan.actions.A is None
        ):
            scale = self.cost.scale
            factor = (GAIN / scale).sqrt() if scale.requires_grad else (GAIN / scale.item()) ** 0.5
            reach = plan.unit(plan.movable(slope_of(score))) * factor
            return now + (reach if prices is None else reach / prices.sqrt())
        if not torch.is_grad_enabled():
            from countermove.response.training_signal import gains_of

            gains = gains_of(self, score, X)
            if gains is not None:
                return now + torch.from_numpy(gains)
        budgets = torch.full((1,), GAIN, dtype=torch.float64)
        if prices is not None:
            budgets = GAIN / prices
        return now + ReachFunction.of(self.reduction(score, len(X)), X, budgets)

    def decisions_after(self, score: Score, X: Any) -> Mask:
        """Return who is favoured after the response, without forming ``x_new``."""
        rows = checked_rows(X, score)
        if isinstance(score, SearchedScore):
            return self._searching(score).decisions_after(score, rows)
        if self._is_conic(score):
            return super().decisions_after(score, rows)
        reduction = self.reduction(score, len(rows))
        out = np.empty((0, rows.shape[1]))
        solution, _ = self._solve(score, rows, reduction, out, as_action=True)
        check_converged(raise_failures(rows, solution.status, reduction.arrays), "raise")
        return solution.favoured

    def answers(self, score: Score) -> bool:
        """Return whether crossings are known or searched for: of a slope, trees, black boxes."""
        return isinstance(score, SearchedScore) or super().answers(score)

    def unproven(self, score: Score, X: Any) -> float:
        """Return the share of people of whom it is not known whether they cross.

        They count as refused. Only searches before trees and black boxes end without knowing.
        """
        rows = checked_rows(X, score)
        if not isinstance(score, SearchedScore):
            return 0.0
        return float(self._searching(score).undecided(score, rows).mean()) if len(rows) else 0.0

    def refused_stay(self, score: Score, X: Floats) -> bool:
        """Return whether nobody is known to be made to move: the refused then pay for nothing."""
        if isinstance(score, SearchedScore):
            return not self._searching(score).forced(X).any()
        return not (self._is_conic(score) or self.may_be_forced(X))

    def decisions_in_whole_steps(
        self, score: Score, X: Any, windows: pd.DataFrame | None = None
    ) -> Mask:
        """Return who is favoured once only possible people, in whole steps, have moved.

        The response itself keeps people possible too, but relaxes whole steps and leaves one-hot
        groups alone; here both are as in recourse, by the search that it is proven with.

        Parameters
        ----------
        score
            A score that is affine in what moves.
        X
            People, shape (n, d).
        windows
            The raw columns that histories are read off, see `ActionSet.with_windows`.
        """
        from countermove.people.feasible import feasible_actions
        from countermove.response.exact import cheapest_exact

        rows = checked_rows(X, score)
        if isinstance(score, SearchedScore):  # to which responses are in whole steps
            return self.decisions_after(score, rows)
        shape = self.cost.canonical(rows.shape[1])
        if shape is None or shape.weights is None:
            raise ParameterError(
                f"whole steps are priced column by column; {type(self.cost).__name__} is no sum "
                "over columns"
            )
        with torch.no_grad():
            now = score(torch.from_numpy(rows)).numpy()
        actions = self.actions if windows is None else self.actions.with_windows(rows, windows)
        slope, weights = slope_of(score).detach().numpy(), shape.weights.detach().numpy()
        kink = None if shape.kink is None else shape.kink.detach().numpy()
        favoured: Mask = now >= 0.0
        gains = np.broadcast_to(self._gains(rows, GAIN), (len(rows),))
        if self.may_be_forced(rows):
            # Whoever has to move pays for that in any case, and crosses for the gain beyond it.
            feasible = feasible_actions(actions, rows)
            still = cheapest_exact(feasible, slope, np.full(len(rows), -np.inf), weights, kink)
            check_converged(~still.unsolved, "raise")
            favoured = now + still.action @ slope >= 0.0
            gains = gains + self.cost.price(rows, rows + still.action)
        left = np.flatnonzero(~favoured)
        # Who pays less than the gain goes no further than its root in any column.
        far = np.sqrt(gains[left, None] / weights) + 1e-6
        feasible = feasible_actions(actions.of_rows(left), rows[left], far)
        found = cheapest_exact(feasible, slope, -now[left], weights, kink, gains[left])
        check_converged(~found.unsolved, "raise")
        favoured[left] = ~found.proven_none
        return favoured

    def crossing_cost(self, score: Score, X: Any) -> Floats:
        """Return what the cheapest favourable decision costs each person, shape (n,).

        Zero for those who are favourable already, infinity for those whom no
        allowed move brings there, whatever the gain.
        """
        rows = checked_rows(X, score)
        if isinstance(score, SearchedScore) or self._is_conic(score):
            with torch.no_grad():
                found = self.crossing(score, torch.from_numpy(rows))
            return np.where(found.possible.numpy(), found.cost.numpy(), np.inf)
        solution, _ = self._cheapest(score, rows, self.reduction(score, len(rows)))
        return np.where(solution.favoured, self._paid(rows, solution.cost), np.inf)

    def crossing_and_floor(self, score: Score, X: Any) -> tuple[Floats, Floats]:
        """Return `crossing_cost`, and what people pay if they do not cross, each shape (n,).

        That is zero unless a bound makes somebody move: they pay for their cheapest allowed
        action in any case, and cross iff what they pay beyond it is less than the gain.
        """
        cost, rows = self.crossing_cost(score, X), checked_rows(X, score)
        if isinstance(score, SearchedScore):
            return cost, self._searching(score).floor(score, rows)
        if self._is_conic(score):
            with torch.no_grad():
                return cost, self._conic().least(score, torch.from_numpy(rows))[1].numpy()
        if not self.may_be_forced(rows):
            return cost, np.zeros(len(rows))
        reduction, action = self.reduction(score, len(rows)), np.empty_like(rows)
        still, _ = self._solve(score, rows, reduction, action, as_action=True, gain=0.0)
        return cost, self._paid(rows, still.cost)

    def crossing(self, score: Score, X: Tensor) -> Crossing:
        r"""Return the cheapest favourable decision with its gradient, whatever the gain.

        .. math:: \min_\delta \{ c(\delta) : s(x + \delta) \ge 0,\ \delta\ \text{allowed} \}

        The derivative is that of the crossing point: to the score, to ``X`` and to the cost.
        """
        if isinstance(score, SearchedScore):
            return self._searching(score).crossing(score, X)
        if self._is_conic(score):
            return self._conic().crossing(score, X)
        rows = checked_rows(X, score)
        reduction = self.reduction(score, len(rows))
        solution, reduction = self._cheapest(score, rows, reduction)
        moves = crossing_action(reduction, X, score(X), solution)
        cost = self._price_of(moves, X)
        possible = torch.from_numpy(solution.favoured)
        return Crossing(torch.where(possible, cost, torch.zeros_like(cost)), possible)

    def _searching(self, score: Score) -> TreeBest:
        """Return who searches before such a score."""
        return TreeBest(self) if isinstance(score, TreeScore) else AskedBest(self)

    def _is_conic(self, score: Score) -> bool:
        """Return whether only a conic solver has an answer: no closed form, or a kink with A."""
        if isinstance(self.cost, QuadraticCost):
            return False
        shape = self.cost.canonical(score.n_features)
        if shape is None or (self.actions.A is not None and shape.kink is not None):
            return True
        crossed = shape.matrix is not None or shape.kink is not None
        return self.actions.possible is not None and crossed

    def _conic(self) -> ConicBest:
        from countermove.response._conic_best import ConicBest

        if self._solver is None:
            self._solver = ConicBest(self)
        return self._solver

    def _respond_with_gradient(
        self, score: Score, X: Tensor, on_failure: OnFailure
    ) -> Responses[Tensor]:
        rows = checked_rows(X, score)
        reduction = self.reduction(score, len(rows))
        action = np.empty_like(rows)
        solution, reduction = self._solve(score, rows, reduction, action, as_action=True)
        converged = raise_failures(rows, solution.status, reduction.arrays)
        check_converged(converged, on_failure)
        moves = crossing_action(reduction, X, score(X), solution)
        x_new = X + moves
        return Responses(
            x_new,
            self._price_of(moves, X),
            torch.from_numpy(solution.moved),
            torch.from_numpy(converged),
        )

    def _paid(self, rows: Floats, cost: Floats) -> Floats:
        """Return costs at everybody's own price."""
        prices = self.prices(torch.from_numpy(rows))
        return cost if prices is None else cost * prices.numpy()

    def _price_of(self, moves: Tensor, X: Tensor) -> Tensor:
        """Return what actions cost, with the graph, at everybody's own price."""
        cost, prices = self.cost.price(torch.zeros_like(moves), moves), self.prices(X)
        return cost if prices is None else cost * prices

    def _gains(self, rows: Floats, gain: float) -> Floats:
        """Return below which cost, at the common price, people cross: shape (1,) or (n,)."""
        prices = self.prices(torch.from_numpy(rows))
        return np.full(1, gain) if prices is None else gain / prices.numpy()

    def may_be_forced(self, rows: Floats) -> bool:
        """Return whether staying is not allowed to somebody."""
        plan = self.plan(rows.shape[1])
        bounds, offsets = plan.bounds(len(rows)), self.actions.b
        if offsets is None and plan.facts(len(rows))[0]:
            return False
        pushed = offsets is not None and bool((offsets < 0.0).any())
        pushed |= bool((bounds.lower > 0.0).any() or (bounds.upper < 0.0).any())
        return pushed or bool((rows < bounds.min_value).any() or (rows > bounds.max_value).any())

    def _cheapest(
        self, score: Score, rows: Floats, reduction: Reduction
    ) -> tuple[RowSolutions, Reduction]:
        """Solve for everybody's cheapest crossing as if it were worth any price."""
        action = np.empty_like(rows)
        found = self._solve(score, rows, reduction, action, as_action=True, gain=np.inf)
        check_converged(raise_failures(rows, found[0].status, reduction.arrays), "raise")
        return found

    def _solve(
        self,
        score: Score,
        rows: Floats,
        reduction: Reduction,
        out: Floats,
        as_action: bool,
        gain: float = GAIN,
    ) -> tuple[RowSolutions, Reduction]:
        """Return who crosses and how; the rule comes back met by people in their branches."""
        solution, arrays, write = RowSolutions.empty(len(rows), out), reduction.arrays, len(out) > 0
        known = scores, weight, bias = known_scores(score, rows)
        gains, possible = self._gains(rows, gain), reduction.plan.possible
        path = None if possible else unbounded_path(reduction)
        if path is None:
            who = np.arange(len(rows))
        else:
            kink = arrays.kink if arrays.kind == KINKED else np.empty(0)
            best_rows(
                rows, known, arrays.slope, arrays.weights, kink, path, arrays.bounds, gains,
                as_action, write, solution,
            )  # fmt: skip
            who = np.flatnonzero(solution.status == STOPPED)
        if not len(who):
            return solution, reduction
        evaluated = len(scores) > 0
        scores = scores if evaluated else score_rows(rows, weight, bias)
        if path is None:
            raise_not_finite(rows, scores)
        margin = np.empty(len(rows))
        safety_rows(rows, weight, bias, scores, evaluated, margin)
        if possible:
            reduction = solve_possible_best(
                reduction, rows, scores, margin, gains, as_action, solution
            )
        else:
            solve_best(arrays, rows, scores, margin, gains, as_action, write, who, solution)
        return solution, reduction
