"""The cheapest place in a node of a search where linear rows or premises bind, compiled.

Rows tie columns together, so the cheapest place is no longer found column by column: the search
for the cheapest action (`countermove.response.exact`) finds it, on the node's box.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from countermove._types import Floats, Index
from countermove.response._tree_cells import lowest
from countermove.response.compilation import part
from countermove.response.exact._branches import PeopleTables, SharedTables
from countermove.response.exact._search import FOUND, cheapest_of_person

VALUES = 20_000
"""Values tried per node."""


class RowTables(NamedTuple):
    """What the search for the cheapest action reads: of all people, and of the one under way."""

    on: bool
    shared: SharedTables
    everyone: PeopleTables
    one: PeopleTables
    used: Index  # (k,) columns
    place: Index  # (d,) of a column among them, -1 where it is not
    block: Index  # (q,) of a listed block among those of the rows
    kink: Floats  # (k,)


@part
def set_person(rows, i):  # type: ignore[no-untyped-def]
    """Write one person's tables."""
    one, all_ = rows.one, rows.everyone
    one.low[0], one.high[0], one.least[0] = all_.low[i], all_.high[i], all_.least[i]
    one.change[0], one.allowed[0], one.value[0] = all_.change[i], all_.allowed[i], all_.value[i]


@part
def nearest(rows, people, i, cells, pool, node, limit):  # type: ignore[no-untyped-def]
    """Write the cheapest action in a node and what it costs; return how the search for it ended."""
    one, p = rows.one, people.numbers.size
    for b in range(p):
        k, begin = rows.place[people.numbers[b]], cells.first[b]
        one.low[0, k] = cells.lower[begin + pool.low[node, b]]
        one.high[0, k] = cells.upper[begin + pool.high[node, b]]
    for b in range(people.first.size - 1):
        first = rows.shared.first[rows.block[b]]
        for s in range(people.first[b + 1] - people.first[b]):
            inside = (pool.states[node, b] >> np.uint64(s)) & np.uint64(1) == np.uint64(1)
            one.allowed[0, first + s] = inside
    one.most[0] = limit * (1.0 + 1e-9) + 1e-9
    ended = cheapest_of_person(rows.shared, one, 0, VALUES, pool.action[node])
    if ended == FOUND:
        total, bent = 0.0, 0.0
        for k in range(rows.used.size):
            move = pool.action[node, k]
            total += rows.shared.square[k] * move * move
            bent += rows.kink[k] * move
        pool.cost[node] = max(pool.cost[node], total + max(bent, 0.0))
    return ended


@part
def locate(rows, people, i, cells, pool, node, at):  # type: ignore[no-untyped-def]
    """Write the cells and states in which a node's action ends."""
    p = people.numbers.size
    for b in range(p):
        j = people.numbers[b]
        there = people.X[i, j] + pool.action[node, rows.place[j]]
        at[b] = pool.low[node, b]
        while at[b] < pool.high[node, b] and there > cells.upto[cells.first[b] + at[b]]:
            at[b] += 1
    for b in range(people.first.size - 1):
        rest, nearest_, least = pool.states[node, b], 0, np.inf
        while rest != 0:
            s = lowest(rest)
            rest &= rest - np.uint64(1)
            away = 0.0
            for c in range(people.columns.shape[1]):
                j = people.columns[b, c]
                if j >= 0:
                    change = people.change[i, people.first[b] + s, c]
                    away += abs(change - pool.action[node, rows.place[j]])
            if away < least:
                nearest_, least = s, away
        at[p + b] = nearest_
