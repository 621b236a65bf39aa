r"""A box cut by linear constraints: its best corner and its nearest point, for many people at once.

The linear step :math:`\max g\cdot\delta` is a corner of a box, by the signs of the gradient;
over a small polytope it is found among the vertices, which people with equal limits share,
over a large one by HiGHS, many people in one block-diagonal program.
"""

from __future__ import annotations

from itertools import combinations, product
from math import comb

import numpy as np

from countermove._types import Floats, Index
from countermove.errors import (
    InfeasibleActionsError,
    SolverError,
    UnboundedResponseError,
    shown,
)

MOST_VERTICES = 600
"""Candidates per person up to which enumeration beats HiGHS (measured at 1,000 people)."""
WORK = 4_000_000
"""Numbers held at once while vertices are enumerated."""
PER_PROGRAM = 200
"""People per block-diagonal program: HiGHS grows faster than linearly beyond."""
FEASIBLE = 1e-9


def linear_step(
    gradient: Floats,
    low: Floats,
    high: Floats,
    A: Floats | None = None,
    b: Floats | None = None,
) -> Floats:
    r"""Return :math:`\arg\max g\cdot\delta` over the box and :math:`A\delta + b \ge 0`."""
    # With the gradient of the score this is Eq. 2 of the recourse paper: for any loss that
    # falls in the score, the linearised loss has the same minimiser.
    gradient = np.asarray(gradient, np.float64)
    low, high = (
        np.broadcast_to(np.asarray(part, np.float64), gradient.shape) for part in (low, high)
    )
    if A is None or not len(A):
        return _corner(gradient, low, high)
    offsets = np.zeros(len(A)) if b is None else np.asarray(b, np.float64)
    offsets = np.broadcast_to(offsets, (len(gradient), len(A)))
    free = np.flatnonzero((low < high).any(axis=0))
    held = np.setdiff1d(np.arange(gradient.shape[1]), free)
    rest = offsets + low[:, held] @ A[:, held].T
    step = low.copy()
    if free.size and len(gradient):
        step[:, free] = _in_polytope(
            gradient[:, free], low[:, free], high[:, free], A[:, free], rest
        )
    return step


def _corner(gradient: Floats, low: Floats, high: Floats) -> Floats:
    step: Floats = np.where(gradient > 0.0, high, low)
    still = gradient == 0.0
    if still.any():
        step[still] = np.clip(0.0, low[still], high[still])
    away = np.flatnonzero(np.isinf(step).any(axis=1))
    if away.size:
        raise _unbounded(away)
    return step


def _unbounded(rows: Index) -> UnboundedResponseError:
    return UnboundedResponseError(
        f"nothing bounds how far the people in rows {shown(rows)} can raise the score; bound "
        "their actions",
        rows=rows,
    )


def _in_polytope(gradient: Floats, low: Floats, high: Floats, A: Floats, b: Floats) -> Floats:
    k, m = A.shape[1], len(A)
    candidates = sum(comb(m, r) * comb(k, r) * 2 ** (k - r) for r in range(min(m, k) + 1))
    bounded = bool(np.isfinite(low).all() and np.isfinite(high).all())
    if not bounded or candidates > MOST_VERTICES:
        return _by_highs(gradient, low, high, A, b)
    limits, owner = np.unique(np.hstack([low, high, b]), axis=0, return_inverse=True)
    owner = owner.reshape(-1)
    step = np.empty_like(gradient)
    size = max(1, WORK // (candidates * k))
    for start in range(0, len(limits), size):
        part = limits[start : start + size]
        points = _vertices(part[:, :k], part[:, k : 2 * k], A, part[:, 2 * k :])
        who = np.flatnonzero((owner >= start) & (owner < start + size))
        step[who] = _best_vertex(gradient[who], points, owner[who] - start, who)
    return step


def _vertices(low: Floats, high: Floats, A: Floats, b: Floats) -> Floats:
    """Return every vertex of every limit, shape (u, v, k); NaN where a candidate lies outside."""
    k, m = low.shape[1], len(A)
    found = []
    for r in range(min(m, k) + 1):
        for tight, solved in product(combinations(range(m), r), combinations(range(k), r)):
            matrix = A[np.ix_(tight, solved)]
            if r and abs(np.linalg.det(matrix)) < 1e-12:
                continue
            fixed = [j for j in range(k) if j not in solved]
            for ends in product((False, True), repeat=len(fixed)):
                point = np.empty_like(low)
                point[:, fixed] = np.where(ends, high[:, fixed], low[:, fixed])
                if r:
                    known = b[:, tight] + point[:, fixed] @ A[np.ix_(tight, fixed)].T
                    point[:, solved] = -np.linalg.solve(matrix, known.T).T
                found.append(point)
    points = np.stack(found, axis=1)
    slack = FEASIBLE * (1.0 + np.abs(points))
    inside = (points >= low[:, None] - slack) & (points <= high[:, None] + slack)
    reach = points @ A.T + b[:, None]
    scale = 1.0 + np.abs(points) @ np.abs(A).T + np.abs(b[:, None])
    valid = inside.all(axis=2) & (reach >= -FEASIBLE * scale).all(axis=2)
    points = np.clip(points, low[:, None], high[:, None])
    points[~valid] = np.nan
    return points


def _best_vertex(gradient: Floats, points: Floats, owner: Index, who: Index) -> Floats:
    empty = np.asarray(np.isnan(points).all(axis=(1, 2)))[owner]
    if empty.any():
        raise _no_vertex(who[empty])
    best = np.empty_like(gradient)
    rows = max(1, WORK // points.shape[1])
    for start in range(0, len(gradient), rows):
        part = slice(start, start + rows)
        gains = np.einsum("nk,nvk->nv", gradient[part], np.nan_to_num(points)[owner[part]])
        gains[np.isnan(points[owner[part], :, 0])] = -np.inf
        best[part] = points[owner[part], gains.argmax(axis=1)]
    return best


def _no_vertex(rows: Index) -> InfeasibleActionsError:
    return InfeasibleActionsError(
        f"the bounds and A δ + b ≥ 0 leave no action to the people in rows {shown(rows)}",
        rows=rows,
    )


def _by_highs(gradient: Floats, low: Floats, high: Floats, A: Floats, b: Floats) -> Floats:
    from scipy.optimize import linprog
    from scipy.sparse import csr_array, eye_array, kron

    step = np.empty_like(gradient)
    for start in range(0, len(gradient), PER_PROGRAM):
        part = slice(start, start + PER_PROGRAM)
        n = len(gradient[part])
        answer = linprog(
            -gradient[part].ravel(),
            A_ub=kron(eye_array(n), csr_array(-A), format="csc"),
            b_ub=b[part].ravel(),
            bounds=np.stack([low[part].ravel(), high[part].ravel()], axis=1),
            method="highs",
        )
        if answer.status == 0:
            step[part] = answer.x.reshape(n, -1)
        elif n == 1:
            raise _failure(answer, start)
        else:
            step[part] = _one_by_one(gradient[part], low[part], high[part], A, b[part], start)
    return step


def _one_by_one(
    gradient: Floats, low: Floats, high: Floats, A: Floats, b: Floats, start: int
) -> Floats:
    """Solve alone the people of a program that failed, to name who made it fail."""
    step = np.empty_like(gradient)
    for i in range(len(gradient)):
        one = slice(i, i + 1)
        try:
            step[one] = _by_highs(gradient[one], low[one], high[one], A, b[one])
        except (InfeasibleActionsError, UnboundedResponseError, SolverError) as error:
            raise type(error)(
                str(error).replace("rows 0", f"rows {start + i}"), rows=[start + i]
            ) from error
    return step


def _failure(answer: object, row: int) -> Exception:
    status = getattr(answer, "status", None)
    if status == 2:
        return _no_vertex(np.array([row]))
    if status == 3:
        return _unbounded(np.array([row]))
    return SolverError(
        f"HiGHS did not solve the step of the person in rows {row}: "
        f"{getattr(answer, 'message', '')}",
        rows=[row],
    )


# The nearest point, by its dual: one multiplier per constraint, each solved exactly in turn
# (a piecewise linear equation) until all agree. Those who take too long are solved alone.
SWEEPS = 40
AGREED = 1e-10


def project(y: Floats, low: Floats, high: Floats, A: Floats | None, b: Floats | None) -> Floats:
    r"""Return :math:`\arg\min \|\delta - y\|` over the box and :math:`A\delta + b \ge 0`."""
    point: Floats = np.clip(y, low, high)
    if A is None or b is None:
        return point
    who = np.flatnonzero((point @ A.T + b < 0.0).any(axis=1))
    if not who.size:
        return point
    # Rows that nothing in anybody's box breaks, those of other branches among them, are left out.
    rises, falls = np.maximum(A, 0.0), np.minimum(A, 0.0)
    with np.errstate(invalid="ignore"):
        binds = ~(low[who] @ rises.T + high[who] @ falls.T + b[who] >= 0.0).all(axis=0)
    A, b = A[binds], b[:, binds]
    multipliers = np.zeros((len(who), len(A)))
    left = np.arange(len(who))
    for _ in range(SWEEPS):
        rows = who[left]
        before = multipliers[left].copy()
        for k in range(len(A)):
            pull = multipliers[left]
            pull[:, k] = 0.0
            multipliers[left, k] = _one_multiplier(
                y[rows] + pull @ A, low[rows], high[rows], A[k], b[rows, k]
            )
        move = np.abs(multipliers[left] - before).max(axis=1)
        left = left[~(move <= AGREED * (1.0 + np.abs(before).max(axis=1)))]
        if not left.size:
            break
    point[who] = np.clip(y[who] + np.nan_to_num(multipliers) @ A, low[who], high[who])
    for i in who[left].tolist():
        point[i] = nearest_alone(y[i], low[i], high[i], A, b[i], i)
    return point


def _one_multiplier(y: Floats, low: Floats, high: Floats, a: Floats, b: Floats) -> Floats:
    r"""Return the least :math:`t\ge0` with :math:`a\cdot clip(y + t a) + b\ge0`, NaN if none."""
    used = np.flatnonzero(a)
    y, low, high, a = y[:, used], low[:, used], high[:, used], a[used]
    # The reach is piecewise linear in t and bends where a feature meets its bound.
    bends = np.maximum(np.concatenate([(low - y) / a, (high - y) / a], axis=1), 0.0)
    ends = np.sort(np.concatenate([np.zeros((len(y), 1)), bends], axis=1), axis=1)
    spots = np.clip(y[:, None] + ends[:, :, None] * a, low[:, None], high[:, None])
    reach = spots @ a + b[:, None]
    done = reach >= 0.0
    first = done.argmax(axis=1)
    rows = np.arange(len(y))
    here, before = first, np.maximum(first - 1, 0)
    rise = reach[rows, here] - reach[rows, before]
    share = np.where(rise > 0.0, -reach[rows, before] / np.where(rise > 0.0, rise, 1.0), 1.0)
    root = ends[rows, before] + share * (ends[rows, here] - ends[rows, before])
    answer: Floats = np.where(first == 0, 0.0, root)
    answer[~done.any(axis=1)] = np.nan
    return answer


def nearest_alone(y: Floats, low: Floats, high: Floats, A: Floats, b: Floats, row: int) -> Floats:
    """Solve one person by least-distance programming (Lawson and Hanson, chapter 23)."""
    from countermove.people import ActionSet

    nearest: Floats = low.copy()
    free = low < high
    rest = b + A[:, ~free] @ low[~free]
    least = np.minimum(A[:, free] * low[free], A[:, free] * high[free]).sum(axis=1) + rest
    # Rows that nothing in the box breaks, those of other branches among them, are only noise.
    binds = (least < 0.0) & (A[:, free] != 0.0).any(axis=1)
    one = ActionSet(lower=low[free], upper=high[free], A=A[np.ix_(binds, free)], b=rest[binds])
    try:
        nearest[free] = one.project(np.zeros((1, int(free.sum()))), y[None, free])[0]
    except InfeasibleActionsError as error:
        raise InfeasibleActionsError(
            f"the bounds and A δ + b ≥ 0 leave no action to the person in row {shown([row])}",
            rows=[row],
        ) from error
    return nearest
