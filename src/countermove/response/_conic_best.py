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
            with torch.no_grad():
                able = now + self._reach(score, given) @ slope_of(score) > MARGIN
            able &= now.detach() < 0.0
            if self.response.plan(score.n_features).tied:
                able &= self._able(score, given, now.detach())
            who = torch.nonzero(able).squeeze(1)
            action = torch.zeros_like(given)
            cost = torch.zeros(len(given), dtype=torch.float64)
            if len(who):
                action, cost = self._cross(score, given, now, who)
            moved = (action.detach() != 0.0).any(dim=1)
            x_new = given + action
        done = torch.ones(len(given), dtype=torch.bool)
        return Responses.like(X, x_new, cost, moved, done)

    def crossing(self, score: Score, X: Tensor) -> Crossing:
        """Return the cheapest favourable decision, whatever it costs, with its gradient."""
        now: Tensor = score(X)
        raise_not_finite(X.detach().numpy(), now.detach().numpy())
        refused = now.detach() < 0.0
        able = self._able(score, X, now.detach())
        who = torch.nonzero(refused & able).squeeze(1)
        cost = torch.zeros(len(X), dtype=torch.float64)
        if len(who):
            _, price = self._cheapest(score, X, now, who)
            cost = cost.index_copy(0, who, price)
        return Crossing(cost, ~refused | able)

    def _able(self, score: Score, X: Tensor, now: Tensor) -> Tensor:
        """Return whom the allowed actions can bring over the boundary at any price."""
        plan = self.response.plan(score.n_features, score.fixed)
        slope = plan.movable(slope_of(score)).detach()
        need = _need(now)
        if plan.tied:
            able = torch.zeros(len(X), dtype=torch.bool)
            able[torch.from_numpy(self._ways(plan, X, slope, need).who)] = True
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
            along, wanted = slope / unit, (need / unit).clamp(min=0.0)
            inner = along[people.columns].expand(len(X), -1)
            layer = self._layer("shortfall", people.shape)
            action, _ = people.solve(layer, slope=inner, need=wanted)
        return (most >= need) & (action @ along >= wanted - MARGIN)

    def _ways(self, plan: ActionPlan, X: Tensor, slope: Tensor, need: Tensor) -> BranchList:
        """Return the branches in which the refused can gain what they need."""
        refuse_moving_people(X)
        wanted = np.where(need.numpy() > 0.0, need.numpy(), -np.inf)
        found = plan.people(X.detach().numpy()).listed(slope.numpy(), wanted)
        return found.rows(wanted[found.who] > 0.0)

    def _reach(self, score: Score, X: Tensor) -> Tensor:
        plan = self.response.plan(score.n_features, score.fixed)
        slope = plan.movable(slope_of(score))
        if not bool((slope.detach() != 0.0).any()):
            return torch.zeros_like(X)
        prices = self.response.prices(X)
        budget = torch.full((len(X),), GAIN, dtype=torch.float64)
        budget = budget if prices is None else budget / prices
        if not plan.tied:
            return self._most(ConicPeople.in_boxes(plan, X), slope, budget)
        refuse_moving_people(X)
        with torch.no_grad():
            every = plan.people(X.detach().numpy()).listed()
            # A branch that costs all of the budget to enter is no way to gain anything.
            people = ConicPeople.in_branches(X, every)
            free = torch.zeros(len(every.who), len(people.columns), dtype=torch.float64)
            layer, own = self._layer("crossing", people.shape), torch.from_numpy(every.who)
            _, least = people.solve(layer, slope=free, need=free.new_full((len(free),), -1.0))
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
                ways = self._ways(plan, X, slope.detach(), need.detach())
                ways = ways.rows(np.isin(ways.who, who.numpy()))
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

    def _cross(self, score: Score, X: Tensor, now: Tensor, who: Tensor) -> tuple[Tensor, Tensor]:
        moves, price = self._cheapest(score, X, now, who)
        pays = (price.detach() < GAIN)[:, None]
        full = torch.where(pays, moves, torch.zeros_like(moves))
        action = torch.zeros_like(X).index_copy(0, who, full)
        kept = torch.where(pays[:, 0], price, torch.zeros_like(price))
        cost = torch.zeros(len(X), dtype=torch.float64).index_copy(0, who, kept)
        return action, cost

    def _layer(self, name: str, shape: LayerShape) -> Layer:
        if (name, shape) not in self._layers:
            self._layers[name, shape] = LAYERS[name](self.response.cost, shape, None)
        return self._layers[name, shape]


def _need(now: Tensor) -> Tensor:
    """Return the gain a crossing aims at, a little inside the boundary."""
    return MARGIN * (1.0 + now.detach().abs()) - now
