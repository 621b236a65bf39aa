r"""The response to any differentiable score, found by ascent.

Where the score is not affine in what moves, the best response is no longer one number per
person and may have several local maxima. They are climbed from several starts, and
the best one found is differentiated implicitly.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import product
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Tensor

from countermove._types import Floats, Index
from countermove.data.storage import object_digest
from countermove.errors import CostError, ParameterError, UnboundedResponseError, shown
from countermove.people import ActionSet, Cost
from countermove.randomness import torch_generator
from countermove.response._climbing import (
    Climb,
    Stop,
    affordable,
    climb,
    polish,
    starting_points,
    with_derivative,
)
from countermove.response._possible import BranchList
from countermove.response.base import (
    GAIN,
    OnFailure,
    Response,
    Responses,
    check_converged,
    checked_rows,
)
from countermove.response.reduction import ActionPlan, raise_not_finite, refuse_moving_people
from countermove.response.smooth import check_positive
from countermove.response.step import smoothed_step
from countermove.scores import Score, deciding

REFERENCE_ROWS = 64
"""People drawn to measure how fast a score rises: its mean is then known to about a tenth."""
CLIMBED = 3
"""Branches of a person that are climbed in."""
ALLOWED_SHARE = 0.05
"""Share of a batch whose climb may stop early in training before it is an error."""


class AscentResponse(Response):
    r"""The response to a smoothed decision for scores without a slope.

    .. math:: \Delta(x) = \arg\max_{x'} \sigma^*\!\left(\frac{s(x')}{\tau N}\right) - c(x, x')

    over the allowed actions. Guarantee: the response is a strict local maximum
    to ``tolerance``, or ``converged`` is False; it is never worse than staying (or than the
    nearest allowed place); it depends on nobody else. It need *not* be the global maximum:
    `optimality_gap` measures by how much it is known to fall short.

    Parameters
    ----------
    cost
        Any cost with a closed form. A purely linear one needs bounds on all that moves.
    actions
        Boxes, directions, immutables and who can exist; extra constraints (``A``, ``b``) are
        refused. What the score holds fixed (``score.fixed``) stays. People who stay possible
        climb in the few branches that promise most.
    temperature
        :math:`\tau`, in units of distance.
    random_starts
        Starts in directions of their own, besides staying, going up the gradient (twice) and
        down it, and going towards the nearest approved person of ``reference``.
    tolerance
        Largest coordinate of a proximal gradient step of length one at the response.
    max_iterations
        Gradient steps per start, and Newton steps from the best of them.
    unit
        Score per unit of distance N, a positive constant. None: N(w) of a score with a slope;
        else the root mean square, over ``reference``, of the gradient's length over movable
        directions, which has a derivative too.
    reference
        People, shape (k, d), by whom N is measured and among whom approved ones are looked
        for; None: 64 draws from the standard normal, as in standardised units.
    seed
        Of the random starts and of the default reference.
    """

    name = "ascent"
    costly = True

    def __init__(
        self,
        cost: Cost | None = None,
        actions: ActionSet | None = None,
        temperature: float = 0.5,
        *,
        random_starts: int = 3,
        tolerance: float = 1e-7,
        max_iterations: int = 60,
        unit: float | None = None,
        reference: ArrayLike | None = None,
        seed: int = 0,
    ) -> None:
        super().__init__(cost, actions)
        check_positive(temperature=temperature, tolerance=tolerance, max_iterations=max_iterations)
        if unit is not None:
            check_positive(unit=unit)
        if isinstance(random_starts, bool) or random_starts != int(random_starts):
            raise ParameterError(f"random_starts is a whole number, got {random_starts!r}")
        if random_starts < 0:
            raise ParameterError(f"random_starts is at least 0, got {random_starts}")
        self.temperature, self.tolerance = float(temperature), float(tolerance)
        self.random_starts, self.max_iterations = int(random_starts), int(max_iterations)
        self.unit, self.seed = None if unit is None else float(unit), int(seed)
        self.reference = None if reference is None else np.array(reference, dtype=np.float64)
        if self.actions.A is not None:
            raise ParameterError(
                "an ascent response climbs inside a box; extra constraints A δ + b ≥ 0 are only "
                "supported for scores with a slope (ScalarResponse, ConicResponse)"
            )

    def answers(self, score: Score) -> bool:
        """Return whether the score has a gradient to climb: trees and black boxes have none."""
        return score.differentiable

    def respond(self, score: Score, X: Any, on_failure: OnFailure = "raise") -> Responses[Any]:
        """Return where people move to; tensors carry the derivative of the local maximum."""
        rows = checked_rows(X, score)
        problem, stop = self.solve(score, rows)
        converged = self._converged(stop)
        check_converged(converged.numpy(), on_failure)
        if not isinstance(X, Tensor):
            places: Floats = problem.place(stop.action).numpy()
            gone = (np.abs(places - rows) > self.tolerance).any(axis=1)
            return Responses(places, self.cost.price(rows, places), gone, converged.numpy())
        with deciding(score):
            action = self._with_gradient(score, X, problem, stop)
        moved = (action.detach().abs() > self.tolerance).any(1)
        return Responses(X + action, self.cost.price(torch.zeros_like(X), action), moved, converged)

    def scores_after(self, score: Score, X: Tensor) -> Tensor:
        """Return the score at the response.

        People whose climb stopped early are judged where it stopped, and their move is
        held fixed in the gradient; more of them than one in twenty (and than one) are an error.
        """
        rows = checked_rows(X, score)
        problem, stop = self.solve(score, rows)
        converged = self._converged(stop)
        if int((~converged).sum()) > max(1.0, ALLOWED_SHARE * len(rows)):
            check_converged(converged.numpy(), "raise")
        if not torch.is_grad_enabled():
            with deciding(score):
                after: Tensor = score(problem.place(stop.action))
            return after
        with deciding(score):
            action = self._with_gradient(score, X, problem, stop)
        # The loss sees the score with its training noise, people the score as it decides.
        result: Tensor = score(X + action)
        return result

    def solve(self, score: Score, rows: Floats, starts: Tensor | None = None) -> tuple[Climb, Stop]:
        """Return everybody's problem over what can move, and the best place found.

        Parameters
        ----------
        score
            The published score.
        rows
            People, shape (n, d).
        starts
            Actions over the movable features to climb from instead, shape (k, n, m).
        """
        with deciding(score), torch.no_grad():
            X = torch.from_numpy(rows)
            raise_not_finite(rows, score(X).numpy())
            problem = self.problem(score, X, self.sharpness(score))
            starts = (
                starting_points(problem, self._reference(X.shape[1]), self.random_starts, self.seed)
                if starts is None
                else starts
            )
            k, n, m = starts.shape
            repeated = problem.of_rows(torch.arange(n).repeat(k))
            begun = starts.reshape(k * n, m).clamp(repeated.lower, repeated.upper)
            actions, values = climb(repeated, begun, self.max_iterations, 1e-3)
            found = actions.reshape(k, n, m)
            if self.plan(score.n_features).tied:
                problem, action = self._in_branches(problem, found)
            else:
                action = found[values.reshape(k, n).argmax(0), torch.arange(n)]
            return problem, polish(problem, action, self.max_iterations, self.tolerance)

    def _in_branches(self, relaxed: Climb, ends: Tensor) -> tuple[Climb, Tensor]:
        """Return everybody's problem in the best branch found, and where its climb ended.

        ``ends`` are where relaxed climbs ended, shape (k, n, m).
        """
        plan = self.plan(relaxed.score.n_features, relaxed.score.fixed)
        every = plan.people(relaxed.X.numpy()).listed()
        who = torch.from_numpy(every.who)
        inside = _inside_branches(relaxed, every)
        # Whoever stays, and the ends brought into each branch, say what it promises.
        ends = torch.cat([torch.zeros_like(ends[:1]), ends])
        begun = torch.stack([inside.inside(end[who]) for end in ends])
        worth = torch.stack([inside.smooth(each) - inside.kinked(each) for each in begun])
        promise, start = worth.max(0)
        kept = _most_promising(every, promise.numpy())
        rows = torch.from_numpy(kept)
        climbing = inside.of_rows(rows)
        action, value = climb(climbing, begun[start[rows], rows], self.max_iterations, 1e-3)
        best = torch.from_numpy(every.rows(kept).best(value.numpy()))
        return climbing.of_rows(best), action[best]

    def problem(self, score: Score, X: Tensor, sharpness: Tensor) -> Climb:
        """Return everybody's problem over the features that can move."""
        plan = self.plan(score.n_features, score.fixed)
        if plan.tied:
            refuse_moving_people(X)
            people = plan.people(X.detach().numpy())
            columns = people.used
            lower, upper = people.full(people.people.low), people.full(people.people.high)
        else:
            moving = plan.moving.copy()
            moving[list(score.fixed)] = False
            columns = np.flatnonzero(moving)
            lower, upper = plan.actions.box(X.detach().numpy())
        shape = self.cost.canonical(score.n_features)
        if shape is None:
            raise CostError(
                "an ascent response needs a cost with a closed form (quadratic, weighted, "
                "Mahalanobis, linear, mixture); a conic one needs ConicResponse, for "
                "scores with a slope"
            )
        if shape.weights is None and shape.matrix is None:
            _check_bounded(lower[:, columns], upper[:, columns], columns)
        chosen = torch.from_numpy(columns)
        matrix = shape.matrix
        return Climb(
            score, X, chosen,
            torch.from_numpy(lower[:, columns]), torch.from_numpy(upper[:, columns]), sharpness,
            None if shape.weights is None else shape.weights[chosen],
            None if matrix is None else matrix[chosen][:, chosen],
            None if shape.kink is None else shape.kink[chosen],
        )  # fmt: skip

    def sharpness(self, score: Score) -> Tensor:
        """Return one over temperature times N, with its graph where gradients are on."""
        if self.unit is not None:
            return torch.tensor(1.0 / (self.temperature * self.unit), dtype=torch.float64)
        plan, slope = self.plan(score.n_features), score.slope()
        if slope is not None:
            unit = plan.unit(plan.movable(slope))
        else:
            unit = self._typical_rise(score, plan)
        unit = torch.where(unit > 0.0, unit, 1.0)
        return 1.0 / (self.temperature * unit)

    def utility(self, score: Score, X: Floats, x_new: Floats) -> Floats:
        """Return what people maximise at places they may or may not have chosen, shape (n,)."""
        with deciding(score), torch.no_grad():
            gain = smoothed_step(self.sharpness(score) * score(torch.from_numpy(x_new)))
            worth: Floats = gain.numpy() - self.cost.price(X, x_new)
        return worth

    def describe(self) -> dict[str, Any]:
        """Return the arguments, JSON-ready; of a reference its digest."""
        names = ("temperature", "random_starts", "tolerance", "max_iterations", "unit", "seed")
        reference = None if self.reference is None else object_digest(self.reference)
        described = {name: getattr(self, name) for name in names}
        return super().describe() | described | {"reference": reference}

    def optimality_gap(self, score: Score, X: Any, starts: int = 64) -> OptimalityGap:
        """Measure how far responses fall short of the best known ones (see `OptimalityGap`)."""
        return optimality_gap(self, score, checked_rows(X, score), starts)

    def _converged(self, stop: Stop) -> Tensor:
        found: Tensor = (stop.residual <= self.tolerance) & stop.concave
        return found

    def _with_gradient(self, score: Score, X: Tensor, solved: Climb, stop: Stop) -> Tensor:
        """Return the actions with the derivative of the local maximum, shape (n, d)."""
        problem = self.problem(score, X, self.sharpness(score))
        problem = replace(problem, lower=solved.lower, upper=solved.upper, branches=solved.branches)
        bounds = self.plan(score.n_features).bounds(len(X))
        action = with_derivative(problem, solved, stop, self._converged(stop), bounds)
        return torch.zeros_like(X).index_add(1, problem.columns, action)

    def after_standardising(self, mean: ArrayLike, scale: ArrayLike) -> Self:
        """Return the same people as standardised rows, those of the reference too."""
        other = super().after_standardising(mean, scale)
        if self.reference is not None:
            other.reference = (self.reference - np.asarray(mean)) / np.asarray(scale)
        return other

    def _reference(self, n_features: int) -> Tensor:
        if self.reference is None:
            draws = torch_generator(self.seed, "ascent reference")
            return torch.randn(REFERENCE_ROWS, n_features, generator=draws, dtype=torch.float64)
        if self.reference.ndim != 2 or self.reference.shape[1] != n_features:
            raise ParameterError(
                f"reference holds people of {n_features} features, shape (k, {n_features}), "
                f"got {self.reference.shape}"
            )
        return torch.from_numpy(self.reference)

    def _typical_rise(self, score: Score, plan: ActionPlan) -> Tensor:
        graph = torch.is_grad_enabled()
        with torch.enable_grad():
            at = self._reference(score.n_features).requires_grad_()
            (rise,) = torch.autograd.grad(score(at).sum(), at, create_graph=graph)
        square = plan.unit(plan.movable(rise)).square().mean()
        return square.sqrt() if float(square.detach()) > 0.0 else square


def _inside_branches(problem: Climb, branches: BranchList) -> Climb:
    """Return the problems of people in all their branches."""
    inside = problem.of_rows(torch.from_numpy(branches.who))
    lower, upper = torch.from_numpy(branches.lo), torch.from_numpy(branches.hi)
    return replace(inside, lower=lower, upper=upper, branches=branches)


def _most_promising(branches: BranchList, promise: Floats) -> Index:
    """Return the places of everybody's branches that promise most, `CLIMBED` each."""
    order = np.lexsort((-promise, branches.who))
    first = np.searchsorted(branches.who[order], branches.who[order])
    kept: Index = np.sort(order[np.arange(len(order)) - first < CLIMBED])
    return kept


def _check_bounded(lower: Floats, upper: Floats, columns: Any) -> None:
    loose = ~(np.isfinite(lower) & np.isfinite(upper))
    if loose.any():
        rows = np.flatnonzero(loose.any(axis=1))
        raise UnboundedResponseError(
            "a linear cost lets people move without end and ascent cannot see whether the score "
            f"stops them: bound features {shown(columns[loose.any(axis=0)])} (lower, upper, "
            f"min_value, max_value) for the people in rows {shown(rows)}, or add a quadratic "
            "part (MixtureCost)",
            rows=rows,
        )


POINTS = {1: 401, 2: 61, 3: 25}
"""Grid points per dimension: at most some fifteen thousand places per person."""
CERTAIN = 1e-6
"""A gap below this is rounding of two searches that met."""


@dataclass(frozen=True)
class OptimalityGap:
    """How much utility people lose by ascent, against the best response known.

    Attributes
    ----------
    gap
        Utility of the best place known minus that of the response, at least 0, shape (n,). The
        decision is worth 2, so 0.02 is one per cent of it.
    against
        ``"exact"``: the global maximum (scores with a slope); ``"grid"``: the best place of a
        grid over all that can be paid for, climbed from (up to three movable features);
        ``"starts"``: the best of many more starts.
    exact
        Whether the gap is the true one; else it is a *lower* estimate of it.
    """

    gap: Floats
    against: str
    exact: bool

    @property
    def worst(self) -> float:
        """The largest gap."""
        return float(self.gap.max(initial=0.0))

    @property
    def share(self) -> float:
        """Share of the people for whom something better is known."""
        return float(np.mean(self.gap > CERTAIN)) if len(self.gap) else 0.0


def optimality_gap(
    response: AscentResponse, score: Score, X: Floats, starts: int = 64
) -> OptimalityGap:
    """Compare everybody's response with the best that a more expensive search finds."""
    solved, stop = response.solve(score, X)
    found = solved.place(stop.action).numpy()
    mine = response.utility(score, X, found)
    if score.slope() is not None:
        against, other = "exact", _exact(response, score, X)
    else:
        with deciding(score), torch.no_grad():
            problem = response.problem(score, torch.from_numpy(X), solved.sharpness)
            m = len(problem.columns)
            grid = m in POINTS
            tried = _best_of_grid(problem) if grid else _many(problem, starts, response.seed)
        problem, stop = response.solve(score, X, tried)
        against, other = ("grid" if grid else "starts"), problem.place(stop.action).numpy()
    gap = np.maximum(response.utility(score, X, other) - mine, 0.0)
    return OptimalityGap(gap, against, exact=against == "exact")


def _exact(response: AscentResponse, score: Score, X: Floats) -> Floats:
    from countermove.response.smooth import ScalarResponse

    people = ScalarResponse(
        response.cost, response.actions, response.temperature, unit=response.unit
    )
    places: Floats = people.respond(score, X).x_new
    return places


def _many(problem: Climb, starts: int, seed: int) -> Tensor:
    """Return actions in all directions and of all affordable lengths, shape (k, n, m)."""
    n, m = len(problem.X), len(problem.columns)
    draws = torch_generator(seed, "optimality gap")
    ways = torch.randn(starts, n, m, generator=draws, dtype=torch.float64)
    lengths = torch.rand(starts, n, 1, generator=draws, dtype=torch.float64)
    return torch.stack(
        [length * affordable(problem, way) for way, length in zip(ways, lengths, strict=True)]
    )


def _best_of_grid(problem: Climb) -> Tensor:
    """Return the best action of a grid over everything affordable, shape (1, n, m)."""
    n, m = len(problem.X), len(problem.columns)
    reach = _largest_move(problem)
    low = problem.lower.clamp(min=-reach)
    width = problem.upper.clamp(max=reach) - low
    best = torch.zeros(n, m, dtype=torch.float64).clamp(problem.lower, problem.upper)
    highest = problem.smooth(best) - problem.kinked(best)
    for corner in product(torch.linspace(0.0, 1.0, POINTS[m], dtype=torch.float64), repeat=m):
        action = low + width * torch.stack(corner)
        value = problem.smooth(action) - problem.kinked(action)
        better = value > highest
        best = torch.where(better[:, None], action, best)
        highest = torch.where(better, value, highest)
    return best[None]


def _largest_move(problem: Climb) -> float:
    """Return how far anybody goes: nobody pays more than the decision is worth."""
    if problem.matrix is not None:
        least = float(torch.linalg.eigvalsh(problem.matrix)[0])
    elif problem.weights is not None:
        least = float(problem.weights.min())
    else:
        return float("inf")
    return float(np.sqrt(GAIN / least))
