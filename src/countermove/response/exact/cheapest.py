r"""The cheapest action on an affine score, proven so, where the cost is a sum over features.

.. math:: \min_\delta \sum_j q_j\delta_j^2 + \max(0, \ell\cdot\delta)
          \quad\text{s.t.}\quad w\cdot\delta \ge need,\; A\delta + b \ge 0

over a box with whole steps, blocks whose states are listed, and rows in force
only where a column takes a value. `_search` searches, `_bound` proves.
"""

from __future__ import annotations

from itertools import product
from math import prod
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from countermove._types import Floats, Index, Mask
from countermove.errors import ParameterError
from countermove.people.feasible import APART, TOLERANCE, FeasibleActions, ListedStates

if TYPE_CHECKING:
    from countermove.response.exact._branches import PeopleTables, SharedTables

BUDGET = 400_000
"""Values tried per person (raising a bound counts for several); beyond, HiGHS takes over."""
ROUNDING = 1e-11
"""What the score may miss its need by, relative: searches aim further beyond the threshold."""
AT_ONCE = 4_000_000
"""Numbers held at once for the options of listed states."""
BLUR = 0.05
"""Price of a move, as a share of what its whole range gains, where the highest score is asked."""
ROUNDS = 6
"""How often the highest score is asked for again, priced from where the last answer led."""


class CheapestActions(NamedTuple):
    """The cheapest actions (NaN without), who provably has none, and who was left unsolved."""

    action: Floats
    proven_none: Mask
    unsolved: Mask


def cheapest_exact(
    feasible: FeasibleActions,
    slope: Floats,
    need: Floats,
    weights: Floats,
    kink: Floats | None = None,
    most: Floats | None = None,
) -> CheapestActions:
    r"""Return each person's cheapest action with :math:`w\cdot\delta \ge need`, exactly.

    With ``most``, shape (n,), none is an action that costs less.
    """
    if (weights <= 0.0).any():
        raise ParameterError("every feature's square has to cost something")
    linear = np.zeros((1, len(weights)))
    return _in_parts(feasible, slope, need, weights, kink, linear, most)


def highest_gain(feasible: FeasibleActions, slope: Floats, start: Floats) -> Floats:
    r"""Return allowed actions of high gain :math:`w\cdot\delta`, never below that of the start.

    Moves from the last answer are priced lightly and the price is renewed there (proximal
    points), which ends at the highest gain unless gains all but cancel along a row.
    """
    n, d = feasible.low.shape
    slope, best = np.broadcast_to(slope, (n, d)), start.copy()
    steep = np.abs(slope).max(axis=0)
    width = np.maximum((feasible.high - feasible.low).max(axis=0), APART)
    weights = BLUR * np.maximum(steep, 1e-9 * max(float(steep.max(initial=0.0)), 1e-300)) / width
    left = np.arange(n)
    for _ in range(ROUNDS):
        part, w = feasible.rows(left), slope[left]
        linear = -w - 2.0 * weights * best[left]
        found = _in_parts(part, w, np.full(len(left), -np.inf), weights, None, linear)
        solved = ~np.isnan(found.action[:, 0])
        gain, before = (w * found.action).sum(axis=1), (w * best[left]).sum(axis=1)
        better = solved & (gain > before + 1e-9 * (1.0 + np.abs(before)))
        left = left[better]
        best[left] = found.action[better]
        if not left.size:
            break
    return best


def _in_parts(
    feasible: FeasibleActions,
    slope: Floats,
    need: Floats,
    weights: Floats,
    kink: Floats | None,
    linear: Floats,
    most: Floats | None = None,
) -> CheapestActions:
    """Solve as many people at once as fit; a need of -inf asks nothing of the score."""
    n, d = feasible.low.shape
    widest = max([1, *(len(part.columns) for part in feasible.listed)])
    size = max(1, AT_ONCE // (d + sum(p.allowed.shape[1] for p in feasible.listed) * widest))
    parts = []
    for start in range(0, max(n, 1), size):
        who = np.arange(start, min(start + size, n))
        steep, priced = (np.broadcast_to(part, (n, d))[who] for part in (slope, linear))
        cap = np.full(len(who), np.inf) if most is None else most[who]
        parts.append(_part(feasible.rows(who), steep, need[who], weights, kink, priced, cap))
    return CheapestActions(*(np.concatenate(field) for field in zip(*parts, strict=True)))


def _part(
    feasible: FeasibleActions,
    slope: Floats,
    need: Floats,
    weights: Floats,
    kink: Floats | None,
    linear: Floats,
    most: Floats,
) -> CheapestActions:
    """Solve some of the people, all at once."""
    from countermove.response.compilation import over_rows
    from countermove.response.exact._branches import PeopleTables
    from countermove.response.exact._search import NONE, OPEN, cheapest_for_everyone

    n, used = len(need), feasible.used
    shared, people = exact_tables(feasible, slope, need, weights, kink, linear, most)
    found, ended = np.zeros((n, len(used))), np.zeros(n, np.int64)

    def some(who: slice) -> None:
        tables = PeopleTables._make(part[who] for part in people)
        cheapest_for_everyone(shared, tables, BUDGET, found[who], ended[who])

    over_rows(n, some)
    action = np.zeros(feasible.low.shape)
    action[:, used] = found
    action[ended > 0] = np.nan
    return CheapestActions(action, ended == NONE, ended == OPEN)


def exact_tables(
    feasible: FeasibleActions,
    slope: Floats,
    need: Floats,
    weights: Floats,
    kink: Floats | None,
    linear: Floats,
    most: Floats,
) -> tuple[SharedTables, PeopleTables]:
    """Return what the compiled search reads, of all people together and of each."""
    from countermove.response.exact._branches import PeopleTables

    n, used = len(need), feasible.used
    shared = _shared(feasible, weights, kink, used, asked=bool(np.isfinite(need).any()))
    change, allowed = padded_options(feasible.listed, n, shared.columns.shape[1])
    values = np.column_stack([np.zeros((n, 0)), *(p.value for p in feasible.premises)])
    people = PeopleTables(
        np.ascontiguousarray(slope[:, used], np.float64),
        np.ascontiguousarray(linear[:, used], np.float64),
        _least(feasible, need, kink),
        np.ascontiguousarray(feasible.low[:, used]),
        np.ascontiguousarray(feasible.high[:, used]),
        change,
        allowed,
        np.ascontiguousarray(values),
        np.ascontiguousarray(most),
    )
    return shared, people


def padded_options(blocks: tuple[ListedStates, ...], n: int, width: int) -> tuple[Floats, Mask]:
    """Return the states of all blocks in a row, their columns padded with zeros."""
    change = [np.zeros((n, 0, width))]
    for part in blocks:
        room = width - part.change.shape[2]
        change.append(np.pad(part.change, ((0, 0), (0, 0), (0, room))))
    allowed = np.concatenate([np.zeros((n, 0), bool), *(part.allowed for part in blocks)], axis=1)
    return np.ascontiguousarray(np.concatenate(change, axis=1)), np.ascontiguousarray(allowed)


def _shared(
    feasible: FeasibleActions, weights: Floats, kink: Floats | None, used: Index, asked: bool
) -> SharedTables:
    """Return what all people share: rows, prices, blocks and branches."""
    from countermove.response.exact._branches import SharedTables

    place = {int(j): at for at, j in enumerate(used)}
    blocks, premises = feasible.listed, feasible.premises
    A = np.zeros((0, len(weights))) if feasible.A is None else feasible.A
    kinks = np.zeros((0, len(weights))) if kink is None else np.stack([-kink, kink])
    rows = np.vstack([np.zeros((1, len(weights))), A, *(p.A for p in premises), kinks])[:, used]
    width = max([1, *(len(part.columns) for part in blocks)])
    columns = np.full((len(blocks), width), -1, np.int64)
    for at, part in enumerate(blocks):
        columns[at, : len(part.columns)] = [place[int(j)] for j in part.columns]
    blocked = np.isin(np.arange(len(used)), columns)
    first = np.cumsum([0, *(part.allowed.shape[1] for part in blocks)]).astype(np.int64)
    # A branch: which side of each premise, and which side of the kink, where the cost is smooth.
    sides = premise_sides(feasible)
    slants = 1 if kink is None else 2
    in_force = np.ones((len(sides) * slants, len(rows)), bool)
    linear = np.zeros((len(sides) * slants, len(used)))
    sides = np.repeat(sides, slants, axis=0)
    start = 1 + len(A)
    for at, premise in enumerate(premises):
        in_force[:, start : start + len(premise.A)] &= (sides[:, at] == 0)[:, None]
        start += len(premise.A)
    in_force[:, 0] = asked
    if kink is not None:
        in_force[0::2, -1] = in_force[1::2, -2] = False
        linear[1::2] = kink[used]
    return SharedTables(
        np.ascontiguousarray(rows),
        np.ascontiguousarray(weights[used], np.float64),
        np.ascontiguousarray(feasible.step[used]),
        blocked,
        first,
        columns,
        in_force,
        linear,
        sides,
        np.array([place[premise.column] for premise in premises], np.int64),
    )


def premise_sides(feasible: FeasibleActions) -> Index:
    """Return the sides of the premises that some person can be on together, (branches, k)."""
    columns = sorted({premise.column for premise in feasible.premises})
    kept = [_sides_of(feasible, column) for column in columns]
    sides = np.zeros((prod(map(len, kept)), len(feasible.premises)), np.int64)
    for row, chosen in enumerate(product(*kept)):
        for part in chosen:
            for at, side in part:
                sides[row, at] = side
    return sides


def _sides_of(feasible: FeasibleActions, column: int) -> list[tuple[tuple[int, int], ...]]:
    """Return the sides of the premises on one column, as (premise, side), that can be met."""
    of = [(at, p.value) for at, p in enumerate(feasible.premises) if p.column == column]
    kept = []
    for sides in product((-1, 0, 1), repeat=len(of)):
        low, high = feasible.low[:, column], feasible.high[:, column]
        for side, (_, value) in zip(sides, of, strict=True):
            if side >= 0:
                low = np.maximum(low, value + (APART if side else -APART))
            if side <= 0:
                high = np.minimum(high, value - (APART if side else -APART))
        if (low <= high).any():
            kept.append(tuple((at, side) for side, (at, _) in zip(sides, of, strict=True)))
    return kept


def _least(feasible: FeasibleActions, need: Floats, kink: Floats | None) -> Floats:
    """Return what each row has to gain, less what rounding may take, shape (n, m)."""
    aimed = np.where(np.isfinite(need), need, 0.0)
    least = [(aimed - ROUNDING * (1.0 + np.abs(aimed)))[:, None]]
    if feasible.b is not None:
        least.append(-feasible.b - 0.5 * TOLERANCE)
    least += [-premise.b - 0.5 * TOLERANCE for premise in feasible.premises]
    if kink is not None:
        least.append(np.zeros((len(need), 2)))
    return np.ascontiguousarray(np.hstack(least))
