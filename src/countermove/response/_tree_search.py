"""The best-first search of one person after the other before a sum of trees, compiled.

A node whose cheapest place is at the target, popped in the order of cost, is the cheapest
crossing; nodes that cannot reach the target are dropped, and none left proves that there is none.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from countermove._types import Floats, Index
from countermove.response._tree_cells import (
    Cells,
    Leaves,
    Words,
    collect,
    listed_cells,
    number_cells,
    rank_of,
    reach_of,
)
from countermove.response._tree_masks import (
    Masks,
    Pool,
    cheapest_cells,
    cut_of,
    fill,
    keep_range,
    keep_reached,
    keep_states,
    most_of,
    node_words,
    pop,
    push,
    row_of,
    tighten,
    widest_gap,
    write_child,
)
from countermove.response._tree_places import greedy, keep, raw_sum, write_place
from countermove.response._tree_rows import locate, nearest, set_person
from countermove.response.compilation import jit, lean_part, part
from countermove.response.exact._search import FOUND
from countermove.response.exact._search import NONE as EMPTY
from countermove.scores.trees import code_of

PROVEN, NONE, OPEN = 0, 1, 2
"""How a search ended: at its optimum, with a proof that there is nothing, or out of nodes."""
CHEAPEST, HIGHEST = 0, 1
"""What is asked for: the cheapest place at the target, or the highest sum."""
ROUNDING = 1e-9
"""Sums of leaves added up in another order may differ by this; the model's own order decides."""
MOST_WORDS = 40_000_000
"""Words of masks held at once; who would need more is left unproven."""
DEPTH = 512


@lean_part
def _set_out(trees, grid, people, i, codes, start):  # type: ignore[no-untyped-def]
    """Write the codes of a person and the ranges of cells and states within their reach."""
    for thing in range(people.thing.size):
        codes[thing] = code_of(trees, thing, people.X[i])
    for b in range(people.numbers.size):
        j = people.numbers[b]
        if np.isnan(people.X[i, j]):
            start[0][b] = start[1][b] = 0
            continue
        low, high = reach_of(people, i, j)
        start[0][b] = rank_of(grid.splits, grid.first[j], grid.first[j + 1], low)
        start[1][b] = rank_of(grid.splits, grid.first[j], grid.first[j + 1], high)
    for b in range(people.first.size - 1):
        start[2][b] = np.uint64(0)
        for o in range(people.first[b], people.first[b + 1]):
            if people.allowed[i, o]:
                start[2][b] |= np.uint64(1) << np.uint64(o - people.first[b])


@lean_part
def _all_cells(grid, people, i, start, leaves, stamp, cells):  # type: ignore[no-untyped-def]
    """Write a person's cells; return how many, -1 where a number has none."""
    at, p = 0, people.numbers.size
    for b in range(p):
        cells.first[b] = at
        place = reach_of(people, i, people.numbers[b])
        at = number_cells(grid, people, i, b, start, place, leaves, stamp, cells, at)
        if at == cells.first[b]:
            return -1
    for b in range(people.first.size - 1):
        cells.first[p + b] = at
        at = listed_cells(people, i, b, cells, at)
        if cells.home[p + b] < 0:
            return -1
    cells.first[p + people.first.size - 1] = at
    return at


class Room(NamedTuple):
    """Arrays that every person's search writes over."""

    start: tuple[Index, Index, Words]
    stack: tuple[Index, Index, Index, Words]
    codes: Index
    cells: Cells
    kept: Index
    at: Index
    row: Floats
    words: tuple[Words, Words, Words, Words]


@lean_part
def _root(people, cells, pool):  # type: ignore[no-untyped-def]
    """Write the node of everything a person may do; return what they pay in any case."""
    p, total = people.numbers.size, 0.0
    for b in range(p):
        pool.low[0, b], pool.high[0, b] = 0, cells.first[b + 1] - cells.first[b] - 1
        total += cells.cost[cells.first[b] + cells.home[b]]
    for b in range(people.first.size - 1):
        begin = cells.first[p + b]
        states = np.uint64(0)
        for s in range(cells.first[p + b + 1] - begin):
            if cells.cost[begin + s] < np.inf:
                states |= np.uint64(1) << np.uint64(s)
        pool.states[0, b] = states
        total += cells.cost[begin + cells.home[p + b]]
    pool.base[0] = pool.cost[0] = total
    pool.solved[0] = False
    return total


@lean_part
def _look(masks, cells, pool, node, room, groups, n_words):  # type: ignore[no-untyped-def]
    """Look at a place in a node; return the sum there and the leaf that promises most."""
    words, here, scratch = room.words[0], room.words[1], room.words[2]
    node_words(masks, cells, pool, node, n_words, words, scratch)
    for w in range(n_words):
        here[w] = words[w]
    for b in range(cells.home.size):
        upto = row_of(masks.upto, cells.first[b] + room.at[b], n_words)
        if b < pool.low.shape[1]:
            since = row_of(masks.since, cells.first[b] + room.at[b], n_words)
            for w in range(n_words):
                here[w] &= since[w] & upto[w]
        else:
            for w in range(n_words):
                here[w] &= upto[w]
    return widest_gap(masks, groups, words, here)


@lean_part
def _split(masks, cells, pool, node, leaf, size, room, task, wanted):  # type: ignore[no-untyped-def]
    """Write the sides of a node that may reach what is wanted; return how many, and their tops."""
    groups, n_words, const, limit = task
    block = cut_of(cells, masks, pool, node, room.at, leaf)
    added, first, second = 0, 0.0, 0.0
    if block < 0:
        return added, first, second
    words, scratch, kept = room.words[0], room.words[2], room.words[3]
    p = pool.low.shape[1]
    for side in range(2):
        child = size + added
        cost = write_child(cells, masks, pool, node, child, room.at, leaf, block, side)
        if cost > limit:
            continue
        pool.base[child], pool.solved[child] = cost, False
        pool.cost[child] = max(cost, pool.cost[node])
        for w in range(n_words):
            kept[w] = words[w]
        if block < p:
            low, high = pool.low[child, block], pool.high[child, block]
            keep_range(masks, cells, block, low, high, n_words, kept)
        else:
            states = pool.states[child, block - p]
            keep_states(masks, cells, block, states, n_words, kept, scratch)
        if limit < np.inf and cost > pool.base[node]:
            tighten(cells, masks, pool, child, limit, n_words, kept, scratch)
        most = most_of(masks, groups, kept, const)
        if most < wanted:
            continue
        first, second = (most, second) if added == 0 else (first, most)
        added += 1
    return added, first, second


@part
def _place(rows, people, i, cells, pool, node, limit, room):  # type: ignore[no-untyped-def]
    """Find a node's cheapest place and its cells, the row where rows bind; say how that ended."""
    if not rows.on:
        cheapest_cells(cells, pool, node, room.at)
        return FOUND
    ended = np.int64(FOUND)
    if not pool.solved[node]:
        ended = nearest(rows, people, i, cells, pool, node, limit)
        pool.solved[node] = ended == FOUND
    if ended != FOUND:
        cheapest_cells(cells, pool, node, room.at)
        return ended
    locate(rows, people, i, cells, pool, node, room.at)
    for j in range(room.row.size):
        room.row[j] = people.X[i, j]
    for k in range(rows.used.size):
        room.row[rows.used[k]] += pool.action[node, k]
    return ended


@lean_part
def _stops(pool, done, size, budget, highest, top, i, found):  # type: ignore[no-untyped-def]
    """Return whether a search is over: nothing better is left, or its nodes are used up."""
    key = pool.key[0]
    if highest and done > 0 and -key <= top + 1e-12 * (1.0 + abs(top)):
        return True
    if done < budget and size + 2 <= pool.cost.size:
        return False
    found.status[i], found.bound[i] = OPEN, -key if highest else max(key, 0.0)
    return True


@part
def _judge(trees, offset, people, i, rows, room, pool, node, total, highest, top, found):  # type: ignore[no-untyped-def]
    """Keep a place at the target, or higher than any before; return its sum, -inf of others."""
    least = top if highest else people.target[i]
    if total < least - ROUNDING * (1.0 + abs(least)):
        return -np.inf
    if not rows.on:
        write_place(people, i, room.cells, room.at, room.row)
    exact = raw_sum(trees, offset, room.row)
    if exact <= top or (not highest and exact < least):
        return -np.inf
    _keep_node(people, i, rows, room.cells, pool, node, room, exact, found)
    return exact


@part
def _search(trees, offset, people, i, rows, room, masks, pool, task, mode, budget, found):  # type: ignore[no-untyped-def]
    """Search one person's nodes, best first; write what was found."""
    cells, (groups, n_words, const, limit) = room.cells, task
    highest, aim, top = mode == HIGHEST, people.target[i], -np.inf
    pool.key[0], pool.node[0], held, size, done = 0.0, 0, 1, 1, 0
    found.status[i], found.bound[i] = PROVEN if highest else NONE, np.inf
    while held > 0 and not _stops(pool, done, size, budget, highest, top, i, found):
        key, node = pool.key[0], pool.node[0]
        held = pop(pool, held)
        ended = _place(rows, people, i, cells, pool, node, limit, room)
        if ended == EMPTY:
            continue
        if not highest and held > 0 and pool.cost[node] > max(key, pool.key[0] + 1e-12):
            held = push(pool, held, pool.cost[node], node)
            continue
        done += 1
        total, leaf = _look(masks, cells, pool, node, room, groups, n_words)
        total += const
        reached = -np.inf
        if ended == FOUND:
            reached = _judge(
                trees, offset, people, i, rows, room, pool, node, total, highest, top, found
            )
        top = max(top, reached)
        if not highest and reached > -np.inf:
            found.status[i], found.bound[i] = PROVEN, found.cost[i]
            break
        if leaf < 0:
            if ended != FOUND:
                found.status[i], found.bound[i] = OPEN, -key if highest else max(key, 0.0)
                break
            continue
        wanted = top + 1e-12 * (1.0 + abs(top)) if highest else aim - ROUNDING * (1.0 + abs(aim))
        added, first, second = _split(masks, cells, pool, node, leaf, size, room, task, wanted)
        for k in range(added):
            most = first if k == 0 else second
            held = push(pool, held, -most if highest else pool.cost[size + k], size + k)
        size += added
    found.nodes[i] = done
    if highest and found.status[i] == PROVEN:
        found.bound[i] = top


@part
def _keep_node(people, i, rows, cells, pool, node, room, raw, found):  # type: ignore[no-untyped-def]
    """Write the action of a node's cheapest place."""
    keep(people, i, cells, room.at, pool.cost[node], raw, found)
    if rows.on:
        for j in range(found.action.shape[1]):
            found.action[i, j] = 0.0
        for k in range(rows.used.size):
            found.action[i, rows.used[k]] = pool.action[node, k]


@part
def _room(trees, grid, people):  # type: ignore[no-untyped-def]
    """Return room for one person after the other."""
    p, q, d = people.numbers.size, people.first.size - 1, people.X.shape[1]
    most = 0
    for b in range(p):
        j = people.numbers[b]
        most += grid.first[j + 1] - grid.first[j] + 1
    most += people.first[q]
    none = np.zeros(0, np.uint64)
    return Room(
        (np.zeros(p, np.int64), np.zeros(p, np.int64), np.zeros(q, np.uint64)),
        (
            np.zeros(DEPTH, np.int64),
            np.zeros((DEPTH, p), np.int64),
            np.zeros((DEPTH, p), np.int64),
            np.zeros((DEPTH, q), np.uint64),
        ),
        np.zeros(people.thing.size, np.int64),
        Cells(
            np.zeros(p + q + 1, np.int64),
            np.zeros(most),
            np.zeros(most),
            np.zeros(most),
            np.zeros(most),
            np.zeros(most),
            np.zeros(p + q, np.int64),
            np.zeros(grid.splits.size + 2 * d, np.int64),
        ),
        np.zeros(trees.root.size + 1, np.int64),
        np.zeros(p + q, np.int64),
        np.zeros(d),
        (none, none, none, none),
    )


@part
def _new_leaves(n, trees, grid, people):  # type: ignore[no-untyped-def]
    """Return room for n leaves."""
    p, q = people.numbers.size, people.first.size - 1
    return Leaves(
        np.zeros(n),
        np.zeros((n, p), np.int64),
        np.zeros((n, p), np.int64),
        np.zeros((n, q), np.uint64),
        np.zeros(trees.root.size + 1, np.int64),
        np.full(grid.splits.size, -1, np.int64),
    )


@part
def _new_masks(n_cells, n_words, trees, people):  # type: ignore[no-untyped-def]
    """Return room for the masks of so many cells and words."""
    p, q = people.numbers.size, people.first.size - 1
    return Masks(
        np.zeros(n_cells * n_words, np.uint64),
        np.zeros(n_cells * n_words, np.uint64),
        np.zeros(64 * n_words),
        np.zeros((64 * n_words, p), np.int64),
        np.zeros((64 * n_words, p), np.int64),
        np.zeros((64 * n_words, q), np.uint64),
        np.zeros(trees.root.size, np.int64),
        np.zeros(trees.root.size, np.int64),
        np.zeros(trees.root.size, np.uint64),
    )


@part
def _new_pool(size, people, rows):  # type: ignore[no-untyped-def]
    """Return room for so many nodes."""
    p, q = people.numbers.size, people.first.size - 1
    return Pool(
        np.zeros((size, p), np.int64),
        np.zeros((size, p), np.int64),
        np.zeros((size, q), np.uint64),
        np.zeros(size),
        np.zeros(size),
        np.zeros(size, np.bool_),
        np.zeros((size if rows.on else 1, rows.used.size)),
        np.zeros(size),
        np.zeros(size, np.int64),
    )


@jit
def search_everyone(trees, offset, grid, people, rows, mode, budget, found):  # type: ignore[no-untyped-def]
    """Write everybody's cheapest place at the target, or their highest sum."""
    room = _room(trees, grid, people)
    leaves = _new_leaves(64 * trees.root.size, trees, grid, people)
    masks = _new_masks(1, 1, trees, people)
    pool = _new_pool(2 * budget + 8, people, rows)
    words = np.zeros((4, 1), np.uint64)
    order = np.zeros(64 * trees.root.size, np.int64)
    for i in range(people.X.shape[0]):
        _set_out(trees, grid, people, i, room.codes, room.start)
        n = collect(trees, grid, people, i, room.codes, room.start, room.stack, leaves, i)
        while n < 0:
            leaves = _new_leaves(2 * leaves.value.size, trees, grid, people)
            n = collect(trees, grid, people, i, room.codes, room.start, room.stack, leaves, i)
        n_cells = _all_cells(grid, people, i, room.start, leaves, i, room.cells)
        found.status[i] = NONE
        if n_cells < 0:
            continue
        if rows.on:
            set_person(rows, i)
        limit = max(_root(people, room.cells, pool), 0.0) + people.most[i]
        slack = limit + 1e-12 * (1.0 + abs(limit))
        const, groups, n_words = keep_reached(
            grid, people, room.cells, leaves, trees.root.size, slack, room.kept
        )
        if max(1, n_cells) * n_words > MOST_WORDS:
            found.status[i], found.bound[i] = OPEN, np.inf if mode == HIGHEST else 0.0
        else:
            if n_cells * n_words > masks.upto.size or 64 * n_words > masks.value.size:
                masks = _new_masks(2 * n_cells, 2 * n_words, trees, people)
            if n_words > words.shape[1]:
                words = np.zeros((4, 2 * n_words), np.uint64)
            if n > order.size:
                order = np.zeros(n, np.int64)
            fill(room.cells, leaves, room.kept, groups, n_cells, n_words, masks, order)
            mine = Room(
                room.start, room.stack, room.codes, room.cells, room.kept, room.at, room.row,
                (words[0], words[1], words[2], words[3]),
            )  # fmt: skip
            task = (groups, n_words, const + offset, limit)
            _search(trees, offset, people, i, rows, mine, masks, pool, task, mode, budget, found)
        if mode == CHEAPEST and found.status[i] == OPEN and not rows.on:
            greedy(trees, offset, people, i, room, limit, found)
