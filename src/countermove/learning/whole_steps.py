r"""Rational people who move in whole steps, one-hot groups and relations included.

Other best responses to an affine score relax whole steps, those to trees do not. Where both kinds
of rule are compared, people move exactly: who crosses is searched for, and so is

.. math:: s(x) + \max\{w\cdot\delta : c(\delta) < 2/p(x),\ \delta\ \text{allowed, in whole steps}\}
"""

from __future__ import annotations

from itertools import cycle
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from countermove._types import Floats, Index, Mask
from countermove.errors import ParameterError
from countermove.people import ActionSet
from countermove.people.feasible import FeasibleActions, feasible_actions, lattice
from countermove.response import BestResponse
from countermove.response.base import GAIN, check_converged, checked_rows
from countermove.response.exact import CheapestActions, cheapest_exact
from countermove.response.reduction import slope_of
from countermove.scores import Score
from countermove.scores.base import values

FINE = 1e-3
"""Share of the largest gain to which the highest score is found; the move itself is exact."""
FIRST = 0.95
"""Share of the relaxed gain that is tried first."""


class WholeStepResponse(BestResponse):
    """Best responders in whole steps, before affine scores as before trees."""

    def scores_after(self, score: Score, X: Tensor) -> Tensor:
        """Return the highest score people can afford in whole steps; it has no gradient."""
        with torch.no_grad():
            relaxed = super().scores_after(score, X)
        if not score.differentiable or not takes_steps(self.actions, score.n_features):
            return relaxed
        rows = checked_rows(X, score)
        # Relaxed responses leave one-hot groups and cells that could be supplied alone.
        further = bool(self.actions.groups) or self.knows_missing
        most = None if further else relaxed.numpy() - values(score, rows)
        return torch.from_numpy(_highest(self, score, rows, most))

    def decisions_after(self, score: Score, X: Any) -> Mask:
        """Return who is favoured once people have moved in whole steps."""
        if not score.differentiable or not takes_steps(self.actions, score.n_features):
            return super().decisions_after(score, X)
        return self.decisions_in_whole_steps(score, X)


def takes_steps(actions: ActionSet, n_features: int) -> bool:
    """Return whether some allowed move is none of a continuous, relaxed response."""
    possible = actions.possible
    relaxed = possible is not None and not possible.in_responses
    whole = (lattice(actions, n_features) > 0.0) & actions.movable_among(n_features)
    return relaxed or bool(actions.groups) or bool(actions.missing) or bool(whole.any())


class _StepSearch(NamedTuple):
    """What the exact search reads of some people."""

    feasible: FeasibleActions
    slope: Floats
    weights: Floats
    kink: Floats | None
    gains: Floats  # (n,) what nobody pays or exceeds
    start: Floats  # (n,) what the cheapest allowed action gains: nothing for whoever may stay

    @classmethod
    def of(cls, response: BestResponse, score: Score, rows: Floats) -> _StepSearch:
        shape = response.cost.canonical(rows.shape[1])
        if shape is None or shape.weights is None:
            raise ParameterError(
                f"whole steps are priced column by column; {type(response.cost).__name__} is no "
                "sum over columns"
            )
        weights = shape.weights.detach().numpy()
        prices = response.prices(torch.from_numpy(rows))
        gains = np.full(len(rows), GAIN) if prices is None else GAIN / prices.numpy()
        kink = None if shape.kink is None else shape.kink.detach().numpy()
        slope, start = slope_of(score).detach().numpy(), np.zeros(len(rows))
        if response.may_be_forced(rows):
            unasked = np.full(len(rows), -np.inf)
            everywhere = feasible_actions(response.actions, rows)
            still = cheapest_exact(everywhere, slope, unasked, weights, kink)
            check_converged(~still.unsolved, "raise")
            start = still.action @ slope
            gains = gains + response.cost.price(rows, rows + still.action)
        # Who pays less than the gain goes no further than its root in any column.
        far = np.sqrt(gains[:, None] / weights) + 1e-6
        feasible = feasible_actions(response.actions, rows, far)
        return cls(feasible, slope, weights, kink, gains, start)

    def rows(self, who: Index) -> _StepSearch:
        some = {name: getattr(self, name)[who] for name in ("gains", "start")}
        return self._replace(feasible=self.feasible.rows(who), **some)

    def cheapest(self, need: Floats) -> CheapestActions:
        found = cheapest_exact(self.feasible, self.slope, need, self.weights, self.kink, self.gains)
        check_converged(~found.unsolved, "raise")
        return found

    def most(self) -> Floats:
        """Return what nobody gains more than, by Cauchy and Schwarz."""
        used = self.feasible.used
        steepness = float((self.slope[used] ** 2 / self.weights[used]).sum())
        return np.sqrt(self.gains * steepness)


def _highest(response: BestResponse, score: Score, rows: Floats, relaxed: Floats | None) -> Floats:
    """Return the highest scores people can afford, between staying and what they gain relaxed."""
    everyone = _StepSearch.of(response, score, rows)
    most = everyone.most() if relaxed is None else relaxed
    low, high = everyone.start.copy(), most + 1e-6 * np.abs(most) + 1e-9
    left = np.flatnonzero(most - low > 1e-9 * most.max(initial=0.0))
    fine, asked = FINE * (high - low), low + FIRST * (high - low)
    for halve in cycle((False, True)):
        if not left.size:
            return values(score, rows) + low
        search, need = everyone.rows(left), asked[left]
        found = search.cheapest(need)
        crossed = ~found.proven_none
        action = np.where(crossed[:, None], found.action, 0.0)
        low[left[crossed]] = np.maximum(action @ search.slope, need)[crossed]
        high[left[~crossed]] = need[~crossed]
        asked[left] = 0.5 * (low + high)[left]
        if not halve:
            asked[left] = _next(search, action, low[left], high[left], fine[left])
        left = left[(high - low)[left] > fine[left]]
    raise AssertionError("unreachable")


def _next(search: _StepSearch, action: Floats, low: Floats, high: Floats, fine: Floats) -> Floats:
    """Return the gain to ask for next: where the price of the last action would be the limit."""
    paid = (action**2) @ search.weights
    with np.errstate(divide="ignore", invalid="ignore"):
        further = low * np.sqrt(search.gains / paid)
    useful = (paid > 0.0) & (further < high)
    nearer = np.clip(further, low + 0.5 * fine, high - 0.05 * (high - low))
    return np.where(useful, nearer, 0.5 * (low + high))
