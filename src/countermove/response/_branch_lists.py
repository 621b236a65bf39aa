r"""The branches of possible people one by one, compiled: listed, projected onto, best at a price.

For whoever solves inside a branch by other means: convex programs, ascent before networks.
"""

from __future__ import annotations

import numpy as np

from countermove.response._branch_boxes import (
    best_choice,
    chosen_worth,
    first_choice,
    narrow,
    next_choice,
    possible,
    weigh,
    whole_box,
)
from countermove.response._branch_rows import (
    EQUAL,
    keep,
    make_notes,
    next_branch,
    steepness,
)
from countermove.response._price_search import CROSS, settle
from countermove.response._relation_rows import (
    ACTION,
    HI,
    LO,
    SLOPE,
    Y,
    act,
    list_live,
    make_desk,
    totals,
)
from countermove.response.compilation import inlined, jit, lean
from countermove.response.reduction import FINE, NOT_CONVERGED


@inlined
def _inhabited(need, steep, t, offset, desk):  # type: ignore[no-untyped-def]
    """Return whether an action of the branch on the desk gains what is needed (-inf: anything)."""
    if need == -np.inf:
        return act(0.0, t, offset, desk) == FINE
    room = 1e-9 * (1.0 + abs(need))
    start = max(need, room) / steep
    return settle(CROSS, need, room, np.inf, start, steep, t, offset, desk)[0] < np.inf


@inlined
def _stays(desk):  # type: ignore[no-untyped-def]
    """Return whether the box on the desk lets a person stay."""
    for j in range(desk.columns.shape[1]):
        if desk.columns[LO, j] > 0.0 or desk.columns[HI, j] < 0.0:
            return False
    return True


@jit
def list_branches(t, b, people, need, who, home, lo, hi, on):  # type: ignore[no-untyped-def]
    """Write every branch somebody can be in who gains what they need; return how many there are.

    Only as many are written as there is room for.
    """
    desk, notes, count = make_desk(t), make_notes(t, b), 0
    for i in range(people.low.shape[0]):
        steep, more = steepness(t, people, i), True
        first_choice(b, notes.choice)
        while more and (steep > 0.0 or need[i] == -np.inf):
            for side in range(b.sides.shape[0]):
                if not narrow(t, b, people, i, side, notes.choice, desk):
                    continue
                if count < who.size:
                    who[count], home[count], on[count] = i, _stays(desk), desk.on
                    lo[count], hi[count] = desk.columns[LO], desk.columns[HI]
                count += _inhabited(need[i], steep, t, people.offset[i], desk)
            more = next_choice(b, people, i, notes.choice)
    return count


@jit
def project_branches(t, lo, hi, on, offset, points, nearest, held):  # type: ignore[no-untyped-def]
    """Write the nearest action of each branch, and which rows hold it; return whether all fine."""
    # Rule and cost of ``t`` make act(1) the projection of the slope: every square costs a half.
    desk, k, fine = make_desk(t), t.cost.shape[1], True
    for i in range(points.shape[0]):
        desk.columns[LO], desk.columns[HI] = lo[i], hi[i]
        for r in range(desk.on.size):
            desk.on[r], desk.rows[Y, r] = on[i, r], 0.0
            t.pull[2 * k + r] = 0.0
            for e in range(t.first[r], t.first[r + 1]):
                t.pull[2 * k + r] += t.entry[e] * points[i, t.at[e]]
        for j in range(k):
            t.cost[SLOPE, j] = t.pull[j] = points[i, j]
            t.pull[k + j] = -points[i, j]
        list_live(desk)
        fine &= act(1.0, t, offset[i], desk) == FINE
        nearest[i] = desk.columns[ACTION]
        for r in range(desk.on.size):
            held[i, r] = desk.on[r] and desk.rows[Y, r] > 0.0
    return fine


@lean
def _most_at_price(i, t, b, people, notes, desk, found):  # type: ignore[no-untyped-def]
    """Write person ``i``'s most of gain - cost over all branches."""
    weigh(1.0, t, b, people, i, desk, notes.worth)
    favourite = side = best_choice(b, notes.worth, notes.choice)
    best, turn, more = -np.inf, 0, True
    while more:
        worth = chosen_worth(b, notes.worth, side, notes.choice)
        if worth > best + EQUAL and narrow(t, b, people, i, side, notes.choice, desk):
            ended = act(1.0, t, people.offset[i], desk)
            found.converged[i] &= ended != NOT_CONVERGED
            gain, cost = totals(t, desk)
            if ended == FINE and gain - cost > best:
                best = gain - cost
                keep(i, 1.0, desk, found, t)
        side, more = next_branch(b, people, i, turn, side, favourite, notes)
        turn += 1


@jit
def gain_branches(t, b, people, found):  # type: ignore[no-untyped-def]
    """Write everybody's action of the most gain - cost: a point of score is worth its price."""
    desk, notes = make_desk(t), make_notes(t, b)
    for i in range(people.low.shape[0]):
        whole_box(people, i, desk)
        act(1.0, t, people.offset[i], desk)
        if possible(t, b, people, i, desk):
            keep(i, 1.0, desk, found, t)
        else:
            _most_at_price(i, t, b, people, notes, desk, found)
