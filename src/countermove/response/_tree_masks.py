"""Which leaves the parts of a search still meet, as bits, compiled.

A node of the search is a range of cells per number and a set of states per listed block. Bits
stand for leaves, the highest first, so that the most a node can reach is one look per tree.
"""

from __future__ import annotations

from typing import NamedTuple

import numba
import numpy as np

from countermove._types import Floats, Index, Mask
from countermove.response._tree_cells import Words, cheapest_state, local_leaf, lowest
from countermove.response.compilation import lean_part


class Masks(NamedTuple):
    """Which leaves are met in a cell or beyond it, a run of words per cell."""

    upto: Words  # leaves that begin at or before the cell; of a state, those it is in
    since: Words  # leaves that end at or after it
    value: Floats  # (64 words,) of the leaves
    low: Index  # (64 words, p)
    high: Index
    states: Words  # (64 words, q)
    first: Index  # (groups,) the first word of each tree that is left
    last: Index  # the last one
    within: Words  # its bits of the first word


class Pool(NamedTuple):
    """Nodes of the search and their heap."""

    low: Index  # (size, p)
    high: Index
    states: Words  # (size, q)
    base: Floats  # what the cheapest place in it costs, column by column
    cost: Floats  # the same where rows bind
    solved: Mask
    action: Floats  # (size, k) of that place, where rows bind
    key: Floats  # of the heap
    node: Index


@lean_part
def push(pool, n, key, node):  # type: ignore[no-untyped-def]
    """Add a node to a heap of n; return how many it holds."""
    at = n
    while at > 0:
        up = (at - 1) // 2
        if pool.key[up] <= key:
            break
        pool.key[at], pool.node[at] = pool.key[up], pool.node[up]
        at = up
    pool.key[at], pool.node[at] = key, node
    return n + 1


@lean_part
def pop(pool, n):  # type: ignore[no-untyped-def]
    """Take the first node off a heap of n; return how many it holds."""
    n -= 1
    key, node = pool.key[n], pool.node[n]
    at = 0
    while n > 0:
        child = 2 * at + 1
        if child >= n:
            break
        if child + 1 < n and pool.key[child + 1] < pool.key[child]:
            child += 1
        if pool.key[child] >= key:
            break
        pool.key[at], pool.node[at] = pool.key[child], pool.node[child]
        at = child
    pool.key[at], pool.node[at] = key, node
    return n


@lean_part
def _best_leaf(masks, g, words):  # type: ignore[no-untyped-def]
    """Return a tree's highest leaf that is left, -1 where none is."""
    w = masks.first[g]
    rest = words[w] & masks.within[g]
    while rest == 0:
        w += 1
        if w > masks.last[g]:
            return -1
        rest = words[w]
    return 64 * w + lowest(rest)


@lean_part
def most_of(masks, groups, words, const):  # type: ignore[no-untyped-def]
    """Return the highest sum of the leaves that are left, -inf where a tree has none."""
    total = const
    for g in range(groups):
        leaf = _best_leaf(masks, g, words)
        if leaf < 0:
            return -np.inf
        total += masks.value[leaf]
    return total


@numba.njit(inline="always")
def row_of(flat, cell, n_words):  # type: ignore[no-untyped-def]
    """Return the words of a cell; loops over a row of its own are vectorised."""
    return flat[cell * n_words : (cell + 1) * n_words]


@lean_part
def keep_range(masks, cells, block, low, high, n_words, words):  # type: ignore[no-untyped-def]
    """Keep the leaves that some cell of a range lies in."""
    since = row_of(masks.since, cells.first[block] + low, n_words)
    upto = row_of(masks.upto, cells.first[block] + high, n_words)
    for w in range(n_words):
        words[w] &= since[w] & upto[w]


@lean_part
def keep_states(masks, cells, block, states, n_words, words, scratch):  # type: ignore[no-untyped-def]
    """Keep the leaves that some of a listed block's states lies in."""
    for w in range(n_words):
        scratch[w] = np.uint64(0)
    rest = states
    while rest != 0:
        there = row_of(masks.upto, cells.first[block] + lowest(rest), n_words)
        rest &= rest - np.uint64(1)
        for w in range(n_words):
            scratch[w] |= there[w]
    for w in range(n_words):
        words[w] &= scratch[w]


@lean_part
def _order(leaves, first, n, order):  # type: ignore[no-untyped-def]
    """Write the places of a tree's leaves, the highest value first."""
    for k in range(n):
        at = k
        value = leaves.value[first + k]
        while at > 0 and leaves.value[first + order[at - 1]] < value:
            order[at] = order[at - 1]
            at -= 1
        order[at] = k


@lean_part
def _first_bit(bits, n):  # type: ignore[no-untyped-def]
    """Return where a tree of n leaves begins after so many bits: a small one keeps to one word."""
    return bits if bits % 64 + n <= 64 else 64 * ((bits + 63) // 64)


@lean_part
def keep_reached(grid, people, cells, leaves, n_trees, most, kept):  # type: ignore[no-untyped-def]
    """Drop leaves out of reach and trees of one leaf; return what those add, groups and words."""
    const, groups, bits, write = 0.0, 0, 0, 0
    for tree in range(n_trees):
        begin = write
        for leaf in range(leaves.first[tree], leaves.first[tree + 1]):
            if not local_leaf(grid, people, cells, leaves, leaf, most):
                continue
            leaves.value[write] = leaves.value[leaf]
            for b in range(leaves.low.shape[1]):
                leaves.low[write, b], leaves.high[write, b] = (
                    leaves.low[leaf, b],
                    leaves.high[leaf, b],
                )
            for b in range(leaves.states.shape[1]):
                leaves.states[write, b] = leaves.states[leaf, b]
            write += 1
        n = write - begin
        same = True
        for leaf in range(begin + 1, write):
            same &= leaves.value[leaf] == leaves.value[begin]
        if n == 0:
            return -np.inf, 0, 0
        if same:
            const += leaves.value[begin]
            write = begin
            continue
        kept[groups] = begin
        groups += 1
        kept[groups] = write
        bits = _first_bit(bits, n) + n
    return const, groups, (bits + 63) // 64


@lean_part
def _fill_leaf(cells, leaves, leaf, n_words, masks, at):  # type: ignore[no-untyped-def]
    """Write a leaf at its place among the bits."""
    p, w, bit = leaves.low.shape[1], at // 64, np.uint64(1) << np.uint64(at % 64)
    masks.value[at] = leaves.value[leaf]
    for b in range(p):
        low, high = leaves.low[leaf, b], leaves.high[leaf, b]
        masks.low[at, b], masks.high[at, b] = low, high
        masks.upto[(cells.first[b] + low) * n_words + w] |= bit
        masks.since[(cells.first[b] + high) * n_words + w] |= bit
    for b in range(leaves.states.shape[1]):
        masks.states[at, b] = rest = leaves.states[leaf, b]
        while rest != 0:
            masks.upto[(cells.first[p + b] + lowest(rest)) * n_words + w] |= bit
            rest &= rest - np.uint64(1)


@lean_part
def fill(cells, leaves, kept, groups, n_cells, n_words, masks, order):  # type: ignore[no-untyped-def]
    """Write the masks of every cell and state."""
    masks.upto[: n_cells * n_words] = np.uint64(0)
    masks.since[: n_cells * n_words] = np.uint64(0)
    bits = 0
    for g in range(groups):
        n = kept[g + 1] - kept[g]
        begin = _first_bit(bits, n)
        bits = begin + n
        masks.first[g], masks.last[g] = begin // 64, (bits - 1) // 64
        inside = ~np.uint64(0) if n >= 64 else (np.uint64(1) << np.uint64(n)) - np.uint64(1)
        masks.within[g] = inside << np.uint64(begin % 64)
        _order(leaves, kept[g], n, order)
        for k in range(n):
            _fill_leaf(cells, leaves, kept[g] + order[k], n_words, masks, begin + k)
    for b in range(leaves.low.shape[1]):
        for k in range(cells.first[b] + 1, cells.first[b + 1]):
            here, before = row_of(masks.upto, k, n_words), row_of(masks.upto, k - 1, n_words)
            for w in range(n_words):
                here[w] |= before[w]
        for k in range(cells.first[b + 1] - 2, cells.first[b] - 1, -1):
            here, after = row_of(masks.since, k, n_words), row_of(masks.since, k + 1, n_words)
            for w in range(n_words):
                here[w] |= after[w]


@lean_part
def node_words(masks, cells, pool, node, n_words, words, scratch):  # type: ignore[no-untyped-def]
    """Write the leaves that are met somewhere in a node."""
    p = pool.low.shape[1]
    for w in range(n_words):
        words[w] = ~np.uint64(0)
    for b in range(p):
        keep_range(masks, cells, b, pool.low[node, b], pool.high[node, b], n_words, words)
    for b in range(pool.states.shape[1]):
        keep_states(masks, cells, p + b, pool.states[node, b], n_words, words, scratch)


@lean_part
def cheapest_cells(cells, pool, node, at):  # type: ignore[no-untyped-def]
    """Write the cheapest cell and state of every block of a node."""
    p = pool.low.shape[1]
    for b in range(p):
        at[b] = min(max(cells.home[b], pool.low[node, b]), pool.high[node, b])
    for b in range(pool.states.shape[1]):
        at[p + b] = cheapest_state(cells, p + b, pool.states[node, b])


@lean_part
def widest_gap(masks, groups, words, here):  # type: ignore[no-untyped-def]
    """Return the sum at a place, and the leaf of the tree that promises most beyond it."""
    total, most, leaf = 0.0, 0.0, -1
    for g in range(groups):
        top, now = _best_leaf(masks, g, words), masks.value[_best_leaf(masks, g, here)]
        total += now
        if masks.value[top] - now > most:
            most, leaf = masks.value[top] - now, top
    return total, leaf


@lean_part
def cut_of(cells, masks, pool, node, at, leaf):  # type: ignore[no-untyped-def]
    """Return the block in which a leaf is most expensive to reach from a place."""
    p, block, most = pool.low.shape[1], -1, -np.inf
    for b in range(p):
        begin = cells.first[b]
        near = min(max(at[b], masks.low[leaf, b]), masks.high[leaf, b])
        if near != at[b]:
            extra = cells.cost[begin + near] - cells.cost[begin + at[b]]
            if extra > most:
                most, block = extra, b
    for b in range(pool.states.shape[1]):
        states = masks.states[leaf, b] & pool.states[node, b]
        if (states >> np.uint64(at[p + b])) & np.uint64(1) == np.uint64(0):
            begin = cells.first[p + b]
            near = cheapest_state(cells, p + b, states)
            extra = cells.cost[begin + near] - cells.cost[begin + at[p + b]]
            if extra > most:
                most, block = extra, p + b
    return block


@lean_part
def write_child(cells, masks, pool, node, child, at, leaf, block, side):  # type: ignore[no-untyped-def]
    """Write one side of a node; return what its cheapest place costs, infinite if it is empty."""
    p = pool.low.shape[1]
    for b in range(p):
        pool.low[child, b], pool.high[child, b] = pool.low[node, b], pool.high[node, b]
    for b in range(pool.states.shape[1]):
        pool.states[child, b] = pool.states[node, b]
    begin = cells.first[block]
    if block < p:
        then = min(max(cells.home[block], pool.low[node, block]), pool.high[node, block])
        low, high = masks.low[leaf, block], masks.high[leaf, block]
        cut = low if at[block] < low else high + 1
        if side == 0:
            pool.high[child, block] = min(pool.high[node, block], cut - 1)
        else:
            pool.low[child, block] = max(pool.low[node, block], cut)
        if pool.low[child, block] > pool.high[child, block]:
            return np.inf
        now = min(max(cells.home[block], pool.low[child, block]), pool.high[child, block])
    else:
        then = cheapest_state(cells, block, pool.states[node, block - p])
        inside = masks.states[leaf, block - p]
        states = pool.states[node, block - p] & (inside if side == 0 else ~inside)
        if states == 0:
            return np.inf
        pool.states[child, block - p] = states
        now = cheapest_state(cells, block, states)
    return pool.base[node] - cells.cost[begin + then] + cells.cost[begin + now]


@lean_part
def tighten(cells, masks, pool, child, most, n_words, words, scratch):  # type: ignore[no-untyped-def]
    """Drop the cells and states of a child that cost more than what is left to pay."""
    p, left = pool.low.shape[1], most - pool.base[child]
    for b in range(p):
        begin, low, high = cells.first[b], pool.low[child, b], pool.high[child, b]
        near = min(max(cells.home[b], low), high)
        limit = left + cells.cost[begin + near]
        while low < near and cells.cost[begin + low] > limit:
            low += 1
        while high > near and cells.cost[begin + high] > limit:
            high -= 1
        if low != pool.low[child, b] or high != pool.high[child, b]:
            pool.low[child, b], pool.high[child, b] = low, high
            keep_range(masks, cells, b, low, high, n_words, words)
    for b in range(pool.states.shape[1]):
        states, begin = pool.states[child, b], cells.first[p + b]
        limit = left + cells.cost[begin + cheapest_state(cells, p + b, states)]
        kept, rest = states, states
        while rest != 0:
            s = lowest(rest)
            rest &= rest - np.uint64(1)
            if cells.cost[begin + s] > limit:
                kept &= ~(np.uint64(1) << np.uint64(s))
        if kept != states:
            pool.states[child, b] = kept
            keep_states(masks, cells, p + b, kept, n_words, words, scratch)
