r"""Cheapest recourse under any linear constraints, one mixed-integer program per person.

Every closed-form cost is a sum of squares :math:`(r_k\cdot\delta)^2` and one kink. HiGHS
takes linear objectives, so each square is handed over as the tangents found so far,
until the tangents at the answer add nothing: the answer is then optimal to tolerance.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from countermove._types import Floats
from countermove.errors import CostError, NotConvergedError
from countermove.people import Cost
from countermove.recourse._feasible import FeasibleActions

MOST_PROGRAMS = 60
GAP = 1e-6
"""Relative gap between the cost of the answer and the bound proven for all others."""
SLACK = 1e-6
"""What HiGHS may miss each tangent by (its feasibility tolerance)."""
FIRST_TANGENTS = 9
INFEASIBLE = 2  # status of scipy's milp


@dataclass(frozen=True)
class IntegerProgram:
    """One person's lattice and constraints as milp reads them; a variable counts steps."""

    size: Floats  # of a step (a bit in a one-hot group), in standardised units
    low: Floats
    high: Floats
    whole: NDArray[np.int64]
    rows: Floats
    least: Floats
    most: Floats

    def action(self, steps: Floats) -> Floats:
        """Return the standardised action of a solution."""
        kept = np.where(self.whole > 0, np.round(steps), steps)
        return np.clip(kept, self.low, self.high) * self.size


@dataclass(frozen=True)
class Squares:
    r"""A cost as :math:`\sum_k (r_k\cdot\delta)^2 + \max(0, \ell\cdot\delta)`; r is (k, d)."""

    rows: Floats
    kink: Floats

    def price(self, action: Floats) -> float:
        """Return what an action costs."""
        return float(((self.rows @ action) ** 2).sum() + max(0.0, float(self.kink @ action)))

    def only(self, columns: NDArray[np.intp]) -> Squares:
        """Return the cost of actions that leave the other columns alone."""
        rows = self.rows[:, columns]
        return Squares(rows[(rows != 0.0).any(axis=1)], self.kink[columns])


def squares_of(cost: Cost, n_features: int) -> Squares:
    """Return the squares and the kink of a closed-form cost."""
    shape = cost.canonical(n_features)
    if shape is None:
        raise CostError(f"{type(cost).__name__} has no closed form; use a cost that has one")
    rows = np.zeros((0, n_features))
    if shape.matrix is not None:
        rows = np.linalg.cholesky(shape.matrix.detach().numpy()).T
    elif shape.weights is not None:
        rows = np.diag(np.sqrt(shape.weights.detach().numpy()))
    kink = np.zeros(n_features) if shape.kink is None else shape.kink.detach().numpy()
    return Squares(rows, kink)


def program_of(
    feasible: FeasibleActions, slope: Floats | None = None, need: float = 0.0, margin: float = 0.0
) -> IntegerProgram:
    r"""Return the first person's constraints, and :math:`w\cdot\delta \ge need`, by a margin."""
    d = feasible.low.shape[1]
    size = np.where(feasible.step > 0.0, feasible.step, 1.0)
    whole = (feasible.step > 0.0).astype(np.int64)
    rows, least, most = [], [], []
    for group in feasible.groups:
        size[group], whole[group] = 1.0 / feasible.unit[group], 1
        bits = np.zeros(d)
        bits[group] = 1.0
        rows.append(bits)
        least.append(0.0)
        most.append(0.0)
    if feasible.A is not None and feasible.b is not None:
        # A row that cannot exceed zero by the margin (that nobody can move, say) stays as it is.
        ends = np.maximum(feasible.A * feasible.low[0], feasible.A * feasible.high[0])
        room = np.clip(ends.sum(axis=1) + feasible.b[0], 0.0, margin)
        rows += list(feasible.A * size)
        least += (room - feasible.b[0]).tolist()
        most += [np.inf] * len(feasible.A)
    if slope is not None:
        rows.append(slope * size)
        least.append(need + margin)
        most.append(np.inf)
    low, high = feasible.low[0] / size, feasible.high[0] / size
    matrix = np.array(rows).reshape(-1, d)
    return IntegerProgram(size, low, high, whole, matrix, np.array(least), np.array(most))


def cheapest_action(
    feasible: FeasibleActions, cost: Cost, slope: Floats, need: float, margin: float = 0.0
) -> Floats | None:
    r"""Return one person's cheapest action with :math:`w\cdot\delta \ge need`; None proves none."""
    # HiGHS may miss a constraint by its tolerance; `margin` asks for so much more than needed.
    columns = feasible.used
    squares = squares_of(cost, len(slope)).only(columns)
    best, price = np.zeros(len(slope)), np.inf
    feasible, slope = feasible.only(columns), slope[columns]
    program = program_of(feasible, slope, need, margin)
    tangents = _first_tangents(squares, feasible)
    for _ in range(MOST_PROGRAMS):
        answer = _solve(program, squares, tangents)
        if answer is None:
            return None
        action, bound = program.action(answer[0]), answer[1]
        spent = squares.price(action)
        if spent < price:
            best[columns], price = action, spent
        if price - bound <= GAP * price + SLACK * (1 + len(squares.rows)):
            return best
        for touched, value in zip(tangents, squares.rows @ action, strict=True):
            touched.append(float(value))
    raise NotConvergedError(
        f"the cheapest action was not proven within {MOST_PROGRAMS} programs; use a simpler cost "
        "or method='gradient'"
    )


def smallest_action(feasible: FeasibleActions) -> Floats | None:
    """Return an allowed action of one person near to none; None proves there is none."""
    program = program_of(feasible)
    squares = Squares(np.eye(len(program.size)), np.zeros(len(program.size)))
    answer = _solve(program, squares, _first_tangents(squares, feasible))
    return None if answer is None else program.action(answer[0])


def _first_tangents(squares: Squares, feasible: FeasibleActions) -> list[list[float]]:
    """Return points at which each square is touched first: over its whole range, and at 0."""
    ends = np.stack([squares.rows * feasible.low[0], squares.rows * feasible.high[0]])
    least, most = ends.min(axis=0).sum(axis=1), ends.max(axis=0).sum(axis=1)
    spread = np.linspace(least, most, FIRST_TANGENTS, axis=1)
    return [[0.0, *points] for points in spread.tolist()]


def _solve(
    program: IntegerProgram, squares: Squares, tangents: list[list[float]]
) -> tuple[Floats, float] | None:
    """Return the steps and the least total of the tangents; None when nothing is allowed."""
    from scipy.optimize import Bounds, LinearConstraint, milp

    d, k = len(program.size), len(squares.rows)
    none = np.zeros((len(program.rows), k + 1))
    parts = [np.hstack([program.rows, none])]
    least, most = [program.least], [program.most]
    for row, points in enumerate(tangents):
        # t_k >= z^2 + 2 z (r_k . action - z) for every point z touched so far.
        z = np.unique(points)
        block = np.zeros((len(z), d + k + 1))
        block[:, :d] = -2.0 * z[:, None] * squares.rows[row] * program.size
        block[:, d + row] = 1.0
        parts.append(block)
        least.append(-(z**2))
        most.append(np.full(len(z), np.inf))
    kink = np.zeros((1, d + k + 1))
    kink[0, :d], kink[0, -1] = -squares.kink * program.size, 1.0
    answer = milp(
        np.concatenate([np.zeros(d), np.ones(k + 1)]),
        integrality=np.concatenate([program.whole, np.zeros(k + 1)]),
        bounds=Bounds(
            np.concatenate([program.low, np.zeros(k + 1)]),
            np.concatenate([program.high, np.full(k + 1, np.inf)]),
        ),
        constraints=LinearConstraint(
            np.vstack([*parts, kink]),
            np.concatenate([*least, [0.0]]),
            np.concatenate([*most, [np.inf]]),
        ),
        options={"mip_rel_gap": GAP / 2},
    )
    if answer.status == INFEASIBLE:
        return None
    if answer.x is None:
        raise NotConvergedError(f"HiGHS did not solve a person's program: {answer.message}")
    return answer.x[:d], float(
        answer.mip_dual_bound if answer.mip_dual_bound is not None else answer.fun
    )
