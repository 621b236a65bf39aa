r"""A certified region around each piece of advice: approved and possible wherever a person ends.

Amounts may end anywhere between two values, all of them together. In offsets
:math:`z \ge 0` from the advised action, approval and every relation say
:math:`M z \le c` with :math:`M, c \ge 0` at the worst corner of the box, so the offsets grow
alike until what is left of a row is used up.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import torch

from countermove._types import Floats, Mask
from countermove.people.feasible import TOLERANCE, absent
from countermove.recourse._search import SearchProblem
from countermove.scores.base import values

if TYPE_CHECKING:
    from countermove.recourse.recommend import Advice

SHARES = 0.5 ** np.arange(8)
"""Of the possible box, tried in turn on scores that bend: gradients vary less in a small one."""
WIDEST = 1e3
"""Where nothing ends a column, how far a box goes on a score that bends, standardised units."""
VISIBLE = 1e-6
"""Offsets below this, in standardised units, are rounding."""
USED_UP = 1e-12


def with_region(advice: Advice, problem: SearchProblem, aim: float) -> Advice:
    """Return verified advice with the certified region around every action."""
    low, high = advice.action.copy(), advice.action.copy()
    who = np.flatnonzero(~absent(advice.action) & (advice.n_changed > 0))
    if problem.consequences is None and who.size:
        below, above = _offsets(problem.rows(who), advice.action[who], aim)
        low[who] -= below
        high[who] += above
    return replace(advice, action_low=low, action_high=high)


def _offsets(problem: SearchProblem, action: Floats, aim: float) -> tuple[Floats, Floats]:
    """Return how far below and above an action every column may end, each (n, d)."""
    feasible, branch = problem.feasible, problem.feasible.branch_at(action)
    amounts = np.abs(action) > TOLERANCE
    for part in feasible.listed:
        amounts[:, part.columns] = False
    low, high = (
        np.where(branch.open_low, -np.inf, branch.low),
        np.where(branch.open_high, np.inf, branch.high),
    )
    room = np.where(np.hstack([amounts, amounts]), np.hstack([action - low, high - action]), 0.0)
    room = np.maximum(room, 0.0)
    rows = np.zeros((0, 2 * action.shape[1]))
    left = np.zeros((len(action), 0))
    if branch.A is not None and branch.b is not None:
        rows = np.hstack([np.maximum(branch.A, 0.0), np.maximum(-branch.A, 0.0)])
        left = np.maximum(action @ branch.A.T + branch.b, 0.0)
    beyond = values(problem.score, problem.X + action) - aim
    beyond = np.maximum(beyond * (1.0 - 1e-9) - USED_UP, 0.0)
    step = np.tile(problem.feasible.step, 2)
    if problem.slope is not None:
        slope = np.hstack([np.maximum(problem.slope, 0.0), np.maximum(-problem.slope, 0.0)])
        found = _filled(room, rows, left, np.broadcast_to(slope, room.shape), beyond, step)
    else:
        found = _of_bent(problem, action, (room, rows, left, beyond, step))
    found = np.where(found < VISIBLE, 0.0, found)
    d = action.shape[1]
    return found[:, :d], found[:, d:]


def _of_bent(
    problem: SearchProblem, action: Floats, given: tuple[Floats, Floats, Floats, Floats, Floats]
) -> Floats:
    """Return offsets for a score whose gradient is bounded over a box; zeros where it is not."""
    room, rows, left, beyond, step = given
    place, d = problem.X + action, action.shape[1]
    best, width = np.zeros_like(room), np.zeros(len(room))
    for share in SHARES:
        inner = share * np.minimum(room, WIDEST)
        box = torch.from_numpy(place - inner[:, :d]), torch.from_numpy(place + inner[:, d:])
        bounds = problem.score.gradient_bounds(*box)
        if bounds is None:
            return best
        least, most = (part.numpy() for part in bounds)
        slope = np.hstack([np.maximum(most, 0.0), np.maximum(-least, 0.0)])
        found = _filled(inner, rows, left, slope, beyond, step)
        wide = np.minimum(found, 1.0).sum(axis=1)
        wins = wide > width
        best[wins], width[wins] = found[wins], wide[wins]
    return best


def _filled(
    room: Floats, rows: Floats, left: Floats, slope: Floats, beyond: Floats, step: Floats
) -> Floats:
    """Return offsets that grow alike to the end of their room or of a row they use up."""
    used = np.flatnonzero((room > 0.0).any(axis=0))
    found = np.zeros_like(room)
    if used.size:
        inner = (room[:, used], rows[:, used], left, slope[:, used], beyond)
        found[:, used] = _whole_steps(_grown(*inner), *inner, step[used])
    return found


def _grown(room: Floats, rows: Floats, left: Floats, slope: Floats, beyond: Floats) -> Floats:
    """Return continuous offsets; a person's are done when each has met its end."""
    offsets, left, beyond = np.zeros_like(room), left.copy(), beyond.copy()
    enough, needed = USED_UP * (1.0 + left), USED_UP * (1.0 + beyond)
    grows: Mask = np.asarray(room > 0.0)
    for _ in range(room.shape[1]):
        grows &= ~((left <= enough).astype(float) @ rows > 0.0)
        grows &= ~((beyond <= needed)[:, None] & (slope > 0.0))
        if not grows.any():
            break
        uses, spends = grows @ rows.T, (grows * slope).sum(axis=1)
        with np.errstate(divide="ignore", invalid="ignore"):
            by_rows = np.where(uses > 0.0, left / uses, np.inf).min(axis=1, initial=np.inf)
            by_score = np.where(spends > 0.0, beyond / spends, np.inf)
            by_room = np.where(grows, room - offsets, np.inf).min(axis=1)
        far = np.minimum(np.minimum(by_rows, by_score), by_room)
        offsets = np.where(grows, offsets + far[:, None], offsets)
        ends = np.isfinite(far)
        left[ends] = np.maximum(left[ends] - far[ends, None] * uses[ends], 0.0)
        beyond[ends] = np.maximum(beyond[ends] - far[ends] * spends[ends], 0.0)
        grows &= (offsets < room) & ends[:, None]
    return np.minimum(offsets, room)


def _whole_steps(
    offsets: Floats,
    room: Floats,
    rows: Floats,
    left: Floats,
    slope: Floats,
    beyond: Floats,
    step: Floats,
) -> Floats:
    """Return offsets in whole steps where a column has some; what that frees goes to the next."""
    on = np.where(step > 0.0, step, 1.0)
    with np.errstate(invalid="ignore"):
        offsets = np.where(step > 0.0, np.floor(offsets / on + 1e-9) * on, offsets)
    finite = np.where(np.isfinite(offsets), offsets, 0.0)  # an endless column uses up nothing
    left = np.maximum(left - finite @ rows.T, 0.0)
    beyond = np.maximum(beyond - (finite * slope).sum(axis=1), 0.0)
    for j in np.flatnonzero(step):
        uses, spends = rows[:, j], slope[:, j]
        with np.errstate(divide="ignore", invalid="ignore"):
            further = np.where(uses > 0.0, left / uses, np.inf).min(axis=1, initial=np.inf)
            further = np.minimum(further, np.where(spends > 0.0, beyond / spends, np.inf))
            further = np.minimum(further, room[:, j] - offsets[:, j])
        more = np.where(np.isfinite(further), np.floor(further / step[j] + 1e-9) * step[j], 0.0)
        more = np.maximum(more, 0.0)
        offsets[:, j] += more
        left = np.maximum(left - more[:, None] * uses, 0.0)
        beyond = np.maximum(beyond - more * spends, 0.0)
    return offsets
