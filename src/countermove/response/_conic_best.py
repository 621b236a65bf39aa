"""Best responses under any convex cost: the reach decides, then the cheapest crossing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from countermove.response._conic_layers import LAYERS, Layer, LayerShape
from countermove.response._conic_people import ConicPeople
from countermove.response._possible import BranchList
from countermove.response.base import GAIN, Crossing, Responses, checked_rows
from countermove.response.reduction import (
    ActionPlan,
    raise_not_finite,
    refuse_moving_people,
    slope_of,
)
from countermove.scores import Score

if TYPE_CHECKING:
    from countermove.response.best import BestResponse

MARGIN = 1e-7
"""How far inside the boundary a crossing aims, so that the solver's tolerance stays inside."""
STILL = 1e-7
"""A move by less in every column is the solver's way of saying that nobody has to move."""


class ConicBest:
    """Best responses through convex layers: the reach decides, then the cheapest crossing."""

    def __init__(self, response: BestResponse) -> None:
        self.response = response
        self._layers: dict[tuple[str, LayerShape], Layer] = {}

    def scores_after(self, score: Score, X: Tensor) -> Tensor:
        """Return score plus reach, differentiated through the layer."""
        now: Tensor = score(X)
        raise_not_finite(X.detach().numpy(), now.detach().numpy())
        action = self._reach(score, X)
        return now + action @ slope_of(score)

    def respond(self, score: Score, X: Any) -> Responses[Any]:
        """Return where people move to."""
        tensor = isinstance(X, Tensor)
        given = X if tensor else torch.from_numpy(checked_rows(X, score))
        with torch.set_grad_enabled(tensor and torch.is_grad_enabled()):
            now: Tensor = score(given)
            raise_not_finite(given.detach().numpy(), now.detach().numpy())
            action, cost = self.least(score, given)
            with torch.no_grad():
                able = now + self._reach(score, given) @ slope_of(score) > MARGIN
                able &= now + action @ slope_of(score) < 0.0
            if self.response.plan(score.n_features).tied:
                able &= self._able(score, given, now.detach(), able)
            who = torch.nonzero(able).squeeze(1)
            if len(who):
                moves, price = self._cheapest(score, given, now, who)
                pays = price.detach() - cost[who].detach() < GAIN
                who = who[pays]
                action = action.index_copy(0, who, moves[pays])
                cost = cost.index_copy(0, who, price[pays])
            moved = (action.detach() != 0.0).any(dim=1)
            x_new = given + action
        done = torch.ones(len(given), dtype=torch.bool)
        return Responses.like(X, x_new, cost, moved, done)

    def crossing(self, score: Score, X: Tensor) -> Crossing:
        """Return the cheapest favourable decision, whatever it costs, with its gradient."""
        now: Tensor = score(X)
        raise_not_finite(X.detach().numpy(), now.detach().numpy())
        action, cost = self.least(score, X)
        refused = (now + action @ slope_of(score)).detach() < 0.0
        able = self._able(score, X, now.detach(), refused)
        who = torch.nonzero(refused & able).squeeze(1)
        if len(who):
            _, price = self._cheapest(score, X, now, who)
            cost = cost.index_copy(0, who, price)
        return Crossing(cost, ~refused | able)

    def least(self, score: Score, X: Tensor) -> tuple[Tensor, Tensor]:
        """Return everybody's cheapest allowed action, the score aside, and its cost.

        That is to stay, unless a bound or a constraint forces somebody to move.
        """
        action, cost = torch.zeros_like(X), torch.zeros(len(X), dtype=torch.float64)
        if not self.response.may_be_forced(X.detach().numpy()):
            return action, cost
        plan, prices = self.response.plan(score.n_features, score.fixed), self.response.prices(X)
        people = ConicPeople.in_boxes(plan, X)
        if plan.tied:
            refuse_moving_people(X)
            every = plan.people(X.detach().numpy()).listed()
            with torch.no_grad():
                _, price = self._unasked(ConicPeople.in_branches(X, every))
            people = ConicPeople.in_branches(X, every.rows(every.best(-price.numpy())))
        action, cost = self._unasked(people)
        stays = (action.detach().abs() <= STILL).all(dim=1, keepdim=True)
        action = torch.where(stays, torch.zeros_like(action), action)
        cost = torch.where(stays[:, 0], torch.zeros_like(cost), cost)
        return action, cost if prices is None else cost * prices

    def _unasked(self, people: ConicPeople) -> tuple[Tensor, Tensor]:
        """Return the cheapest actions that need not gain anything, and what they cost."""
        n = len(people.batch.X)
        free = torch.zeros(n, len(people.columns), dtype=torch.float64)
        layer = self._layer("crossing", people.shape)
        return people.solve(layer, slope=free, need=free.new_full((n,), -1.0))

    def _able(self, score: Score, X: Tensor, now: Tensor, refused: Tensor) -> Tensor:
        """Return whom of the refused allowed actions bring over the boundary at any price."""
        plan = self.response.plan(score.n_features, score.fixed)
        slope = plan.movable(slope_of(score)).detach()
        need = _need(now)
        if plan.tied:
            able = torch.zeros(len(X), dtype=torch.bool)
            who = torch.nonzero(refused).squeeze(1)
            able[torch.from_numpy(self._ways(plan, X, slope, need, who).who)] = True
            return able
        lower, upper = plan.actions.box(X.detach().numpy())
        gain = torch.where(slope > 0.0, torch.from_numpy(upper), torch.from_numpy(lower))
        most = torch.where(slope != 0.0, slope * gain, torch.zeros_like(gain)).sum(dim=1)
        if plan.actions.A is None:
            return most >= need
        unit = plan.unit(slope)
        if float(unit) == 0.0:
            return most >= need
        with torch.no_grad():
            people = ConicPeople.in_boxes(plan, X)
            along, wanted = slope / unit, need / unit
            inner = along[people.columns].expand(len(X), -1)
            layer = self._layer("shortfall", people.shape)
            action, _ = people.solve(layer, slope=inner, need=wanted)
        return (most >= need) & (action @ along >= wanted - MARGIN)

    def _ways(
        self, plan: ActionPlan, X: Tensor, slope: Tensor, need: Tensor, who: Tensor
    ) -> BranchList:
        """Return the branches in which the people ``who`` can gain what they need."""
        refuse_moving_people(X)
        asked = np.isin(np.arange(len(X)), who.numpy())
        wanted = np.where(asked, need.numpy(), -np.inf)
        branches = plan.people(X.detach().numpy()).listed(slope.numpy(), wanted)
        return branches.rows(asked[branches.who])

    def _reach(self, score: Score, X: Tensor) -> Tensor:
        plan = self.response.plan(score.n_features, score.fixed)
        slope = plan.movable(slope_of(score))
        if not bool((slope.detach() != 0.0).any()):
            return torch.zeros_like(X)
        prices = self.response.prices(X)
        budget = torch.full((len(X),), GAIN, dtype=torch.float64)
        budget = budget if prices is None else budget / prices
        with torch.no_grad():
            _, floor = self.least(score, X)
            budget = budget + (floor if prices is None else floor / prices)
        if not plan.tied:
            return self._most(ConicPeople.in_boxes(plan, X), slope, budget)
        refuse_moving_people(X)
        with torch.no_grad():
            every = plan.people(X.detach().numpy()).listed()
            # A branch that costs all of the budget to enter is no way to gain anything.
            _, least = self._unasked(ConicPeople.in_branches(X, every))
            own = torch.from_numpy(every.who)
            every = every.rows((least < (1.0 - 1e-6) * budget[own]).numpy())
            people, own = ConicPeople.in_branches(X, every), torch.from_numpy(every.who)
            gain = self._most(people, slope, budget[own]) @ slope
        chosen = every.rows(every.best(gain.numpy()))
        return self._most(ConicPeople.in_branches(X, chosen), slope, budget)

    def _most(self, people: ConicPeople, slope: Tensor, budget: Tensor) -> Tensor:
        """Return the actions of the most gain within everybody's budget."""
        inner = slope[people.columns].expand(len(budget), -1)
        layer = self._layer("reach", people.shape)
        return people.solve(layer, slope=inner, budget=budget)[0]

    def _cheapest(self, score: Score, X: Tensor, now: Tensor, who: Tensor) -> tuple[Tensor, Tensor]:
        """Return the cheapest crossing actions of the people ``who`` and their prices."""
        plan, own = self.response.plan(score.n_features, score.fixed), self.response.prices(X)
        slope, need = plan.movable(slope_of(score)), _need(now)
        if plan.tied:
            with torch.no_grad():
                ways = self._ways(plan, X, slope.detach(), need.detach(), who)
                people, each = ConicPeople.in_branches(X, ways), torch.from_numpy(ways.who)
                _, price = self._crossing(people, slope, need[each])
            people = ConicPeople.in_branches(X, ways.rows(ways.best(-price.numpy())))
        else:
            people = ConicPeople.in_boxes(plan, X).of_rows(who)
        action, price = self._crossing(people, slope, need[who])
        return action, price if own is None else price * own[who]

    def _crossing(self, people: ConicPeople, slope: Tensor, need: Tensor) -> tuple[Tensor, Tensor]:
        """Return the cheapest actions that gain what is needed, and what they cost."""
        inner = slope[people.columns].expand(len(need), -1)
        return people.solve(self._layer("crossing", people.shape), slope=inner, need=need)

    def _layer(self, name: str, shape: LayerShape) -> Layer:
        if (name, shape) not in self._layers:
            self._layers[name, shape] = LAYERS[name](self.response.cost, shape, None)
        return self._layers[name, shape]


def _need(now: Tensor) -> Tensor:
    """Return the gain a crossing aims at, a little inside the boundary."""
    return MARGIN * (1.0 + now.detach().abs()) - now
