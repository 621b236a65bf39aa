r"""Climbing a utility that need not be concave: proximal steps from many starts, then Newton.

People maximise :math:`f(\delta) - \max(0, \ell\cdot\delta)` over a box, with f the
smoothed step of the score minus the quadratic part of the cost. All rows climb at
once and none looks at another.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import torch
from torch import Tensor

from countermove.people.action_box import Bounds
from countermove.randomness import torch_generator
from countermove.response.base import GAIN
from countermove.response.step import smoothed_step
from countermove.scores import Score

if TYPE_CHECKING:
    from countermove.response._possible import BranchList

HALVINGS = 60
"""Bisections of a multiplier in [0, 1]: to the last digit."""
GROWTH, SHRINKAGE = 1.5, 0.5
"""Of a step after success and failure; the usual choice of backtracking methods."""
SMALLEST_STEP = 1e-12
"""A step this short changes nothing any more."""
ROUNDING = 1e-14
"""Utilities are known to about this share."""
CONCAVE = 1e-9
"""Curvature, as a share of the largest, from which a maximum counts as strict."""


class Stop(NamedTuple):
    """Where the climb ended, and what holds people there."""

    action: Tensor
    multiplier: Tensor  # of the kink
    residual: Tensor  # largest coordinate of one more proximal step of length one
    concave: Tensor  # whether the maximum is strict


@dataclass(frozen=True)
class Climb:
    """The problems of n people over the m features that can move."""

    score: Score
    X: Tensor  # (n, d)
    columns: Tensor  # positions of the m features
    lower: Tensor  # the box of the actions, (n, m)
    upper: Tensor
    sharpness: Tensor  # score units to step units, a scalar
    weights: Tensor | None  # the cost's parts over the m features; None where it has none
    matrix: Tensor | None
    kink: Tensor | None
    branches: BranchList | None = None  # one of each person, where rows cut the box

    def of_rows(self, rows: Tensor) -> Climb:
        """Return the problems of some people, in that order."""
        branches = None if self.branches is None else self.branches.rows(rows.numpy())
        lower, upper = self.lower[rows], self.upper[rows]
        return replace(self, X=self.X[rows], lower=lower, upper=upper, branches=branches)

    def inside(self, point: Tensor) -> Tensor:
        """Return the nearest allowed action, shape (n, m)."""
        if self.branches is None:
            return point.clamp(self.lower, self.upper)
        return torch.from_numpy(self.branches.project(point.numpy())[0])

    def place(self, action: Tensor) -> Tensor:
        """Return where an action leads, shape (n, d)."""
        return self.X.index_add(1, self.columns, action)

    def smooth(self, action: Tensor) -> Tensor:
        """Return f: the smoothed decision minus the quadratic part of the cost, shape (n,)."""
        value = smoothed_step(self.sharpness * self.score(self.place(action)))
        if self.weights is not None:
            value = value - action.square() @ self.weights
        if self.matrix is not None:
            value = value - ((action @ self.matrix) * action).sum(-1)
        return value

    def kinked(self, action: Tensor) -> Tensor:
        """Return the kinked part of the cost, shape (n,)."""
        if self.kink is None:
            return action.new_zeros(len(action))
        return (action @ self.kink).clamp(min=0.0)

    def ascent(self, action: Tensor) -> tuple[Tensor, Tensor]:
        """Return f and its gradient, as constants."""
        with torch.enable_grad():
            at = action.detach().requires_grad_()
            value = self.smooth(at)
            (gradient,) = torch.autograd.grad(value.sum(), at)
        return value.detach(), gradient

    def curvature(self, action: Tensor) -> Tensor:
        """Return the Hessian of f, shape (n, m, m), as a constant."""
        m = action.shape[1]
        with torch.enable_grad():
            at = action.detach().requires_grad_()
            (gradient,) = torch.autograd.grad(self.smooth(at).sum(), at, create_graph=True)
            ways = torch.eye(m, dtype=at.dtype)[:, None, :].expand(m, len(at), m)
            (rows,) = torch.autograd.grad(gradient, at, ways, is_grads_batched=True)
        half: Tensor = rows.transpose(0, 1)
        return 0.5 * (half + half.transpose(1, 2))

    def nearest(self, point: Tensor, step: Tensor) -> tuple[Tensor, Tensor]:
        """Return the proximal point and the multiplier of the kink."""
        # argmin |δ - p|²/2 + α max(0, l·δ) over the box is clip(p - α μ l) with μ in [0, 1].
        clipped = self.inside(point)
        low = point.new_zeros(len(point))
        if self.kink is None:
            return clipped, low
        pull = step[:, None] * self.kink

        def moved(multiplier: Tensor) -> Tensor:
            return self.inside(point - multiplier[:, None] * pull)

        high = torch.ones_like(low)
        costly = moved(high) @ self.kink >= 0.0
        cheap = clipped @ self.kink <= 0.0
        for _ in range(HALVINGS):
            middle = 0.5 * (low + high)
            above = moved(middle) @ self.kink > 0.0
            low, high = torch.where(above, middle, low), torch.where(above, high, middle)
        between = 0.5 * (low + high)
        multiplier = torch.where(cheap, 0.0, torch.where(costly, 1.0, between))
        return moved(multiplier), multiplier


def climb(problem: Climb, action: Tensor, steps: int, tolerance: float) -> tuple[Tensor, Tensor]:
    """Take proximal gradient steps, each row by its own length; return actions and utilities."""
    action = action.clone()
    value, gradient = problem.ascent(action)
    length = torch.ones_like(value)
    live = torch.arange(len(action))
    for _ in range(steps):
        if not len(live):
            break
        part = problem.of_rows(live)
        at, now, slope, alpha = action[live], value[live], gradient[live], length[live]
        target, _ = part.nearest(at + alpha[:, None] * slope, alpha)
        move = target - at
        reached, steeper = part.ascent(target)
        expected = now + (slope * move).sum(1) - move.square().sum(1) / (2.0 * alpha)
        good = reached >= expected - ROUNDING * (1.0 + expected.abs())
        who = live[good]
        action[who], value[who], gradient[who] = target[good], reached[good], steeper[good]
        length[live] = alpha * torch.where(good, GROWTH, SHRINKAGE)
        still = good & (move.abs().amax(1) <= tolerance * alpha)
        live = live[~still & (length[live] > SMALLEST_STEP)]
    return action, value - problem.kinked(action)


def polish(problem: Climb, action: Tensor, steps: int, tolerance: float) -> Stop:
    """Let Newton's method finish, on what the bounds and the kink leave free."""
    n = len(action)
    action, multiplier = action.clone(), action.new_zeros(n)
    residual = action.new_full((n,), torch.inf)
    concave = torch.zeros(n, dtype=torch.bool)
    length = action.new_ones(n)
    live = torch.arange(n)
    for _ in range(steps):
        part = problem.of_rows(live)
        at, mult, rest, strict, longest = _newton(part, action[live], length[live])
        action[live], multiplier[live], residual[live], concave[live] = at, mult, rest, strict
        length[live] = longest
        live = live[(rest > tolerance) & torch.isfinite(rest)]
        if not len(live):
            break
    return Stop(action, multiplier, residual, concave)


def _newton(problem: Climb, action: Tensor, length: Tensor) -> tuple[Tensor, ...]:
    """Take one proximal step, which finds the active bounds, then Newton's step along them."""
    # Returns the action, the kink's multiplier, the residual, whether the maximum is strict, and
    # the longest proximal step the curvature allows (``length`` is the one found before).
    target = _proximal(problem, action, length)
    base, slope = problem.ascent(target)
    base = base - problem.kinked(target)
    full, multiplier = problem.nearest(target + slope, torch.ones_like(base))
    residual = torch.zeros_like(base)
    if full.shape[1]:
        residual = (full - target).abs().amax(1)
    system = FreeDirections.at(problem, target, slope, multiplier)
    ahead = system.solve(system.along(slope))
    # Near the top utilities differ by less than rounding; the gradient still knows the way.
    rounding = ROUNDING * (1.0 + base.abs())
    share, best = torch.ones_like(base), target
    for _ in range(8):
        tried = problem.inside(target + share[:, None] * ahead)
        risen = problem.smooth(tried).detach() - problem.kinked(tried) >= base - rounding
        best = torch.where((risen & (share > 0.0))[:, None], tried, best)
        share = torch.where(risen, 0.0, SHRINKAGE * share)
        if bool(risen.all()):
            break
    steepest = system.curvature.abs().sum(2)
    steepest = steepest.amax(1) if steepest.shape[1] else torch.zeros_like(base)
    return best, multiplier, residual, system.concave, 1.0 / steepest.clamp(min=1.0)


def _proximal(problem: Climb, action: Tensor, length: Tensor) -> Tensor:
    """Return a proximal step that does not descend, no longer than ``length``."""
    value, gradient = problem.ascent(action)
    utility = value - problem.kinked(action)
    least = utility - ROUNDING * (1.0 + utility.abs())
    for _ in range(HALVINGS):
        target, _ = problem.nearest(action + length[:, None] * gradient, length)
        worse = problem.smooth(target).detach() - problem.kinked(target) < least
        if not worse.any():
            return target
        length = torch.where(worse, SHRINKAGE * length, length)
    return torch.where(worse[:, None], action, target)


@dataclass(frozen=True)
class FreeDirections:
    """Along what a stopped person may still move, and how f bends there."""

    free: Tensor  # features strictly inside their bounds, (n, m)
    normals: Tensor  # of the rows that hold people and, last, of the kink, (n, r, m)
    curvature: Tensor  # the Hessian of f over the free features, (n, m, m)
    bent: Tensor  # the same along the tangent, minus one elsewhere
    concave: Tensor  # whether it is negative definite, (n,)

    @classmethod
    def at(
        cls, problem: Climb, action: Tensor, slope: Tensor, multiplier: Tensor
    ) -> FreeDirections:
        """Read the active bounds and the kink off a point, given the gradient of f there."""
        push = slope
        if problem.kink is not None:
            push = slope - multiplier[:, None] * problem.kink
        held = ((action <= problem.lower) & (push <= 0.0)) | (
            (action >= problem.upper) & (push >= 0.0)
        )
        free = ~held
        on_kink = (multiplier > 0.0) & (multiplier < 1.0)
        across = [*_held_rows(problem, action, push)]
        across += [] if problem.kink is None else [problem.kink * on_kink[:, None]]
        normals = _orthonormal([each * free for each in across], action)
        inside = free[:, :, None] & free[:, None, :]
        curvature = problem.curvature(action) * inside
        blocked = normals.transpose(1, 2) @ normals
        along = torch.eye(action.shape[1], dtype=action.dtype) - blocked
        bent = along @ curvature @ along - blocked
        bent = bent - torch.diag_embed((~free).to(action.dtype))
        scale = bent.abs().amax(dim=(1, 2)) if bent.shape[1] else action.new_zeros(len(action))
        room = torch.eye(action.shape[1], dtype=action.dtype) * (CONCAVE * scale)[:, None, None]
        _, failed = torch.linalg.cholesky_ex(-(bent + room))
        return cls(free, normals, curvature, bent, failed == 0)

    def along(self, vector: Tensor) -> Tensor:
        """Return the part of a vector that keeps every bound and the kink."""
        inside = (vector * self.free)[:, :, None]
        rest = inside - self.normals.transpose(1, 2) @ (self.normals @ inside)
        return rest[:, :, 0]

    def solve(self, vector: Tensor) -> Tensor:
        """Return minus the inverse curvature times a tangent vector: uphill, also where convex."""
        result = torch.zeros_like(vector)
        strict = torch.nonzero(self.concave)[:, 0]
        if len(strict):
            result[strict] = -torch.linalg.solve(self.bent[strict], vector[strict])
        other = torch.nonzero(~self.concave)[:, 0]
        if len(other):
            values, ways = torch.linalg.eigh(self.bent[other])
            least = 1e-3 * values.abs().amax(1, keepdim=True).clamp(min=1e-9)
            sizes = torch.maximum(values.abs(), least)
            share = (ways.transpose(1, 2) @ vector[other][:, :, None]) / sizes[:, :, None]
            result[other] = (ways @ share)[:, :, 0]
        return self.along(result)


def with_derivative(
    problem: Climb, solved: Climb, stop: Stop, converged: Tensor, bounds: Bounds
) -> Tensor:
    """Return the actions of a stop with their derivative, one Newton step there, shape (n, m)."""
    # With H the curvature along the tangent, held constant, and g the gradient of the utility
    # as a function of everything, δ - H⁻¹ g has the value of the response and, by the
    # implicit function theorem, its derivative. ``problem`` has the graph, ``solved`` has none.
    _, slope = solved.ascent(stop.action)
    tangent = FreeDirections.at(solved, stop.action, slope, stop.multiplier)
    keep = converged & tangent.concave
    action = _riding_bounds(bounds, problem, tangent, stop.action)
    if not action.requires_grad:
        action = action.detach().requires_grad_()
    (gradient,) = torch.autograd.grad(problem.smooth(action).sum(), action, create_graph=True)
    normal = torch.zeros_like(stop.action)
    if problem.kink is not None:
        gradient = gradient - stop.multiplier[:, None] * problem.kink
        # People on the kink stay on it: their move has no part across it to first order.
        across = tangent.normals[:, -1]
        length = (across * problem.kink.detach()).sum(1, keepdim=True)
        across = across / torch.where(length > 0.0, length, 1.0)
        normal = -across * (action @ problem.kink)[:, None]
    pull = tangent.along(gradient + (tangent.curvature @ normal[:, :, None])[:, :, 0])
    minus = -torch.eye(pull.shape[1], dtype=pull.dtype)
    newton = torch.linalg.solve(torch.where(keep[:, None, None], tangent.bent, minus), pull)
    step = normal - tangent.along(newton)
    # The step is zero in value: only its derivative is wanted.
    return action + torch.where(keep[:, None], step - step.detach(), 0.0)


def _riding_bounds(
    bounds: Bounds, problem: Climb, tangent: FreeDirections, action: Tensor
) -> Tensor:
    """Return the action, with the derivative of those stopped by a bound on where they end."""
    columns, result = problem.columns.numpy(), action
    here = problem.X[:, problem.columns]
    for value, own, stopped in (
        (bounds.min_value, bounds.lower, action <= problem.lower),
        (bounds.max_value, bounds.upper, action >= problem.upper),
    ):
        place, limit = (torch.from_numpy(part[:, columns]) for part in (value, own))
        rides = ~tangent.free & stopped & torch.isfinite(place) & (limit != action)
        result = torch.where(rides, result + (here.detach() - here), result)
    return result


def _length(vector: Tensor) -> Tensor:
    """Return the length of every row, one for zero, shape (n, 1)."""
    size = vector.norm(dim=1, keepdim=True)
    return torch.where(size > 0.0, size, 1.0)


def _held_rows(problem: Climb, action: Tensor, push: Tensor) -> list[Tensor]:
    """Return the rows that hold people back, each of shape (n, m), zero for those it does not."""
    branches = problem.branches
    if branches is None:
        return []
    _, held = branches.project((action + push).numpy())
    A = torch.from_numpy(branches.people.A)
    return [
        A[r] * torch.from_numpy(held[:, r, None]) for r in np.flatnonzero(held.any(axis=0)).tolist()
    ]


def _orthonormal(vectors: list[Tensor], like: Tensor) -> Tensor:
    """Return an orthonormal basis of what they span, (n, r, m); zeros where one adds nothing."""
    kept: list[Tensor] = []
    for vector in vectors:
        rest = vector
        for before in kept:
            rest = rest - (rest * before).sum(1, keepdim=True) * before
        size = rest.norm(dim=1, keepdim=True)
        new = size > 1e-9 * vector.norm(dim=1, keepdim=True).clamp(min=1e-300)
        kept.append(torch.where(new, rest / torch.where(new, size, 1.0), 0.0))
    return torch.stack(kept, dim=1) if kept else like.new_zeros(len(like), 0, like.shape[1])


DRAWN_SHARE = 0.7
"""How far along a drawn direction to start, of what is affordable: half of the cost is left."""


def starting_points(problem: Climb, reference: Tensor, drawn: int, seed: int) -> Tensor:
    """Return the actions to climb from, shape (5 + drawn, n, m); ``reference`` has shape (k, d)."""
    n, m = len(problem.X), len(problem.columns)
    uphill = problem.score.gradient(problem.X)[:, problem.columns]
    if problem.weights is not None:
        uphill = uphill / problem.weights
    elif problem.matrix is not None:
        uphill = torch.linalg.solve(problem.matrix, uphill.T).T
    draws = torch_generator(seed, "ascent starts")
    ways = torch.randn(drawn, m, generator=draws, dtype=torch.float64)
    top = affordable(problem, uphill)
    return torch.stack(
        [
            torch.zeros(n, m, dtype=torch.float64),
            top,
            0.5 * top,
            0.5 * affordable(problem, -uphill),
            _towards_approved(problem, reference),
            *(DRAWN_SHARE * affordable(problem, way.expand(n, m)) for way in ways),
        ]
    )


def affordable(problem: Climb, way: Tensor) -> Tensor:
    """Return the longest action along each way that costs no more than a decision is worth."""
    way = way / _length(way)
    bent = way.new_zeros(len(way))
    if problem.weights is not None:
        bent = bent + way.square() @ problem.weights
    if problem.matrix is not None:
        bent = bent + ((way @ problem.matrix) * way).sum(1)
    steep = problem.kinked(way)
    root = steep + (steep.square() + 4.0 * GAIN * bent).sqrt()
    # Without any cost along the way the box ends it: far is far enough.
    length = torch.where(root > 0.0, 2.0 * GAIN / root.clamp(min=1e-12), 1e6)
    return (way * length[:, None]).clamp(problem.lower, problem.upper)


def _towards_approved(problem: Climb, reference: Tensor) -> Tensor:
    """Return the way to the nearest approved person, as far as it can be paid for."""
    good = reference[problem.score(reference) >= 0.0]
    if not len(good):
        return torch.zeros(len(problem.X), len(problem.columns), dtype=torch.float64)
    here, there = problem.X[:, problem.columns], good[:, problem.columns]
    way = there[torch.cdist(here, there).argmin(1)] - here
    most = affordable(problem, way)
    nearer = way.norm(dim=1, keepdim=True) < most.norm(dim=1, keepdim=True)
    return torch.where(nearer, way, most)
