"""Responses under any convex cost: smoothed, by the convex-concave procedure, and the hard step.

Each step is one batched convex problem. Slower than the scalar responses by orders
of magnitude and limited by a solver's tolerance, but it asks nothing of the cost
beyond convexity; where both apply it is the referee.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import torch
from torch import Tensor

from countermove._types import Mask
from countermove.people import ActionSet, Cost
from countermove.response._conic_layers import (
    LAYERS,
    ConicBatch,
    Layer,
    LayerShape,
    Solver,
    proxy_layer,
)
from countermove.response.base import (
    GAIN,
    Crossing,
    OnFailure,
    Responses,
    check_converged,
    checked_rows,
)
from countermove.response.reduction import ActionPlan, raise_not_finite, slope_of
from countermove.response.smooth import Gradient, SmoothedResponse, Start
from countermove.response.step import pull_at, pull_slope, smoothed_step
from countermove.scores import Score

if TYPE_CHECKING:
    from countermove.response.best import BestResponse


STARTS = (-3.0, -1.0, 0.0, 1.0, 3.0, 10.0)
"""Scores, in step units, at which ``start="global"`` linearises besides the person's own."""
WIDE = 1e3
"""Stands for a bound one person lacks and another has, relative to the largest finite one."""
MARGIN = 1e-7
"""How far inside the boundary a crossing aims, so that the solver's tolerance stays inside."""
NEWTON_STEPS = 4
"""Newton steps on the fixed point once the procedure has found its basin."""


@dataclass(frozen=True)
class ConicRule:
    """The published rule as tensors with their graphs: scores, slope, sharpness."""

    now: Tensor
    slope: Tensor
    sharpness: Tensor


class ConicResponse(SmoothedResponse):
    r"""The response to a smoothed decision for any convex cost and polyhedral actions.

    Parameters
    ----------
    cost, actions, temperature, start, normalised, gradient, unit
        As in `ScalarResponse`. ``start="global"`` runs the procedure from several
        points and keeps the best; it is not a proof of globality.
    tolerance, max_iterations
        Change of the score, in step units, at which a row stops; cap of steps.
    solver
        ``"MOREAU"`` or ``"DIFFCP"``; None takes the first that solves.
    """

    name = "conic"

    def __init__(
        self,
        cost: Cost | None = None,
        actions: ActionSet | None = None,
        temperature: float = 0.5,
        start: Start = "global",
        normalised: bool = True,
        gradient: Gradient = "fixed_point",
        *,
        tolerance: float = 1e-6,
        max_iterations: int = 200,
        solver: Solver | None = None,
        unit: float | None = None,
    ) -> None:
        super().__init__(
            cost, actions, temperature, start, normalised, gradient, tolerance, max_iterations, unit
        )
        self.solver = solver
        self._layers: dict[LayerShape, Layer] = {}

    def __getstate__(self) -> dict[str, Any]:
        """Leave the layers behind: they do not pickle."""
        return super().__getstate__() | {"_layers": {}}

    def respond(self, score: Score, X: Any, on_failure: OnFailure = "raise") -> Responses[Any]:
        """Return where people move to; tensors carry the gradient chosen at construction."""
        tensor = isinstance(X, Tensor)
        rows = checked_rows(X, score)
        given = X if tensor else torch.from_numpy(rows)
        with torch.set_grad_enabled(tensor and torch.is_grad_enabled()):
            action, cost, converged = self._solve(score, given)
            x_new = given + action
        check_converged(converged, on_failure)
        moved = (action.detach().abs() > 1e-7).any(dim=1)
        return Responses.like(X, x_new, cost, moved, torch.from_numpy(converged))

    def scores_after(self, score: Score, X: Tensor) -> Tensor:
        """Return the score at the smoothed response."""
        action, _, converged = self._solve(score, X)
        check_converged(converged, "raise")
        now: Tensor = score(X)
        return now + action @ slope_of(score)

    def _solve(self, score: Score, X: Tensor) -> tuple[Tensor, Tensor, Mask]:
        plan = self.plan(score.n_features)
        slope = plan.movable(slope_of(score))
        now: Tensor = score(X)
        raise_not_finite(X.detach().numpy(), now.detach().numpy())
        unit = torch.tensor(1.0 if self.unit is None else self.unit, dtype=torch.float64)
        if self.unit is None and self.normalised:
            reach = plan.unit(slope)
            unit = reach if float(reach.detach()) > 0.0 else unit
        rule = ConicRule(now, slope, 1.0 / (self.temperature * unit))
        problem = ConicProblem(self, plan, X)
        with torch.no_grad():
            fixed = ConicRule(now.detach(), slope.detach(), rule.sharpness.detach())
        pull, converged = problem.find(fixed)
        if torch.is_grad_enabled():
            pull = self._with_gradient(problem, rule, pull, score)
        action, cost = problem.proxy(rule, pull)
        return action, cost, converged

    def _with_gradient(
        self, problem: ConicProblem, rule: ConicRule, pull: Tensor, score: Score
    ) -> Tensor:
        """Attach to ``pull`` the derivative of the equation that fixed it."""
        a = rule.sharpness
        if self.gradient == "last_proxy":
            with torch.no_grad():
                action, _ = problem.proxy(rule, pull)
            last: Tensor = score(problem.X.detach() + action)
            return pull_at(a, last)
        leaf = pull.clone().requires_grad_()
        action, _ = problem.proxy(rule, leaf)
        after = rule.now + action @ rule.slope
        (rate,) = torch.autograd.grad(after.sum(), leaf, retain_graph=True)
        wanted = pull_at(a, after)
        share = 1.0 - pull_slope(a, after.detach()) * rate
        return pull + (wanted - wanted.detach()) / share.detach()

    def with_cost(self, cost: Cost) -> Self:
        """Return the same behaviour at another cost; its proxies are compiled again."""
        other = super().with_cost(cost)
        other._layers = {}
        return other

    def layer(self, shape: LayerShape) -> Layer:
        """Return the compiled proxy for a shape; made once."""
        if shape not in self._layers:
            self._layers[shape] = proxy_layer(
                self.cost, self.actions.for_response(), shape, self.solver
            )
        return self._layers[shape]


class ConicPeople:
    """People with their constraints as tensors, as the layers take them."""

    def __init__(self, plan: ActionPlan, X: Tensor) -> None:
        n, d = X.shape
        lo, hi = plan.box(X)
        columns = np.flatnonzero(plan.moving)
        here, there = lo.detach().numpy()[:, columns], hi.detach().numpy()[:, columns]
        below, above = (np.flatnonzero(np.isfinite(part).any(axis=0)) for part in (here, there))
        sizes = np.abs(np.concatenate([here.ravel(), there.ravel(), [1.0]]))
        wide = WIDE * float(sizes[np.isfinite(sizes)].max())
        offsets = np.zeros((n, 0)) if plan.actions.b is None else plan.actions.b
        offsets = np.broadcast_to(offsets, (n, offsets.shape[-1])).copy()
        self.shape = LayerShape(
            d, tuple(columns.tolist()), tuple(below.tolist()), tuple(above.tolist())
        )
        self.batch = ConicBatch(
            X, lo.clamp(min=-wide), hi.clamp(max=wide), torch.from_numpy(offsets), {}
        )
        self.columns = torch.from_numpy(columns)

    def solve(
        self, layer: Layer, who: Tensor | None = None, **more: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Solve a sub-problem for everybody, or for ``who``; return full actions and costs."""
        batch = self.batch
        if who is not None:
            batch = ConicBatch(batch.X[who], batch.lo[who], batch.hi[who], batch.offsets[who], {})
        part, cost = layer.solve(replace(batch, more=more))
        d = self.shape.n_features
        if len(self.columns) < d:
            part = part.new_zeros(len(part), d).index_copy(1, self.columns, part)
        return part, cost


class ConicProblem:
    """One batch of people: the proxy solve and the search for a fixed point."""

    def __init__(self, response: ConicResponse, plan: ActionPlan, X: Tensor) -> None:
        self.response, self.X = response, X
        self.people = ConicPeople(plan, X)

    def proxy(self, rule: ConicRule, pull: Tensor) -> tuple[Tensor, Tensor]:
        """Solve the proxy; return full actions and their costs."""
        people, a = self.people, rule.sharpness
        if not len(people.columns):
            zero = torch.zeros_like(self.X)
            return zero, zero.sum(dim=1)
        inner = rule.slope[people.columns]
        layer = self.response.layer(people.shape)
        return people.solve(layer, pull=pull[:, None] * inner, steep=a * inner, now=a * rule.now)

    def find(self, rule: ConicRule) -> tuple[Tensor, Mask]:
        """Return the pull at everybody's fixed point, and who converged."""
        a, n = rule.sharpness, len(self.X)
        starts = [rule.now]
        if self.response.start == "global":
            starts += [torch.full((n,), y, dtype=torch.float64) / a for y in STARTS]
        best_value = torch.full((n,), -torch.inf, dtype=torch.float64)
        best_pull, best_ok = pull_at(a, rule.now), torch.zeros(n, dtype=torch.bool)
        for start in starts:
            pull, ok = self._iterate(rule, start)
            with torch.no_grad():
                action, cost = self.proxy(rule, pull)
                value = smoothed_step(a * (rule.now + action @ rule.slope)) - cost
            better = value > best_value + 1e-12
            best_value = torch.where(better, value, best_value)
            best_pull = torch.where(better, pull, best_pull)
            best_ok = torch.where(better, ok, best_ok)
        return best_pull, best_ok.numpy()

    def _iterate(self, rule: ConicRule, at: Tensor) -> tuple[Tensor, Tensor]:
        a = rule.sharpness
        live = torch.ones(len(at), dtype=torch.bool)
        for _ in range(self.response.max_iterations):
            with torch.no_grad():
                action, _ = self.proxy(rule, pull_at(a, at))
            ahead = rule.now + action @ rule.slope
            live = (ahead - at).abs() * a > self.response.tolerance
            at = ahead
            if not live.any():
                break
        pull = pull_at(a, at)
        for _ in range(NEWTON_STEPS):
            leaf = pull.clone().requires_grad_()
            with torch.enable_grad():
                action, _ = self.proxy(rule, leaf)
                after = rule.now + action @ rule.slope
                (rate,) = torch.autograd.grad(after.sum(), leaf)
            miss = pull_at(a, after.detach()) - pull
            share = 1.0 - pull_slope(a, after.detach()) * rate
            step = torch.where(share > 1e-3, miss / share.clamp(min=1e-3), miss)
            pull = pull + step
            if float(step.abs().max()) <= 1e-12 * float(a):
                break
        return pull, ~live


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
            people = ConicPeople(plan, X)
            along, wanted = slope / unit, (need / unit).clamp(min=0.0)
            inner = along[people.columns].expand(len(X), -1)
            layer = self._layer("shortfall", people.shape)
            action, _ = people.solve(layer, slope=inner, need=wanted)
        return (most >= need) & (action @ along >= wanted - MARGIN)

    def _reach(self, score: Score, X: Tensor) -> Tensor:
        plan = self.response.plan(score.n_features)
        slope = plan.movable(slope_of(score))
        if not bool((slope.detach() != 0.0).any()):
            return torch.zeros_like(X)
        people, prices = ConicPeople(plan, X), self.response.prices(X)
        budget = torch.full((len(X),), GAIN, dtype=torch.float64)
        budget = budget if prices is None else budget / prices
        inner = slope[people.columns].expand(len(X), -1)
        action, _ = people.solve(self._layer("reach", people.shape), slope=inner, budget=budget)
        return action

    def _cheapest(self, score: Score, X: Tensor, now: Tensor, who: Tensor) -> tuple[Tensor, Tensor]:
        """Return the cheapest crossing actions of the people ``who`` and their prices."""
        plan = self.response.plan(score.n_features)
        people, own = ConicPeople(plan, X), self.response.prices(X)
        inner = plan.movable(slope_of(score))[people.columns].expand(len(who), -1)
        layer = self._layer("crossing", people.shape)
        action, price = people.solve(layer, who, slope=inner, need=_need(now[who]))
        return action, price if own is None else price * own[who]

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
            self._layers[name, shape] = LAYERS[name](cost, actions, shape, None)
        return self._layers[name, shape]


def _need(now: Tensor) -> Tensor:
    """Return the gain a crossing aims at, a little inside the boundary."""
    return MARGIN * (1.0 + now.detach().abs()) - now
