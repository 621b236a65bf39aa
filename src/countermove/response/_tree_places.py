"""Places of one person before a sum of trees, compiled: the row, its sum, and a greedy way up."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from countermove._types import Floats, Index
from countermove.response.compilation import lean_part
from countermove.scores.trees import leaf_of


class Found(NamedTuple):
    """What was found for everybody."""

    action: Floats  # (n, d)
    cost: Floats
    raw: Floats  # the sum of leaves there
    bound: Floats  # no place at the target costs less; or no place has a higher sum
    status: Index
    nodes: Index


@lean_part
def raw_sum(trees, offset, row):  # type: ignore[no-untyped-def]
    """Return the sum of a row's leaves in the model's order."""
    total = offset
    for tree in range(trees.root.size):
        total += trees.value[leaf_of(trees, tree, row)]
    return total


@lean_part
def write_place(people, i, cells, at, row):  # type: ignore[no-untyped-def]
    """Write where a person stands in some cells and states."""
    p = people.numbers.size
    for j in range(row.size):
        row[j] = people.X[i, j]
    for b in range(p):
        row[people.numbers[b]] += cells.action[cells.first[b] + at[b]]
    for b in range(people.first.size - 1):
        for c in range(people.columns.shape[1]):
            j = people.columns[b, c]
            if j >= 0:
                row[j] += people.change[i, people.first[b] + at[p + b], c]


@lean_part
def keep(people, i, cells, at, cost, raw, found):  # type: ignore[no-untyped-def]
    """Write an action, what it costs and the sum it leads to."""
    p = people.numbers.size
    for j in range(found.action.shape[1]):
        found.action[i, j] = 0.0
    for b in range(p):
        found.action[i, people.numbers[b]] = cells.action[cells.first[b] + at[b]]
    for b in range(people.first.size - 1):
        for c in range(people.columns.shape[1]):
            j = people.columns[b, c]
            if j >= 0:
                found.action[i, j] = people.change[i, people.first[b] + at[p + b], c]
    found.cost[i], found.raw[i] = max(cost, 0.0), raw


@lean_part
def _best_step(trees, offset, people, i, cells, aim, now, at, row):  # type: ignore[no-untyped-def]
    """Return the block and state that gain most per cost, and the sum there; -1 without any."""
    ratio, block, state, gained = 0.0, -1, 0, now
    for b in range(cells.home.size):
        before, begin = at[b], cells.first[b]
        for k in range(cells.first[b + 1] - begin):
            extra = cells.cost[begin + k] - cells.cost[begin + before]
            if k == before or not extra < np.inf:
                continue
            at[b] = k
            write_place(people, i, cells, at, row)
            there = raw_sum(trees, offset, row)
            share = (min(there, aim) - now) / (max(extra, 0.0) + 1e-9)
            if share > ratio:
                ratio, block, state, gained = share, b, k, there
        at[b] = before
    return block, state, gained


@lean_part
def _give_back(trees, offset, people, i, cells, aim, now, at, row):  # type: ignore[no-untyped-def]
    """Go to cheaper cells, block by block, as long as the aim is kept; return the sum there."""
    for b in range(cells.home.size):
        begin = cells.first[b]
        for k in range(cells.first[b + 1] - begin):
            before = at[b]
            if cells.cost[begin + k] < cells.cost[begin + before]:
                at[b] = k
                write_place(people, i, cells, at, row)
                there = raw_sum(trees, offset, row)
                if there >= aim:
                    now = there
                else:
                    at[b] = before
    return now


@lean_part
def greedy(trees, offset, people, i, room, limit, found):  # type: ignore[no-untyped-def]
    """Keep the place that going up greedily leads to, where it is at the target and affordable."""
    cells, aim, at = room.cells, people.target[i], room.at
    for b in range(cells.home.size):
        at[b] = cells.home[b]
    write_place(people, i, cells, at, room.row)
    now = raw_sum(trees, offset, room.row)
    for _ in range(4 * cells.home.size):
        if now >= aim:
            break
        block, state, gained = _best_step(trees, offset, people, i, cells, aim, now, at, room.row)
        if block < 0:
            return
        at[block], now = state, gained
    if now < aim:
        return
    now = _give_back(trees, offset, people, i, cells, aim, now, at, room.row)
    cost = 0.0
    for b in range(cells.home.size):
        cost += cells.cost[cells.first[b] + at[b]]
    if cost <= limit:
        keep(people, i, cells, at, cost, now, found)
