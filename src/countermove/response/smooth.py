r"""The smoothed response: one number per person.

People maximise :math:`\sigma^*(s(x')/(\tau N)) - c(x, x')`. What matters is the score
they gain, so the problem is one-dimensional: the smoothed step against the
polyline of least costs. The convex-concave procedure of SERM (Algorithm 1)
started at x ends in its first stationary point; ``start="global"`` takes the best.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, Self, get_args

import numpy as np
import torch
from torch import Tensor

from countermove._types import Floats, Mask
from countermove.errors import ParameterError
from countermove.people import ActionSet, Cost
from countermove.response._bounded_rows import score_rows
from countermove.response._gradient import (
    Solved,
    Stationarity,
    attach_action,
    attach_score,
)
from countermove.response._polyline_solver import Chunk, solve_proxy, solve_smooth
from countermove.response._possible import solve_possible_smooth
from countermove.response._rows import smooth_rows, unbounded_path
from countermove.response.base import OnFailure, Response, Responses, check_converged, checked_rows
from countermove.response.reduction import (
    KINKED,
    STOPPED,
    Reduction,
    RowSolutions,
    known_scores,
    raise_failures,
    raise_not_finite,
    sharpness_of,
    slope_of,
)
from countermove.response.step import PriceParts, price_derivatives, smoothed_step
from countermove.response.training_signal import training_signal
from countermove.scores import Score

if TYPE_CHECKING:
    from countermove.response.conic import ConicResponse

Start = Literal["global", "stay"]
Gradient = Literal["fixed_point", "last_proxy"]


class SmoothedResponse(Response):
    """What `ScalarResponse` and `ConicResponse`, which document the arguments, have in common."""

    def __init__(
        self,
        cost: Cost | None,
        actions: ActionSet | None,
        temperature: float,
        start: Start,
        normalised: bool,
        gradient: Gradient,
        tolerance: float,
        max_iterations: int,
        unit: float | None,
    ) -> None:
        super().__init__(cost, actions)
        check_choice("start", start, Start)
        check_choice("gradient", gradient, Gradient)
        check_positive(temperature=temperature, tolerance=tolerance, max_iterations=max_iterations)
        if unit is not None:
            check_positive(unit=unit)
        self.temperature = float(temperature)
        self.start, self.normalised, self.gradient = start, bool(normalised), gradient
        self.tolerance, self.max_iterations = float(tolerance), int(max_iterations)
        self.unit = None if unit is None else float(unit)

    def worth(self, score: Score, after: Tensor) -> Tensor:
        r"""Return the smoothed step :math:`\sigma^*(s/(\tau N))`, with its gradient to the rule."""
        unit = torch.ones((), dtype=torch.float64)
        if self.unit is not None:
            unit = unit * self.unit
        elif self.normalised:
            plan = self.plan(score.n_features)
            own = plan.unit(plan.movable(slope_of(score)))
            unit = own if float(own.detach()) > 0.0 else unit
        return smoothed_step(after / (self.temperature * unit))

    def describe(self) -> dict[str, Any]:
        """Return the arguments, JSON-ready."""
        names = ("temperature", "start", "normalised", "gradient", "tolerance", "max_iterations")
        return super().describe() | {name: getattr(self, name) for name in (*names, "unit")}


def check_choice(what: str, value: Any, kind: Any) -> None:
    """Refuse a value that is none of a literal's."""
    if value not in get_args(kind):
        raise ParameterError(f"{what} is one of {get_args(kind)}, got {value!r}")


def check_positive(**values: float) -> None:
    """Refuse numbers that are not positive and finite."""
    for name, value in values.items():
        number = isinstance(value, int | float | np.number) and not isinstance(value, bool)
        if not (number and np.isfinite(value) and value > 0):
            raise ParameterError(f"{name} must be a positive finite number, got {value!r}")


Stopping = Literal["row", "batch", "increasing"]


@dataclass(frozen=True)
class _SmoothRun:
    """One solved batch: the solution, and where the last proxy was taken."""

    solution: RowSolutions
    last: Floats
    last_action: Floats | None
    converged: Mask
    reduction: Reduction  # met by people in their branches, where they have some


class ScalarResponse(SmoothedResponse):
    r"""The response to a smoothed decision, exact to 1e-10.

    >>> import numpy as np, torch
    >>> from countermove.people import QuadraticCost
    >>> from countermove.response import ScalarResponse
    >>> from countermove.scores import LinearScore
    >>> score = LinearScore(2)
    >>> score.weight.data[:] = torch.tensor([1.0, 0.0])
    >>> people = ScalarResponse(QuadraticCost(2.0), temperature=0.5)
    >>> bool(people.respond(score, np.array([[-0.5, 0.0]])).x_new[0, 0] > -0.5)
    True

    .. math:: \Delta(x) = \arg\max_{x'} \sigma^*\!\left(\frac{s(x')}{\tau N}\right) - c(x, x')

    Stationarity, which the default gradient differentiates: the price of score
    :math:`u = \tfrac{1}{\tau N}\sigma^{*\prime}(z/\tau N)` at :math:`z = s(x')` equals the
    marginal cost of score.

    Parameters
    ----------
    cost, actions
        As in `Response`. Any closed-form cost; boxes, directions and immutables
        for all of them, extra constraints for the quadratic ones. People who stay possible at a
        cost with cross terms or a kink are solved as by `ConicResponse`.
    temperature
        :math:`\tau`, in units of distance if ``normalised``, of score if not.
    start
        ``"global"``: the global maximiser; ``"stay"``: where the convex-concave
        procedure ends when started at x (for people whose place is not allowed,
        at their cheapest allowed action; for people who stay possible inside the
        branch they stand in: histories and premises as they are).
    normalised
        Divide the score by :math:`N(w) = \sup\{w\cdot\delta : \|\delta\|_2 \le 1\}` over
        movable directions, so that the response depends on the rule, not on its scale.
    gradient
        ``"fixed_point"``: derivative of the stationary point; ``"last_proxy"``: of
        the last concave proxy only, as published.
    polish
        Solve the stationary point itself. If False, stop the procedure by
        ``tolerance``, ``max_iterations`` and ``stopping`` as the paper does.
    tolerance, max_iterations
        Distance moved in one step below which the procedure stops; its cap.
    stopping
        ``"row"``: each person on their own; ``"batch"``: when the average move is
        below tolerance; ``"increasing"``: a fixed number of steps that grows by
        one per epoch (`for_epoch`).
    unit
        Score per unit of distance: a positive number that replaces N(w), whether
        ``normalised`` or not, and is then a constant without a derivative. It lets several
        rules, or a rule before and after retraining, be compared on one scale.
    """

    priced_by_person = True
    _solver: ConicResponse | None = None

    def __init__(
        self,
        cost: Cost | None = None,
        actions: ActionSet | None = None,
        temperature: float = 0.5,
        start: Start = "global",
        normalised: bool = True,
        gradient: Gradient = "fixed_point",
        *,
        polish: bool = True,
        tolerance: float = 1e-3,
        max_iterations: int = 100,
        stopping: Stopping = "row",
        unit: float | None = None,
    ) -> None:
        super().__init__(
            cost, actions, temperature, start, normalised, gradient, tolerance, max_iterations, unit
        )
        check_choice("stopping", stopping, Stopping)
        if not polish and start == "global":
            raise ParameterError('polish=False iterates from x and needs start="stay"')
        self.polish, self.stopping = bool(polish), stopping
        # The first and the highest stationary point both move back as the cost's slope rises.
        self.falls_with_price = self.polish

    def __copy__(self) -> Self:
        """Return other people, with a conic solver of their own."""
        other = super().__copy__()
        other._solver = None
        return other

    def __getstate__(self) -> dict[str, Any]:
        """Leave the conic solver behind: its layers do not pickle."""
        return super().__getstate__() | {"_solver": None}

    @property
    def name(self) -> str:  # type: ignore[override]
        """``"published"`` for the paper's protocol, else ``"smooth"``."""
        paper = self.start == "stay" and not self.normalised
        return "published" if paper else "smooth"

    def for_epoch(self, epoch: int) -> Self:
        """Return the response of an epoch counted from 0 (only ``"increasing"`` changes)."""
        if self.stopping != "increasing":
            return self
        other = copy.copy(self)
        other.max_iterations = epoch + 1
        return other

    def at_temperature(self, temperature: float) -> Self:
        """Return the same response at another temperature."""
        check_positive(temperature=temperature)
        other = copy.copy(self)
        other.temperature = float(temperature)
        return other

    def respond(self, score: Score, X: Any, on_failure: OnFailure = "raise") -> Responses[Any]:
        """Return where people move to; tensors carry the gradient chosen at construction."""
        rows = checked_rows(X, score)
        solver = self._conic(score, rows)
        if solver is not None:
            return solver.respond(score, X, on_failure)
        reduction = self.reduction(score, len(rows))
        tensor = isinstance(X, Tensor)
        run = self._solve(score, rows, reduction, as_action=tensor, write=True)
        check_converged(run.converged, on_failure)
        solution = run.solution
        if not tensor:
            return Responses(solution.out, solution.cost, solution.moved, run.converged)
        solved = self._solved(X, rows, run)
        action = attach_action(solved, X, score(X), self._last_scores(score, X))
        cost = self.cost.price(torch.zeros_like(action), action)
        return Responses(
            X + action,
            cost if solved.prices is None else cost * solved.prices,
            torch.from_numpy(solution.moved),
            torch.from_numpy(run.converged),
        )

    def scores_after(self, score: Score, X: Tensor) -> Tensor:
        """Return the score at the smoothed response."""
        rows = checked_rows(X, score)
        solver = self._conic(score, rows)
        if solver is not None:
            return solver.scores_after(score, X)
        signal = training_signal(self, score, X)
        if signal is not None:
            return signal(score, rows)
        reduction = self.reduction(score, len(rows))
        run = self._solve(score, rows, reduction, as_action=True, write=torch.is_grad_enabled())
        if self.polish:
            check_converged(run.converged, "raise")
        if not torch.is_grad_enabled():
            return torch.from_numpy(run.solution.after)
        solved = self._solved(X, rows, run)
        return attach_score(solved, run.solution.after, X, score(X), self._last_scores(score, X))

    def describe(self) -> dict[str, Any]:
        """Return every argument, JSON-ready."""
        return super().describe() | {"polish": self.polish, "stopping": self.stopping}

    def _conic(self, score: Score, rows: Floats) -> ConicResponse | None:
        """Return the same people by convex programs: possible ones at costs with cross terms."""
        shape = self.cost.canonical(score.n_features)
        plain = shape is not None and shape.matrix is None and shape.kink is None
        if not self.polish or plain or not self.plan(score.n_features).possible:
            return None
        if self.prices(torch.from_numpy(rows)) is not None:
            raise ParameterError(
                f"people who stay possible at a {self.cost.describe()['kind']} cost pay one price; "
                "prices that differ from person to person need a quadratic or weighted cost"
            )
        if self._solver is None:
            from countermove.response.conic import ConicResponse

            self._solver = ConicResponse(
                self.cost, self.actions, self.temperature, self.start, self.normalised,
                self.gradient, unit=self.unit,
            )  # fmt: skip
        return self._solver

    def _unit(self, reduction: Reduction) -> float:
        if self.unit is not None:
            return self.unit
        return reduction.unit_value if self.normalised else 1.0

    def _sharpness(self, reduction: Reduction) -> float:
        return sharpness_of(self.temperature, self._unit(reduction))

    def _solve(
        self, score: Score, rows: Floats, reduction: Reduction, as_action: bool, write: bool
    ) -> _SmoothRun:
        if not self.polish:
            return self._iterate(score, rows, reduction, as_action)
        out = np.empty(rows.shape if write else (0, rows.shape[1]))
        solution, arrays = RowSolutions.empty(len(rows), out), reduction.arrays
        known = scores, weight, bias = known_scores(score, rows)
        sharpness, first = self._sharpness(reduction), self.start == "stay"
        prices = self.prices(torch.from_numpy(rows))
        factors = np.ones(1) if prices is None else prices.numpy()
        possible = reduction.plan.possible
        # Unbounded people share one curve only if they pay the same.
        path = unbounded_path(reduction) if prices is None and not possible else None
        if path is None:
            who = np.arange(len(rows))
        else:
            smooth_rows(
                rows, known, arrays.slope, arrays.weights, arrays.kind == KINKED, path,
                arrays.bounds, sharpness, first, True, as_action, write, solution,
            )  # fmt: skip
            who = np.flatnonzero(solution.status == STOPPED)
        if len(who):
            scores = scores if len(scores) else score_rows(rows, weight, bias)
            if path is None:
                raise_not_finite(rows, scores)
            if possible:
                reduction = solve_possible_smooth(
                    reduction, rows, scores, sharpness, first, as_action, factors, solution
                )
            else:
                solve_smooth(
                    arrays, rows, scores, sharpness, first, as_action, write, who, solution, factors
                )
        converged = raise_failures(rows, solution.status, arrays)
        return _SmoothRun(solution, solution.after, None, converged, reduction)

    def _iterate(
        self, score: Score, rows: Floats, reduction: Reduction, as_action: bool
    ) -> _SmoothRun:
        """Run Algorithm 1 literally, then the last proxy once more as the published layer does."""
        if self.prices(torch.from_numpy(rows)) is not None:
            raise ParameterError(
                "polish=False iterates at one cost for everybody; prices that differ from person "
                "to person need polish=True"
            )
        if reduction.plan.possible:
            raise ParameterError(
                "polish=False follows the published procedure, which knows no relations between "
                "columns; people who stay possible need polish=True"
            )
        n, arrays = len(rows), reduction.arrays
        solution = RowSolutions.empty(n, np.zeros_like(rows))
        scores, weight, bias = known_scores(score, rows)
        now = scores if len(scores) else score_rows(rows, weight, bias)
        raise_not_finite(rows, now)
        sharpness, after = self._sharpness(reduction), solution.after
        after[:] = now
        live = np.ones(n, dtype=bool)
        for _ in range(self.max_iterations):
            before, who = solution.out.copy(), np.flatnonzero(live)
            solve_proxy(arrays, rows, now, sharpness, after, who, solution)
            raise_failures(rows, solution.status, arrays)
            move = np.linalg.norm(solution.out - before, axis=1)
            if self.stopping == "row":
                live &= move > self.tolerance
            elif self.stopping == "batch" and move.mean() <= self.tolerance:
                live[:] = False
            if not live.any():
                break
        converged = ~live if self.stopping != "increasing" else np.ones(n, dtype=bool)
        last, last_action = after.copy(), solution.out.copy()
        solve_proxy(arrays, rows, now, sharpness, last, np.arange(n), solution)
        solution.moved[:] = (solution.out != 0.0).any(axis=1)
        if not as_action:
            solution.out[:] = Chunk(arrays, rows, np.arange(n)).place(solution.out)
        return _SmoothRun(solution, last, last_action, converged, reduction)

    def _solved(self, X: Tensor, rows: Floats, run: _SmoothRun) -> Solved:
        reduction = run.reduction
        unit = self._unit(reduction)
        sharpness = sharpness_of(self.temperature, unit)
        after, proxy = run.solution.after, self.gradient == "last_proxy"
        parts = price_derivatives(sharpness, after, run.last, proxy)
        prices = self.prices(X)
        if prices is not None:
            parts = PriceParts(*(part / prices.detach().numpy() for part in parts))
        moving_unit = self.normalised and self.unit is None and unit > 0.0
        by_unit = -parts.by_sharpness * sharpness / unit if moving_unit else 0.0 * after
        equation = Stationarity(parts.by_score, parts.by_last, by_unit)
        return Solved(reduction, rows, run.solution, equation, run.last_action, prices)

    def _last_scores(self, score: Score, X: Tensor) -> Tensor | None:
        # The last proxy is taken at a point held fixed: its score follows the rule, not X.
        if self.gradient == "last_proxy" and X.requires_grad:
            fixed: Tensor = score(X.detach())
            return fixed
        return None
