r"""The cheapest action on an affine score, proven so, where the cost is a sum over features.

.. math:: \min_\delta \sum_j q_j\delta_j^2 + \max(0, \ell\cdot\delta)
          \quad\text{s.t.}\quad w\cdot\delta \ge need,\; A\delta + b \ge 0

over a box with whole steps, one-hot groups, blocks whose states are listed, and rows in force
only where a column takes a value. `_search` searches, `_bound` proves.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import product
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from countermove._types import Floats, Index, Mask
from countermove.errors import ParameterError
from countermove.recourse._feasible import TOLERANCE, FeasibleActions

if TYPE_CHECKING:
    from countermove.recourse.exact._branches import SharedTables

BUDGET = 400_000
"""Values tried per person (raising a bound counts for several); beyond, HiGHS takes over."""
ROUNDING = 1e-11
"""What the score may miss its need by, relative: searches aim further beyond the threshold."""
AT_ONCE = 4_000_000
"""Numbers held at once for the options of one-hot groups and listed states."""
NOWHERE = 1e18
"""The value of a premise that no action of a person makes true."""


class CheapestActions(NamedTuple):
    """The cheapest actions (NaN without), who provably has none, and who was left unsolved."""

    action: Floats
    proven_none: Mask
    unsolved: Mask


@dataclass(frozen=True)
class ListedStates:
    """Columns that only move together, to one of a person's own states."""

    columns: Index
    change: Floats  # (n, states, columns), standardised units
    allowed: Mask  # (n, states)


@dataclass(frozen=True)
class Premise:
    """Rows of A δ + b ≥ 0 that are in force only where a column takes a value."""

    column: int
    value: Floats  # (n,) the action that takes each person there; NaN: nothing does
    rows: tuple[int, ...]


def cheapest_exact(
    feasible: FeasibleActions,
    slope: Floats,
    need: Floats,
    weights: Floats,
    kink: Floats | None = None,
    premises: tuple[Premise, ...] = (),
    states: tuple[ListedStates, ...] = (),
) -> CheapestActions:
    r"""Return each person's cheapest action with :math:`w\cdot\delta \ge need`, exactly."""
    if (weights <= 0.0).any():
        raise ParameterError("every feature's square has to cost something")
    n, d = feasible.low.shape
    widest = max([1, *map(len, feasible.groups), *(len(part.columns) for part in states)])
    listed = sum(map(len, feasible.groups)) + sum(part.allowed.shape[1] for part in states)
    size = max(1, AT_ONCE // (d + listed * widest))
    parts = []
    for start in range(0, max(n, 1), size):
        who = np.arange(start, min(start + size, n))
        own = tuple(
            ListedStates(part.columns, part.change[who], part.allowed[who]) for part in states
        )
        told = tuple(replace(premise, value=premise.value[who]) for premise in premises)
        steep = np.broadcast_to(slope, (n, d))[who]
        parts.append(_part(feasible.rows(who), steep, need[who], weights, kink, told, own))
    return CheapestActions(*(np.concatenate(field) for field in zip(*parts, strict=True)))


def _part(
    feasible: FeasibleActions,
    slope: Floats,
    need: Floats,
    weights: Floats,
    kink: Floats | None,
    premises: tuple[Premise, ...],
    states: tuple[ListedStates, ...],
) -> CheapestActions:
    """Solve some of the people, all at once."""
    from countermove.recourse.exact._branches import PeopleTables
    from countermove.recourse.exact._search import NONE, OPEN, cheapest_for_everyone

    n = len(need)
    blocks = (*_one_hot(feasible), *states)
    touched = [feasible.used, *(part.columns for part in blocks)]
    used = np.unique(np.concatenate([*touched, [premise.column for premise in premises]]))
    used = used.astype(np.intp)
    shared = _shared(feasible, weights, kink, premises, blocks, used)
    change, allowed = _options(blocks, n, shared.columns.shape[1])
    values = np.column_stack([np.zeros((n, 0)), *(premise.value for premise in premises)])
    people = PeopleTables(
        np.ascontiguousarray(slope[:, used], np.float64),
        _least(feasible, need, kink),
        np.ascontiguousarray(feasible.low[:, used]),
        np.ascontiguousarray(feasible.high[:, used]),
        change,
        allowed,
        np.nan_to_num(values, nan=NOWHERE),
    )
    found, ended = np.zeros((n, len(used))), np.zeros(n, np.int64)
    cheapest_for_everyone(shared, people, BUDGET, found, ended)
    action = np.zeros(feasible.low.shape)
    action[:, used] = found
    action[ended > 0] = np.nan
    return CheapestActions(action, ended == NONE, ended == OPEN)


def _one_hot(feasible: FeasibleActions) -> tuple[ListedStates, ...]:
    """Return the one-hot groups as blocks: one state per category."""
    blocks = []
    for group, chosen, choices in zip(
        feasible.groups, feasible.chosen, feasible.choices, strict=True
    ):
        moves = [
            feasible.switch(group, chosen, np.full(len(chosen), category))
            for category in range(len(group))
        ]
        blocks.append(ListedStates(group, np.stack(moves, axis=1), choices))
    return tuple(blocks)


def _options(blocks: tuple[ListedStates, ...], n: int, width: int) -> tuple[Floats, Mask]:
    """Return the states of all blocks in a row, their columns padded with zeros."""
    change = [np.zeros((n, 0, width))]
    for part in blocks:
        room = width - part.change.shape[2]
        change.append(np.pad(part.change, ((0, 0), (0, 0), (0, room))))
    allowed = np.concatenate([np.zeros((n, 0), bool), *(part.allowed for part in blocks)], axis=1)
    return np.ascontiguousarray(np.concatenate(change, axis=1)), np.ascontiguousarray(allowed)


def _shared(
    feasible: FeasibleActions,
    weights: Floats,
    kink: Floats | None,
    premises: tuple[Premise, ...],
    blocks: tuple[ListedStates, ...],
    used: Index,
) -> SharedTables:
    """Return what all people share: rows, prices, blocks and branches."""
    from countermove.recourse.exact._branches import SharedTables

    place = {int(j): at for at, j in enumerate(used)}
    A = np.zeros((0, len(weights))) if feasible.A is None else feasible.A
    kinks = np.zeros((0, len(weights))) if kink is None else np.stack([-kink, kink])
    rows = np.vstack([np.zeros((1, len(weights))), A, kinks])[:, used]
    width = max([1, *(len(part.columns) for part in blocks)])
    columns = np.full((len(blocks), width), -1, np.int64)
    for at, part in enumerate(blocks):
        columns[at, : len(part.columns)] = [place[int(j)] for j in part.columns]
    blocked = np.isin(np.arange(len(used)), columns)
    first = np.cumsum([0, *(part.allowed.shape[1] for part in blocks)]).astype(np.int64)
    # A branch: which side of each premise, and which side of the kink, where the cost is smooth.
    sides = np.array(list(product((-1, 0, 1), repeat=len(premises))), np.int64)
    sides = sides.reshape(3 ** len(premises), len(premises))
    slants = 1 if kink is None else 2
    in_force = np.ones((len(sides) * slants, len(rows)), bool)
    linear = np.zeros((len(sides) * slants, len(used)))
    sides = np.repeat(sides, slants, axis=0)
    for at, premise in enumerate(premises):
        in_force[:, [1 + row for row in premise.rows]] &= (sides[:, at] == 0)[:, None]
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


def _least(feasible: FeasibleActions, need: Floats, kink: Floats | None) -> Floats:
    """Return what each row has to gain, less what rounding may take, shape (n, m)."""
    least = [(need - ROUNDING * (1.0 + np.abs(need)))[:, None]]
    if feasible.b is not None:
        least.append(-feasible.b - 0.5 * TOLERANCE)
    if kink is not None:
        least.append(np.zeros((len(need), 2)))
    return np.ascontiguousarray(np.hstack(least))
