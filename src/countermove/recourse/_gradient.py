r"""Recourse by gradient descent (Wachter et al.), all people and starts at once.

Where costs separate, one start is the action to which the score's linear models lead.
Projected Adam on :math:`\max(0, target - s(x\oplus\delta)) + \lambda' c(\delta)`, aimed at
approval at the real threshold. The price :math:`\lambda'` of each run grows while it is
approved and shrinks while it is not; the cheapest approved iterate is kept.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import torch

from countermove._types import Floats, Index
from countermove.execution import in_turn
from countermove.people.feasible import FeasibleActions, absent
from countermove.recourse._linear import climb, one_at_a_time, starts_of, uphill
from countermove.recourse.affine import by_local_models
from countermove.recourse.polytope import project
from countermove.recourse.problem import (
    Proposals,
    SearchProblem,
    Settings,
    cheaper_of,
    fall_back,
    shortened,
    unproven,
)

RATE = 0.08
"""First Adam step as a share of the width of each feature's range; falls linearly."""
FIRST_PRICE, CHEAPEST, MOST_EXPENSIVE = 1e-3, 1e-6, 1e3
GROWTH = 1.3
WATCH, STILL = 20, 0.01
"""Every so many steps, runs that moved or gained less than this share retire."""
MOMENTUM, SPREAD, TINY = 0.9, 0.999, 1e-12


def search(problem: SearchProblem, settings: Settings) -> Proposals:
    """Return the cheapest approved action over all starts and steps, NaN where none was met."""
    action = fall_back(problem, cheapest_met(problem, settings), reach, settings)
    return unproven(shortened(problem, action))


def cheapest_met(problem: SearchProblem, settings: Settings) -> Floats:
    """Return the cheapest approved action that linear models and Adam met, NaN without."""
    linear = _of_linear_models(problem)
    return cheaper_of(problem, linear, _descended(problem, settings, linear))


def _of_linear_models(problem: SearchProblem) -> Floats:
    """Return what the score's linear models lead to, NaN where nothing or costs do not separate."""
    shape = problem.cost.canonical(problem.X.shape[1])
    if shape is None or shape.weights is None:
        return np.full_like(problem.X, np.nan)
    return by_local_models(problem)


def _descended(problem: SearchProblem, settings: Settings, start: Floats) -> Floats:
    """Return the cheapest approved action that Adam met, from ``start`` among others."""
    if not problem.feasible.convex:
        ways = [_descended(part, settings, start) for part in in_turn(_branches(problem))]
        return cheaper_of(problem, *ways)
    runs, starts = _runs(problem, settings.starts, start)
    return _cheapest(problem, _rounded(runs, ProjectedAdam(runs, starts, settings.steps).run()))


def reach(problem: SearchProblem, settings: Settings) -> tuple[Floats, Floats]:
    """Return the action of the highest score over all starts and steps, and that score."""
    if not problem.feasible.convex:
        parts = in_turn(_branches(problem))
        (action, scores), (other, higher) = (reach(part, settings) for part in parts)
        return np.where((higher > scores)[:, None], other, action), np.maximum(scores, higher)
    endless = replace(problem, target=np.inf)
    runs, start = _runs(endless, settings.starts)
    best = _rounded(runs, ProjectedAdam(runs, start, settings.steps).run())
    # The starts (doing nothing is one) stand in for runs that rounding spoilt.
    first = runs.feasible.snap_within(start)
    n, d = problem.X.shape
    ways = np.concatenate([best.reshape(n, -1, d), first.reshape(n, -1, d)], axis=1)
    rows, top = np.arange(n), problem.allowed_values(ways).argmax(axis=1)
    return one_at_a_time(endless, *climb(endless, ways[rows, top]))


def _branches(problem: SearchProblem) -> tuple[SearchProblem, SearchProblem]:
    """Return the problem in two branches: of doing nothing, and of the steepest way up."""
    _, gradient = problem.slopes(problem.home)
    here, there = (
        replace(problem, feasible=problem.feasible.branch_at(action), home=action)
        for action in (problem.home, uphill(problem.feasible, gradient))
    )
    return here, there


def _runs(
    problem: SearchProblem, starts: int, known: Floats | None = None
) -> tuple[SearchProblem, Floats]:
    """Return one problem per start and person, and where they start: ``known`` is one of them."""
    parts = [problem.home]
    if starts > 1:
        _, gradient = problem.slopes(problem.home)
        steep = uphill(problem.feasible, gradient)
        parts.append(steep if known is None else np.where(np.isnan(known), steep, known))
    if starts > 2:
        spots = starts_of(problem, max(starts - 2, 2))
        worth = problem.values_of_each(spots)
        order = np.argsort(-worth, axis=1)[:, : starts - 2]
        rows = np.arange(len(worth))
        parts += [spots[rows, order[:, rank]] for rank in range(order.shape[1])]
    start = np.stack(parts, axis=1)
    runs = problem.repeated(start.shape[1])
    return runs, _projected(runs, start.reshape(-1, start.shape[2]))


def _projected(problem: SearchProblem, action: Floats) -> Floats:
    feasible = problem.feasible
    return project(action, feasible.low, feasible.high, feasible.A, feasible.b)


@dataclass
class ProjectedAdam:
    """Projected Adam with a price schedule, over every row of a problem."""

    problem: SearchProblem
    action: Floats
    steps: int

    def run(self) -> Floats:
        """Return each run's best iterate; NaN for a run that was never approved."""
        n, d = self.action.shape
        best, worth = np.full((n, d), np.nan), np.full(n, np.inf)
        runs = AdamRuns(np.arange(n), self.problem, self.action.copy())
        for step in in_turn(range(1, self.steps + 1)):
            value = runs.step(RATE * (1.0 - (step - 1) / self.steps), step)
            wins = value < worth[runs.who]
            who = runs.who[wins]
            best[who], worth[who] = runs.seen[wins], value[wins]
            if step % WATCH == 0:
                runs = runs.without_idle(worth)
                if not runs.who.size:
                    break
        return best


class AdamRuns:
    """The runs still under way, with Adam's memory of each."""

    def __init__(self, who: Index, problem: SearchProblem, action: Floats) -> None:
        self.who, self.problem, self.action = who, problem, action
        self.seen = action
        self.first, self.second = np.zeros_like(action), np.zeros_like(action)
        self.price = np.full(len(action), FIRST_PRICE)
        self.width = problem.feasible.high - problem.feasible.low
        self.last_action, self.last_worth = action.copy(), np.full(len(action), np.inf)
        self.climbing = bool(np.isinf(problem.target).all())

    def step(self, rate: float, count: int) -> Floats:
        """Judge where the runs are, and move them; return what they are worth (less is better)."""
        scores, slope = self.problem.slopes(self.action)
        self.seen = self.action
        if self.climbing:
            value, descent = -scores, -slope
        else:
            cost, cost_slope = self._cost()
            good = scores >= self.problem.target
            value = np.where(good, cost, np.inf)
            self.price = np.where(good, self.price * GROWTH, self.price / GROWTH)
            self.price = np.clip(self.price, CHEAPEST, MOST_EXPENSIVE)
            descent = self.price[:, None] * cost_slope - np.where(good, 0.0, 1.0)[:, None] * slope
        self.first = MOMENTUM * self.first + (1.0 - MOMENTUM) * descent
        self.second = SPREAD * self.second + (1.0 - SPREAD) * descent**2
        size = np.sqrt(self.second / (1.0 - SPREAD**count)) + TINY
        direction = self.first / (1.0 - MOMENTUM**count) / size
        self.action = _projected(self.problem, self.action - rate * self.width * direction)
        return value

    def without_idle(self, worth: Floats) -> AdamRuns:
        """Return the runs that moved or found something cheaper since the last look."""
        now = worth[self.who]
        far = (np.abs(self.action - self.last_action) > STILL * self.width).any(axis=1)
        found = np.isfinite(now)
        with np.errstate(invalid="ignore"):
            gained = now < self.last_worth - STILL * np.abs(now)
        kept = np.flatnonzero(np.where(found & (not self.climbing), gained, far))
        other = AdamRuns(self.who[kept], self.problem.rows(kept), self.action[kept])
        other.first, other.second = self.first[kept], self.second[kept]
        other.price, other.last_worth = self.price[kept], now[kept]
        return other

    def _cost(self) -> tuple[Floats, Floats]:
        delta = torch.from_numpy(self.action.copy()).requires_grad_()
        cost = self.problem.cost.price(torch.zeros_like(delta), delta)
        (slope,) = torch.autograd.grad(cost.sum(), delta)
        return cost.detach().numpy(), slope.numpy()


def snap_uphill(feasible: FeasibleActions, action: Floats, gradient: Floats) -> Floats:
    """Round whole numbers to the side of the higher score, groups to the nearest category."""
    step = np.where(feasible.step > 0.0, feasible.step, 1.0)
    steps = action / step
    up = np.where(gradient > 0.0, np.ceil(steps - 1e-9), np.floor(steps + 1e-9)) * step
    return feasible.snap(np.where(feasible.step > 0.0, up, action))


def _rounded(problem: SearchProblem, action: Floats) -> Floats:
    """Bring the iterates to the lattice: to the nearest point, or to the one of higher score."""
    if not problem.feasible.discrete:
        return action
    who = np.flatnonzero(~absent(action))
    part = problem.rows(who)
    near = part.feasible.snap_within(action[who])
    _, slope = part.slopes(action[who])
    high = snap_uphill(part.feasible, action[who], slope)
    low_ok, worth_high = part.feasible.meets(near), part.values(high)
    better = part.feasible.meets(high) & ((worth_high > part.values(near)) | ~low_ok)
    result = action.copy()
    result[who] = np.where(better[:, None], high, near)
    return result


def _cheapest(problem: SearchProblem, action: Floats) -> Floats:
    """Return each person's cheapest action, over the runs, that reaches the target."""
    n, d = problem.X.shape
    each = action.reshape(n, -1, d)
    runs = problem.repeated(each.shape[1])
    given = ~absent(action)
    filled = np.where(given[:, None], action, runs.home)
    good = given & runs.reaches(filled)
    price = np.where(good, runs.price(filled), np.inf).reshape(n, -1)
    best = price.argmin(axis=1)
    rows = np.arange(n)
    result: Floats = np.where(np.isfinite(price[rows, best])[:, None], each[rows, best], np.nan)
    return result
