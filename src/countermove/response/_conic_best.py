"""The hard step under costs that need a conic solver."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from countermove.response._conic_layers import (
    Layer,
    LayerShape,
    crossing_layer,
    reach_layer,
    shortfall_layer,
)
from countermove.response._solutions import raise_not_finite
from countermove.response.action_plan import slope_of
from countermove.response.base import GAIN, Crossing, Responses, checked_rows
from countermove.response.conic import conic_batch, pick, spread
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
            who = torch.nonzero((now.detach() < 0.0) & able).squeeze(1)
            action = torch.zeros_like(given)
            cost = torch.zeros(len(given), dtype=torch.float64)
            if len(who):
                action, cost = self._cross(score, given, now, who)
            moved = (action.detach() != 0.0).any(dim=1)
            x_new = given + action
        done = torch.ones(len(given), dtype=torch.bool)
        if tensor:
            return Responses(x_new, cost, moved, done)
        return Responses(x_new.numpy(), cost.numpy(), moved.numpy(), done.numpy())

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
        plan = self.response.plan(score.n_features)
        slope = plan.movable(slope_of(score)).detach()
        need = _need(now)
        lower, upper = plan.actions.box(X.detach().numpy())
        gain = torch.where(slope > 0.0, torch.from_numpy(upper), torch.from_numpy(lower))
        most = torch.where(slope != 0.0, slope * gain, torch.zeros_like(gain)).sum(dim=1)
        if plan.actions.A is None:
            return most >= need
        unit = plan.unit(slope)
        if float(unit) == 0.0:
            return most >= need
        with torch.no_grad():
            shape, batch = conic_batch(plan, X)
            columns = torch.tensor(shape.columns, dtype=torch.long)
            along, wanted = slope[columns] / unit, (need / unit).clamp(min=0.0)
            more = {"slope": along.expand(len(X), -1), "need": wanted}
            part, _ = self._layer("shortfall", shape).solve(replace(batch, more=more))
        return (most >= need) & (part @ along >= wanted - MARGIN)

    def _reach(self, score: Score, X: Tensor) -> Tensor:
        plan = self.response.plan(score.n_features)
        slope = plan.movable(slope_of(score))
        if not bool((slope.detach() != 0.0).any()):
            return torch.zeros_like(X)
        shape, batch = conic_batch(plan, X)
        columns = torch.tensor(shape.columns, dtype=torch.long)
        prices = self.response.prices(X)
        budget = torch.full((len(X),), GAIN, dtype=torch.float64)
        budget = budget if prices is None else budget / prices
        more = {"slope": slope[columns].expand(len(X), -1), "budget": budget}
        part, _ = self._layer("reach", shape).solve(replace(batch, more=more))
        return spread(part, columns, X.shape[1])

    def _cheapest(self, score: Score, X: Tensor, now: Tensor, who: Tensor) -> tuple[Tensor, Tensor]:
        """Return the cheapest crossing actions of the people ``who`` and their prices."""
        plan = self.response.plan(score.n_features)
        shape, batch = conic_batch(plan, X)
        columns = torch.tensor(shape.columns, dtype=torch.long)
        slope = plan.movable(slope_of(score))[columns]
        more = {"slope": slope.expand(len(who), -1), "need": _need(now[who])}
        part, price = self._layer("crossing", shape).solve(replace(pick(batch, who), more=more))
        own = self.response.prices(X)
        price = price if own is None else price * own[who]
        return spread(part, columns, X.shape[1]), price

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
            cost, actions = self.response.cost, self.response.actions.for_response()
            builders = {
                "reach": lambda: reach_layer(cost, actions, shape, None),
                "crossing": lambda: crossing_layer(cost, actions, shape, None),
                "shortfall": lambda: shortfall_layer(actions, shape, None),
            }
            self._layers[name, shape] = builders[name]()
        return self._layers[name, shape]


def _need(now: Tensor) -> Tensor:
    """Return the gain a crossing aims at, a little inside the boundary."""
    return MARGIN * (1.0 + now.detach().abs()) - now
