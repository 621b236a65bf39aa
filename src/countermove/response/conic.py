"""Smoothed responses under any convex cost, by the convex-concave procedure.

Each step is one batched convex problem. Slower than the scalar responses by orders
of magnitude and limited by a solver's tolerance, but it asks nothing of the cost
beyond convexity; where both apply it is the referee.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any, Self

import numpy as np
import torch
from torch import Tensor

from countermove._types import Floats, Mask
from countermove.people import ActionSet, Cost
from countermove.response._conic_layers import Layer, LayerShape, Solver, proxy_layer
from countermove.response._conic_people import ConicPeople
from countermove.response._possible import BranchList
from countermove.response.base import OnFailure, Responses, check_converged, checked_rows
from countermove.response.reduction import (
    ActionPlan,
    raise_not_finite,
    refuse_moving_people,
    slope_of,
)
from countermove.response.smooth import Gradient, SmoothedResponse, Start
from countermove.response.step import pull_at, pull_slope, rise, smoothed_step
from countermove.scores import Score

STARTS = (-3.0, -1.0, 0.0, 1.0, 3.0, 10.0)
"""Scores, in step units, at which ``start="global"`` linearises besides the person's own."""
TOPS = (0.0, 0.7, 2.0, 6.0)
"""Above its middle, in step units, where the step rises as the prices branches are judged by."""
CERTAIN = 1e-9
"""A branch that may be better by this much at most is not searched."""
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

    >>> import cvxpy as cp
    >>> from countermove.people import ConicCost
    >>> from countermove.response import ConicResponse
    >>> people = ConicResponse(ConicCost(lambda x, x_new: cp.sum_squares(x_new - x)))
    >>> people.name
    'conic'

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
        plan = self.plan(score.n_features, score.fixed)
        slope = plan.movable(slope_of(score))
        now: Tensor = score(X)
        raise_not_finite(X.detach().numpy(), now.detach().numpy())
        unit = torch.tensor(1.0 if self.unit is None else self.unit, dtype=torch.float64)
        if self.unit is None and self.normalised:
            reach = plan.unit(slope)
            unit = reach if float(reach.detach()) > 0.0 else unit
        rule = ConicRule(now, slope, 1.0 / (self.temperature * unit))
        fixed = ConicRule(now.detach(), slope.detach(), rule.sharpness.detach())
        if plan.tied:
            refuse_moving_people(X)
            people = self._in_best_branches(plan, X, fixed)
        else:
            people = ConicPeople.in_boxes(plan, X)
        problem = ConicProblem(self, people)
        pull, converged = problem.find(fixed)
        if torch.is_grad_enabled():
            pull = self._with_gradient(problem, rule, pull, score)
        action, cost = problem.proxy(rule, pull)
        return action, cost, converged

    def _in_best_branches(self, plan: ActionPlan, X: Tensor, rule: ConicRule) -> ConicPeople:
        """Return everybody in the branch of their highest utility; at home if they start there."""
        every = plan.people(X.detach().numpy()).listed()
        if self.start == "stay":
            return ConicPeople.in_branches(X, every.rows(every.home))
        bound = self._bounds(X, every, rule)
        value, left = np.full(len(bound), -np.inf), np.ones(len(bound), bool)
        while left.any():
            # Everybody's most promising branch, then those it does not rule out.
            some = np.flatnonzero(left)
            some = some[every.rows(some).best(bound[some])]
            value[some] = self._value(X, every.rows(some), rule)
            left[some] = False
            best = np.full(len(X), -np.inf)
            np.maximum.at(best, every.who, value)
            left &= bound > best[every.who] + CERTAIN
        return ConicPeople.in_branches(X, every.rows(every.best(value)))

    def _bounds(self, X: Tensor, branches: BranchList, rule: ConicRule) -> Floats:
        """Return what no action of each branch is worth more than, (N,)."""
        # At a price u a branch has at most worth(u) of u·gain - cost, so that a gain costs at
        # least the highest of these lines; the step less them is highest where two of them meet
        # or where it rises as one of them does.
        problem = ConicProblem(self, ConicPeople.in_branches(X, branches))
        now, a = rule.now[torch.from_numpy(branches.who)], rule.sharpness
        prices = [float(a) * rise(top) for top in TOPS]
        lines = [(0.0, torch.zeros_like(now))]
        gains = [top / a - now for top in TOPS]
        with torch.no_grad():
            for u in prices:
                action, cost = problem.at_price(rule, u)
                lines.append((u, u * (action @ rule.slope) - cost))
            gains += [(v - w) / (p - q) for (p, v), (q, w) in combinations(lines, 2)]
            gain = torch.stack(gains)
            least = torch.stack([u * gain - worth for u, worth in lines]).amax(dim=0)
            highest: Floats = (smoothed_step(a * (now + gain)) - least).amax(dim=0).numpy()
        return highest

    def _value(self, X: Tensor, branches: BranchList, rule: ConicRule) -> Floats:
        """Return the utility of the response inside each branch, (N,)."""
        problem = ConicProblem(self, ConicPeople.in_branches(X, branches))
        own = replace(rule, now=rule.now[torch.from_numpy(branches.who)])
        pull, _ = problem.find(own)
        with torch.no_grad():
            action, cost = problem.proxy(own, pull)
            worth = smoothed_step(rule.sharpness * (own.now + action @ rule.slope)) - cost
        return worth.numpy()

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
            self._layers[shape] = proxy_layer(self.cost, shape, self.solver)
        return self._layers[shape]


class ConicProblem:
    """One batch of people: the proxy solve and the search for a fixed point."""

    def __init__(self, response: ConicResponse, people: ConicPeople) -> None:
        self.response, self.people, self.X = response, people, people.batch.X

    def proxy(self, rule: ConicRule, pull: Tensor) -> tuple[Tensor, Tensor]:
        """Solve the proxy; return full actions and their costs."""
        people, a = self.people, rule.sharpness
        if not len(people.columns):
            zero = torch.zeros_like(self.X)
            return zero, zero.sum(dim=1)
        inner = rule.slope[people.columns]
        layer = self.response.layer(people.shape)
        return people.solve(layer, pull=pull[:, None] * inner, steep=a * inner, now=a * rule.now)

    def at_price(self, rule: ConicRule, price: float) -> tuple[Tensor, Tensor]:
        """Return the actions of the most price·gain - cost, and their costs."""
        # The proxy whose straight part is the price and whose bent part is the same for all.
        people, one = self.people, torch.ones(len(self.X), dtype=torch.float64)
        inner = rule.slope[people.columns].expand(len(self.X), -1)
        layer = self.response.layer(people.shape)
        return people.solve(layer, pull=price * inner, steep=0.0 * inner, now=one)

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
