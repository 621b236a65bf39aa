"""The smoothed response under any convex cost, by the convex-concave procedure.

Each step is one batched convex problem. Slower than `ScalarResponse` by orders
of magnitude and limited by a solver's tolerance, but it asks nothing of the cost
beyond convexity; where both apply it is the referee.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
import torch
from torch import Tensor

from countermove._types import Floats, Mask
from countermove.people import ActionSet, Cost
from countermove.response._conic_layers import ConicBatch, Layer, LayerShape, Solver, proxy_layer
from countermove.response._solutions import raise_not_finite
from countermove.response.action_plan import ActionPlan, slope_of
from countermove.response.base import OnFailure, Responses, check_converged, checked_rows
from countermove.response.smooth import Gradient, SmoothedResponse, Start
from countermove.response.step import smoothed_step
from countermove.scores import Score

STARTS = (-3.0, -1.0, 0.0, 1.0, 3.0, 10.0)
"""Scores, in step units, at which ``start="global"`` linearises besides the person's own."""
WIDE = 1e3
"""Stands for a bound one person lacks and another has, relative to the largest finite one."""
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
        if tensor:
            return Responses(x_new, cost, moved, torch.from_numpy(converged))
        return Responses(x_new.numpy(), cost.numpy(), moved.numpy(), converged)

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


class ConicProblem:
    """One batch of people: bounds as tensors, the proxy solve, the search for a fixed point."""

    def __init__(self, response: ConicResponse, plan: ActionPlan, X: Tensor) -> None:
        self.response, self.X = response, X
        self.shape, self.batch = conic_batch(plan, X)
        self.columns = torch.tensor(self.shape.columns, dtype=torch.long)

    def proxy(self, rule: ConicRule, pull: Tensor) -> tuple[Tensor, Tensor]:
        """Solve the proxy; return full actions and their costs."""
        if not len(self.columns):
            zero = torch.zeros_like(self.X)
            return zero, zero.sum(dim=1)
        inner = rule.slope[self.columns]
        more = {
            "pull": pull[:, None] * inner,
            "steep": rule.sharpness * inner,
            "now": rule.sharpness * rule.now,
        }
        part, cost = self.response.layer(self.shape).solve(replace(self.batch, more=more))
        return spread(part, self.columns, self.X.shape[1]), cost

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


def conic_batch(plan: ActionPlan, X: Tensor) -> tuple[LayerShape, ConicBatch]:
    """Return the shape a layer is compiled for and the people's constraints as tensors."""
    rows: Floats = X.detach().numpy()
    n, d = rows.shape
    lower, upper = plan.actions.box(rows)
    bounds = plan.bounds(n)
    columns = np.flatnonzero(plan.moving)
    below = np.flatnonzero(np.isfinite(lower[:, columns]).any(axis=0))
    above = np.flatnonzero(np.isfinite(upper[:, columns]).any(axis=0))
    by_value = [torch.from_numpy(part) - X for part in (bounds.min_value, bounds.max_value)]
    lo = torch.maximum(torch.from_numpy(bounds.lower), by_value[0])
    hi = torch.minimum(torch.from_numpy(bounds.upper), by_value[1])
    finite = np.abs(np.concatenate([lower[np.isfinite(lower)], upper[np.isfinite(upper)], [1.0]]))
    wide = WIDE * float(finite.max())
    offsets = np.zeros((n, 0)) if plan.actions.b is None else plan.actions.b
    shape = LayerShape(d, tuple(columns.tolist()), tuple(below.tolist()), tuple(above.tolist()))
    batch = ConicBatch(
        X,
        lo.clamp(min=-wide),
        hi.clamp(max=wide),
        torch.from_numpy(np.broadcast_to(offsets, (n, offsets.shape[-1])).copy()),
        {},
    )
    return shape, batch


def pick(batch: ConicBatch, who: Tensor) -> ConicBatch:
    """Return the rows ``who`` of a batch."""
    return ConicBatch(batch.X[who], batch.lo[who], batch.hi[who], batch.offsets[who], {})


def spread(part: Tensor, columns: Tensor, n_features: int) -> Tensor:
    """Return full actions from those of the movable features."""
    if len(columns) == n_features:
        return part
    return part.new_zeros(len(part), n_features).index_copy(1, columns, part)


def pull_at(a: Tensor, scores: Tensor) -> Tensor:
    """Return the slope of the convex half of the step, in score units."""
    up = a * scores + 1.0
    return 0.5 * a * up / torch.sqrt(1.0 + up * up)


def pull_slope(a: Tensor, scores: Tensor) -> Tensor:
    """Return its derivative."""
    up = a * scores + 1.0
    return 0.5 * a * a * (1.0 + up * up) ** -1.5
