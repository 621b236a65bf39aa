r"""Cheapest recourse under any linear constraints, one mixed-integer program per person.

Every closed-form cost is a sum of squares :math:`(r_k\cdot\delta)^2` and one kink. Without whole
steps and states the program is convex and solved exactly; where that answer is allowed it is the
answer. Else each square is handed to HiGHS as the tangents found so far, until the tangents at the
answer add nothing. Its tolerances are absolute, so costs are counted in units of the convex answer.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from countermove._types import Floats, Mask
from countermove.errors import (
    CostError,
    InfeasibleActionsError,
    NotConvergedError,
    ParameterError,
    shown,
)
from countermove.people import ActionSet, Cost
from countermove.people.feasible import APART, TOLERANCE, FeasibleActions, Premise

MOST_PROGRAMS = 60
GAP = 1e-6
"""Relative gap between the cost of the answer and the bound proven for all others."""
SLACK = 1e-6
"""What HiGHS may miss each tangent by (its feasibility tolerance)."""
FIRST_TANGENTS = 9
FREE = 1e-8
"""A cost that is none: nothing is counted in units of it."""
SMALLEST_NEED = 1e-4
"""Of the score, that is asked for in units of it: HiGHS is wrong where numbers differ by more."""
COUNTED = 1e3
"""What the convex answer costs in the units that HiGHS sees: its tolerances are small beside it."""
INFEASIBLE = 2  # status of scipy's milp


@dataclass(frozen=True)
class IntegerProgram:
    """One person's lattice and constraints as milp reads them; a variable counts steps.

    Behind the d columns stand 0/1 variables: one per listed state, three per premise (below
    its value, at it, above).
    """

    size: Floats  # of a step, in standardised units, (d,)
    low: Floats  # of every variable
    high: Floats
    whole: NDArray[np.int64]
    rows: Floats
    least: Floats
    most: Floats

    def action(self, found: Floats) -> Floats:
        """Return the standardised action of a solution."""
        d = len(self.size)
        kept = np.where(self.whole > 0, np.round(found), found)
        return np.clip(kept, self.low, self.high)[:d] * self.size


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

    def per(self, unit: float) -> Squares:
        """Return the cost counted in a unit."""
        return Squares(self.rows / np.sqrt(unit), self.kink / unit)


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


class _ProgramRows:
    """Rows of a program under way, each with its bounds."""

    def __init__(self, n_variables: int) -> None:
        self.width = n_variables
        self.rows: list[Floats] = []
        self.least: list[float] = []
        self.most: list[float] = []

    def add(self, row: Floats, least: float, most: float = np.inf) -> Floats:
        """Add a row over the first variables; return the whole row, to be filled in."""
        whole = np.zeros(self.width)
        whole[: len(row)] = row
        self.rows.append(whole)
        self.least.append(least)
        self.most.append(most)
        return whole


def program_of(
    feasible: FeasibleActions,
    slope: Floats | None = None,
    need: float = 0.0,
    margin: float = 0.0,
    length: float = 1.0,
) -> IntegerProgram:
    r"""Return the first person's constraints, and :math:`w\cdot\delta \ge need`, by a margin."""
    # What is no whole step is counted in a ``length``; a small need is asked for in units of it.
    d = feasible.low.shape[1]
    states = [part.allowed.shape[1] for part in feasible.listed]
    extra = sum(states) + 3 * len(feasible.premises)
    size = np.where(feasible.step > 0.0, feasible.step, length)
    whole = np.concatenate([feasible.step > 0.0, np.ones(extra, bool)]).astype(np.int64)
    low = np.concatenate([feasible.low[0] / size, np.zeros(extra)])
    high = np.concatenate([feasible.high[0] / size, np.ones(extra)])
    rows = _ProgramRows(d + extra)
    start = d
    for part, count in zip(feasible.listed, states, strict=True):
        high[start : start + count] = part.allowed[0]
        rows.add(np.zeros(0), 1.0, 1.0)[start : start + count] = 1.0
        for at, j in enumerate(part.columns):
            row = rows.add(np.zeros(0), 0.0, 0.0)
            row[j] = size[j]
            row[start : start + count] = -part.change[0, :, at]
        start += count
    for premise in feasible.premises:
        _add_premise(rows, feasible, premise, start, size, margin)
        start += 3
    if feasible.A is not None and feasible.b is not None:
        for row, offset in zip(feasible.A, feasible.b[0], strict=True):
            rows.add(row * size, _room(feasible, row, offset, margin) - offset)
    if slope is not None:
        unit = min(max(abs(need), SMALLEST_NEED), 1.0)
        rows.add(slope * size / unit, (need + margin) / unit)
    matrix = np.array(rows.rows).reshape(-1, d + extra)
    return IntegerProgram(size, low, high, whole, matrix, np.array(rows.least), np.array(rows.most))


def _room(feasible: FeasibleActions, row: Floats, offset: float, margin: float) -> float:
    """Return the margin a row is asked to exceed zero by: none where it cannot."""
    ends = np.maximum(row * feasible.low[0], row * feasible.high[0])
    return float(np.clip(ends.sum() + offset, 0.0, margin))


def _add_premise(
    rows: _ProgramRows,
    feasible: FeasibleActions,
    premise: Premise,
    start: int,
    size: Floats,
    margin: float,
) -> None:
    """Add on which side of its value a premise's column is, and its rows where it is at it."""
    j, value = premise.column, float(premise.value[0])
    gap = feasible.step[j] if feasible.step[j] > 0.0 else APART
    low, high = float(feasible.low[0, j]), float(feasible.high[0, j])
    rows.add(np.zeros(0), 1.0, 1.0)[start : start + 3] = 1.0
    below = rows.add(np.zeros(0), 0.0)  # δ ≤ value - gap below, value at it, high above
    below[j], below[start : start + 3] = -size[j], (value - gap, value, high)
    above = rows.add(np.zeros(0), 0.0)
    above[j], above[start : start + 3] = size[j], (-low, -value, -value - gap)
    for row, offset in zip(premise.A, premise.b[0], strict=True):
        least = np.minimum(row * feasible.low[0], row * feasible.high[0]).sum() + offset
        loose = max(0.0, -float(least))
        room = _room(feasible, row, offset, margin)
        # row δ + offset ≥ room where the premise holds, and ≥ -loose elsewhere.
        rows.add(row * size, -offset - loose)[start + 1] = -(room + loose)


def cheapest_action(
    feasible: FeasibleActions, cost: Cost, slope: Floats, need: float, margin: float = 0.0
) -> Floats | None:
    r"""Return one person's cheapest action with :math:`w\cdot\delta \ge need`; None proves none."""
    # HiGHS may miss a constraint by its tolerance; `margin` asks for so much more than needed.
    columns = feasible.used
    squares = squares_of(cost, len(slope)).only(columns)
    best, price = np.zeros(len(slope)), np.inf
    feasible, slope = feasible.only(columns), slope[columns]
    relaxed = cheapest_within(squares, feasible, slope, need + margin)
    if relaxed is not None and _allowed(feasible, relaxed):
        best[columns] = relaxed
        return best
    least = 0.0 if relaxed is None else squares.price(relaxed)
    unit = least / COUNTED if least > FREE else 1.0
    squares = squares.per(unit)
    program = program_of(feasible, slope, need, margin, np.sqrt(unit))
    tangents = _first_tangents(squares, feasible, relaxed)
    for _ in range(MOST_PROGRAMS):
        answer = _solve(program, squares, tangents)
        if answer is None:
            return None
        action, bound = _snapped(feasible, program, answer[0]), answer[1]
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
    return None if answer is None else _snapped(feasible, program, answer[0])


def _snapped(feasible: FeasibleActions, program: IntegerProgram, found: Floats) -> Floats:
    """Return the action of a solution, listed states to the last digit."""
    action: Floats = feasible.snap(program.action(found)[None])[0]
    return action


def cheapest_within(
    squares: Squares, feasible: FeasibleActions, slope: Floats, need: float
) -> Floats | None:
    r"""Return the first person's cheapest action with any steps and states, premises aside.

    None where nothing is allowed, and for squares beside a kink or too few of them.
    """
    low, high = feasible.low[0], feasible.high[0]
    rows, room = slope[None], np.array([-need])
    if feasible.A is not None and feasible.b is not None:
        rows, room = np.vstack([feasible.A, rows]), np.append(feasible.b[0], room)
    free = low < high
    room = room + rows[:, ~free] @ low[~free]
    if not free.any():
        return low.copy() if (room >= 0.0).all() else None
    found: Floats = low.copy()
    own = rows[:, free]
    # Rows that nothing in the box breaks, those of other branches among them, are only noise.
    binds = np.minimum(own * low[free], own * high[free]).sum(axis=1) + room < 0.0
    own, room = own[binds], room[binds]
    inside = _least_linear if not len(squares.rows) else _least_squares
    answer = inside(squares, low, high, free, own, room)
    if answer is None:
        return None
    found[free] = np.clip(answer, low[free], high[free])
    return found


def _least_squares(
    squares: Squares, low: Floats, high: Floats, free: Mask, rows: Floats, room: Floats
) -> Floats | None:
    """Return the free columns of the least squares: the point nearest to 0 in other coordinates."""
    count = int(free.sum())
    if squares.kink.any() or len(squares.rows) < count:
        return None
    Q, T = np.linalg.qr(squares.rows[:, free])
    sizes = np.abs(np.diag(T))
    if sizes.min() <= 1e-9 * sizes.max():
        return None
    # |R δ + c|² = |z|² + const with z = T δ + Qᵀc.
    centre = Q.T @ (squares.rows[:, ~free] @ low[~free])
    box = np.eye(count)
    G = np.vstack([box, -box, rows])
    h = np.concatenate([-low[free], high[free], room])
    bounded = np.isfinite(h)
    turned = np.linalg.solve(T.T, G[bounded].T).T
    nothing = np.zeros((1, count))
    try:
        z = ActionSet(A=turned, b=h[bounded] - turned @ centre).project(nothing, nothing)[0]
    except InfeasibleActionsError:
        return None
    found: Floats = np.linalg.solve(T, z - centre)
    return found


def _least_linear(
    squares: Squares, low: Floats, high: Floats, free: Mask, rows: Floats, room: Floats
) -> Floats | None:
    """Return the free columns of a least kink alone, by a linear program."""
    from scipy.optimize import linprog

    kink, spent = squares.kink[free], float(squares.kink[~free] @ low[~free])
    answer = linprog(
        np.append(np.zeros(len(kink)), 1.0),
        A_ub=np.vstack([np.append(kink, -1.0), np.column_stack([-rows, np.zeros(len(rows))])]),
        b_ub=np.append(-spent, room),
        bounds=[*zip(low[free], high[free], strict=True), (0.0, None)],
        method="highs-ds",
        options={"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10},
    )
    return np.asarray(answer.x[:-1]) if answer.status == 0 else None


def _allowed(feasible: FeasibleActions, action: Floats) -> bool:
    """Return whether an action of the convex program is one of whole steps and states as well."""
    snapped = feasible.snap(action[None])
    near = np.abs(snapped[0] - action).max(initial=0.0) <= TOLERANCE
    return bool(near and feasible.meets(snapped)[0])


def _first_tangents(
    squares: Squares, feasible: FeasibleActions, relaxed: Floats | None = None
) -> list[list[float]]:
    """Return points at which each square is touched first: over its range, at 0, near ``relaxed``.

    ``relaxed`` is an action that costs too little.
    """
    ends = np.stack([squares.rows * feasible.low[0], squares.rows * feasible.high[0]])
    least, most = ends.min(axis=0).sum(axis=1), ends.max(axis=0).sum(axis=1)
    spread = np.linspace(least, most, FIRST_TANGENTS, axis=1)
    if relaxed is not None:
        near = (squares.rows @ relaxed)[:, None] * np.array([-2.0, -1.0, 0.5, 1.0, 1.5, 2.0, 4.0])
        spread = np.hstack([spread, np.clip(near, least[:, None], most[:, None])])
    return [[0.0, *points] for points in spread.tolist()]


def starting_actions(feasible: FeasibleActions) -> Floats:
    """Return each person's starting action: none where that is allowed, else one close to it."""
    home = feasible.snap(np.zeros_like(feasible.low))
    for i in np.flatnonzero(~feasible.meets(home)).tolist():
        home[i] = _some_action(feasible.rows(np.array([i])), i)
    return home


def _some_action(feasible: FeasibleActions, row: int) -> Floats:
    """Return an allowed action of least absolute size for one person, by mixed-integer program."""
    found = smallest_action(feasible)
    if found is not None:
        return found
    if feasible.A is None or feasible.b is None:
        raise ParameterError("without constraints there is an action by construction")
    best = (
        np.where(feasible.A > 0.0, feasible.high * feasible.A, feasible.low * feasible.A).sum(
            axis=1
        )
        + feasible.b[0]
    )
    broken = np.flatnonzero(best < -TOLERANCE)
    which = (
        f"constraint {shown(broken)} of A δ + b ≥ 0" if broken.size else "A δ + b ≥ 0 as a whole"
    )
    raise InfeasibleActionsError(
        f"the person in row {row} has no allowed action: {which} cannot be met within the bounds",
        rows=[row],
    )


def _solve(
    program: IntegerProgram, squares: Squares, tangents: list[list[float]]
) -> tuple[Floats, float] | None:
    """Return the variables and the least total of the tangents; None when nothing is allowed."""
    from scipy.optimize import Bounds, LinearConstraint, milp

    d, v, k = len(program.size), len(program.low), len(squares.rows)
    none = np.zeros((len(program.rows), k + 1))
    parts = [np.hstack([program.rows, none])]
    least, most = [program.least], [program.most]
    for row, points in enumerate(tangents):
        # t_k >= z^2 + 2 z (r_k . action - z) for every point z touched so far.
        z = np.unique(points)
        block = np.zeros((len(z), v + k + 1))
        block[:, :d] = -2.0 * z[:, None] * squares.rows[row] * program.size
        block[:, v + row] = 1.0
        parts.append(block)
        least.append(-(z**2))
        most.append(np.full(len(z), np.inf))
    kink = np.zeros((1, v + k + 1))
    kink[0, :d], kink[0, -1] = -squares.kink * program.size, 1.0
    answer = milp(
        np.concatenate([np.zeros(v), np.ones(k + 1)]),
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
    return answer.x[:v], float(
        answer.mip_dual_bound if answer.mip_dual_bound is not None else answer.fun
    )
