r"""The branches of possible people, compiled: the best action of all of them.

In a branch histories are settled and it is known on which side of every premise a person is, hence
which rows are in force. The plain answer comes first: where it is possible it is the answer.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from countermove._types import Floats, Index, Mask
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
from countermove.response._price_search import (
    CROSS,
    EXHAUSTED,
    REACH,
    dual_worth,
    foresee_more,
    lower_bound,
    peak_of,
    refine,
    settle,
)
from countermove.response._relation_rows import (
    ACTION,
    ALONG,
    HALF,
    HI,
    LO,
    SLOPE,
    Y,
    act,
    list_live,
    make_desk,
    tangent,
    totals,
)
from countermove.response.compilation import inlined, jit, lean
from countermove.response.reduction import FINE, NOT_CONVERGED
from countermove.response.step import rise_and_bend, step

EQUAL = 1e-12
"""A branch that may be better by this share at most is left out."""
SECOND = 0.7
"""Where above its middle the step rises as the second price that branches are judged by."""


class BranchFound(NamedTuple):
    """The best action of everybody and its branch."""

    action: Floats  # (n, k)
    lo: Floats
    hi: Floats
    held: Mask  # (n, m) rows that hold the action back
    price: Floats  # (n,) infinite where nothing more can be had at any
    gain: Floats
    cost: Floats
    found: Mask  # whether there is one
    converged: Mask


@lean
def keep(i, u, desk, found, t):  # type: ignore[no-untyped-def]
    """Write down what is on the desk as person ``i``'s best action."""
    found.gain[i], found.cost[i] = totals(t, desk)
    found.price[i], found.found[i] = u, True
    for j in range(desk.columns.shape[1]):
        found.action[i, j], found.lo[i, j], found.hi[i, j] = (
            desk.columns[ACTION, j],
            desk.columns[LO, j],
            desk.columns[HI, j],
        )
    for r in range(desk.rows.shape[1]):
        found.held[i, r] = desk.on[r] and desk.rows[Y, r] > 0.0


class Notes(NamedTuple):
    """What is noted about one person's branches."""

    choice: Index  # (h,) the states of the branch on the desk
    favourite: Index  # of the one that promises most
    worth: Floats  # (s + o,) of sides, and what states add
    second: Floats  # the same at another price
    held_by: Floats  # (m,) multipliers of the best branch so far


@jit
def make_notes(t, b):  # type: ignore[no-untyped-def]
    """Allocate them."""
    blocks, m = b.columns.shape[0], t.first.size - 1
    count = b.sides.shape[0] + b.options[b.options.size - 1]
    choice = np.zeros(blocks, np.int64)
    worth = np.zeros(count)
    return Notes(choice, choice.copy(), worth, worth.copy(), np.zeros(m))


@inlined
def steepness(t, people, i):  # type: ignore[no-untyped-def]
    """Return how fast the gain follows the price where nothing stops anybody."""
    steep = 0.0
    for j in range(t.cost.shape[1]):
        one = t.cost[SLOPE, j]
        gains = people.high[i, j] > 0.0 if one > 0.0 else people.low[i, j] < 0.0
        steep += one * one * t.cost[HALF, j] if gains else 0.0
    return steep


@inlined
def _try_branch(kind, target, room, limit, u, far, steep, side, i, t, b, people, notes, desk):  # type: ignore[no-untyped-def]
    """Return value, price and how it ended in one branch; infinite: not below ``limit``."""
    if not narrow(t, b, people, i, side, notes.choice, desk):
        return np.inf, u, FINE
    offset = people.offset[i]
    # What the best branch so far was worth at a price of its own says what this one is at most.
    for r in range(notes.held_by.size):
        desk.rows[Y, r] = notes.held_by[r] if desk.on[r] else 0.0
    if lower_bound(kind, target, far, dual_worth(far, t, offset, desk)) >= limit:
        return np.inf, u, FINE
    if far > u:
        for r in range(notes.held_by.size):
            desk.rows[Y, r] = 0.0
    return settle(kind, target, room, limit, u, steep, t, offset, desk)


@inlined
def _copied(old, new):  # type: ignore[no-untyped-def]
    """Copy an array."""
    for k in range(old.size):
        new[k] = old[k]


@inlined
def next_branch(b, people, i, turn, side, favourite, notes):  # type: ignore[no-untyped-def]
    """Return the next side, its states among the notes, and whether there was any left."""
    # The most promising branch comes first, then all others in their order.
    if turn == 0:
        _copied(notes.choice, notes.favourite)
        first_choice(b, notes.choice)
        side = -1
    more = True
    while more:
        side += 1
        if side == b.sides.shape[0]:
            side, more = 0, next_choice(b, people, i, notes.choice)
        again = side == favourite
        for block in range(notes.choice.size):
            again = again and notes.choice[block] == notes.favourite[block]
        if not again:
            break
    return side, more


@lean
def _best_branch(kind, target, room, limit, u, steep, i, t, b, people, notes, desk, found):  # type: ignore[no-untyped-def]
    """Write person ``i``'s best action of all branches, if it is below the limit."""
    weigh(u, t, b, people, i, desk, notes.worth)
    for r in range(notes.held_by.size):
        notes.held_by[r] = 0.0
    favourite = best_choice(b, notes.worth, notes.choice)
    side, same, price, far, turn, more = favourite, 0.0, u, u, 0, True
    while more:
        bound = lower_bound(kind, target, u, chosen_worth(b, notes.worth, side, notes.choice))
        if bound < limit - same:
            value, at, ended = _try_branch(
                kind, target, room, limit - same, price, far, steep, side, i, t, b, people, notes,
                desk,
            )  # fmt: skip
            found.converged[i] &= ended != NOT_CONVERGED
            if value < limit:
                limit, same = value, EQUAL * abs(value)
                keep(i, np.inf if ended == EXHAUSTED else at, desk, found, t)
                price = far = at
                if ended == EXHAUSTED:
                    price, far = u, foresee_more(at, t, desk)
                for r in range(notes.held_by.size):
                    notes.held_by[r] = desk.rows[Y, r] if desk.on[r] else 0.0
        side, more = next_branch(b, people, i, turn, side, favourite, notes)
        turn += 1


@inlined
def best_of(kind, target, room, limit, i, t, b, people, notes, desk, found):  # type: ignore[no-untyped-def]
    """Write person ``i``'s best action, if it is below the limit: the plain one if possible."""
    steep = steepness(t, people, i)
    found.converged[i] = True
    if steep == 0.0:
        return
    start = target / steep if kind == CROSS else math.sqrt(2.0 * target / steep)
    whole_box(people, i, desk)
    value, u, ended = settle(kind, target, room, limit, start, steep, t, people.offset[i], desk)
    found.converged[i] = ended != NOT_CONVERGED
    if value == np.inf:
        return
    if possible(t, b, people, i, desk):
        keep(i, np.inf if ended == EXHAUSTED else u, desk, found, t)
        return
    _best_branch(kind, target, room, limit, u, steep, i, t, b, people, notes, desk, found)


@jit
def reach_branches(t, b, people, budget, found):  # type: ignore[no-untyped-def]
    """Write everybody's action of the most gain within their budget."""
    desk, notes = make_desk(t), make_notes(t, b)
    for i in range(people.low.shape[0]):
        spend = budget[i % budget.shape[0]]
        best_of(REACH, spend, 1e-14 * spend, 0.0, i, t, b, people, notes, desk, found)


@jit
def cross_branches(t, b, people, need, room, gains, who, found):  # type: ignore[no-untyped-def]
    """Write the cheapest action with the gain that each of ``who`` needs, if below their gains."""
    desk, notes = make_desk(t), make_notes(t, b)
    for i in who:
        most = gains[i % gains.shape[0]]
        best_of(CROSS, need[i], room[i], most, i, t, b, people, notes, desk, found)


@lean
def _home(t, b, people, i, choice, desk):  # type: ignore[no-untyped-def]
    """Put the branch that a person stands in on the desk; return its side of the premises."""
    first_choice(b, choice)
    for side in range(b.sides.shape[0]):
        stays = narrow(t, b, people, i, side, choice, desk)
        for j in range(t.cost.shape[1]):
            stays = stays and desk.columns[LO, j] <= 0.0 <= desk.columns[HI, j]
        if stays:
            return side
    return -1


@inlined
def _highest_worth(smooth, u, top, worth):  # type: ignore[no-untyped-def]
    """Return what no point of a branch is above, its u·gain - cost being at most ``worth``."""
    # A gain g costs nothing less than 0, nor than u g - worth; beyond where the two meet the step
    # less the second is highest there or at its stationary point ``top``.
    s, sharpness, factor = smooth
    free = worth / u
    highest = step(sharpness * (s + free))
    far = top / sharpness - s
    if far > free:
        highest = max(highest, step(top) - factor * (u * far - worth))
    return highest


@inlined
def _hopeful(smooth, u, top, best, worth):  # type: ignore[no-untyped-def]
    """Return whether a branch may be higher than the best so far."""
    if worth == -np.inf or u <= 0.0 or best == -np.inf:
        return worth > -np.inf
    return _highest_worth(smooth, u, top, worth) > best + EQUAL


@inlined
def _at_most(smooth, u, worth, v, other, gain):  # type: ignore[no-untyped-def]
    """Return what a gain is worth at most, given the most of u·gain - cost and of v·gain - cost."""
    s, sharpness, factor = smooth
    return step(sharpness * (s + gain)) - factor * max(0.0, u * gain - worth, v * gain - other)


@inlined
def _hopeful_still(smooth, u, top, best, worth, v, other):  # type: ignore[no-untyped-def]
    """Return whether a branch may be higher than the best so far, by two prices together."""
    # The step less straight lines is highest where two of them meet, or where it rises as one of
    # them does, above its middle.
    s, sharpness, _ = smooth
    highest = _at_most(smooth, u, worth, v, other, worth / u)
    highest = max(highest, _at_most(smooth, u, worth, v, other, other / v))
    highest = max(highest, _at_most(smooth, u, worth, v, other, top / sharpness - s))
    highest = max(highest, _at_most(smooth, u, worth, v, other, SECOND / sharpness - s))
    if u != v:
        highest = max(highest, _at_most(smooth, u, worth, v, other, (other - worth) / (v - u)))
    return highest > best + EQUAL


@inlined
def _open_branch(smooth, u, top, best, side, i, t, b, people, notes, desk):  # type: ignore[no-untyped-def]
    """Put a branch on the desk; return whether it may be higher than the best so far."""
    if not narrow(t, b, people, i, side, notes.choice, desk):
        return False
    if best == -np.inf:
        return True
    for r in range(notes.held_by.size):
        desk.rows[Y, r] = notes.held_by[r] if desk.on[r] else 0.0
    hopeful = _hopeful(smooth, u, top, best, dual_worth(u, t, people.offset[i], desk))
    for r in range(notes.held_by.size):
        desk.rows[Y, r] = 0.0
    return hopeful


@lean
def _highest(smooth, u, top, steep, i, t, b, people, notes, desk, line, found):  # type: ignore[no-untyped-def]
    """Write person ``i``'s highest point of all branches."""
    best, price, turn, more, second = -np.inf, u, 0, True, False
    v = smooth[1] * rise_and_bend(SECOND)[0] / smooth[2]
    weigh(u, t, b, people, i, desk, notes.worth)
    for r in range(notes.held_by.size):
        notes.held_by[r] = 0.0
    favourite = side = best_choice(b, notes.worth, notes.choice)
    peak_at = top
    while more:
        worth = chosen_worth(b, notes.worth, side, notes.choice)
        hopeful = _hopeful(smooth, u, top, best, worth)
        if hopeful and u > 0.0 and turn > 0:
            if not second:
                weigh(v, t, b, people, i, desk, notes.second)
                second = True
            other = chosen_worth(b, notes.second, side, notes.choice)
            hopeful = _hopeful_still(smooth, u, top, best, worth, v, other)
        if hopeful and _open_branch(
            smooth, price, peak_at, best, side, i, t, b, people, notes, desk
        ):
            value, own, ok = peak_of(smooth, False, steep, t, people.offset[i], desk, line)
            found.converged[i] &= ok
            if value > best:
                best, price = value, refine(own, smooth, t, people.offset[i], desk)
                keep(i, price, desk, found, t)
                peak_at = abs(smooth[1] * (smooth[0] + found.gain[i]))
                for r in range(notes.held_by.size):
                    notes.held_by[r] = desk.rows[Y, r] if desk.on[r] else 0.0
        side, more = next_branch(b, people, i, turn, side, favourite, notes)
        turn += 1


@jit
def smooth_branches(t, b, people, scores, sharpness, first, factors, found):  # type: ignore[no-untyped-def]
    """Write where everybody's smoothed step is best; with ``first``, the first point at home."""
    desk, notes, steep = make_desk(t), make_notes(t, b), 0.0
    line = np.empty((3, 8 * t.cost.shape[1] + 64))
    for j in range(t.cost.shape[1]):
        steep += t.cost[SLOPE, j] * t.cost[SLOPE, j] * t.cost[HALF, j]
    for i in range(people.low.shape[0]):
        offset, smooth = people.offset[i], (scores[i], sharpness, factors[i % factors.shape[0]])
        if first:
            at = _home(t, b, people, i, notes.choice, desk)
            _, u, found.converged[i] = peak_of(smooth, True, steep, t, offset, desk, line)
            narrow(t, b, people, i, at, notes.choice, desk)
            keep(i, refine(u, smooth, t, offset, desk), desk, found, t)
            continue
        whole_box(people, i, desk)
        _, u, ok = peak_of(smooth, False, steep, t, offset, desk, line)
        act(u, t, offset, desk)
        if ok and possible(t, b, people, i, desk):
            keep(i, refine(u, smooth, t, offset, desk), desk, found, t)
            continue
        top = abs(sharpness * (scores[i] + totals(t, desk)[0]))
        _highest(smooth, u, top, steep, i, t, b, people, notes, desk, line, found)


@jit
def branch_tangents(t, found, vectors, moved):  # type: ignore[no-untyped-def]
    """Write how everybody's action follows one pull each, bounds and rows that hold it kept."""
    desk = make_desk(t)
    for i in range(vectors.shape[0]):
        desk.columns[LO], desk.columns[HI], desk.columns[ACTION] = (
            found.lo[i],
            found.hi[i],
            found.action[i],
        )
        desk.on[:] = found.held[i]
        for r in range(t.first.size - 1):
            desk.rows[Y, r] = 1.0 if found.held[i, r] else 0.0
        list_live(desk)
        tangent(vectors[i], t, desk)
        moved[i] = desk.columns[ALONG]


@jit
def held_directions(A, free, held, price, kept):  # type: ignore[no-untyped-def]
    """Write f with Σ f fᵀ = V (A_F V)⁻¹ Vᵀ, V = A_Fᵀ / q, over the rows that hold everybody."""
    for i in range(held.shape[0]):
        count = 0
        for r in range(held.shape[1]):
            if not held[i, r]:
                continue
            whole, rest = 0.0, 0.0
            for j in range(price.size):
                kept[i, count, j] = A[r, j] / price[j] if free[i, j] else 0.0
                whole += price[j] * kept[i, count, j] ** 2
            for before in range(count):
                along = 0.0
                for j in range(price.size):
                    along += price[j] * kept[i, before, j] * kept[i, count, j]
                for j in range(price.size):
                    kept[i, count, j] -= along * kept[i, before, j]
            for j in range(price.size):
                rest += price[j] * kept[i, count, j] ** 2
            if rest <= 1e-12 * whole or whole == 0.0:
                kept[i, count] = 0.0
                continue
            kept[i, count] /= math.sqrt(rest)
            count += 1
