"""One person before a sum of trees, compiled: the cells they can reach and the leaves in them.

A number that moves is cut into cells by the splits met on the way; a listed block has its states.
Every tree keeps the leaves that some reachable combination falls into.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic
from numpy.typing import NDArray

from countermove._types import Floats, Index, Mask
from countermove.response.compilation import lean_part
from countermove.scores.trees import in_set

SLACK = 1e-9
"""How far beyond a split people go, in standard deviations and as a share of where it is."""
FAR = 1e15
"""Nobody goes further, in standard deviations or steps: splits out there tell missing numbers."""
SIGNED, ABSOLUTE, SQUARED = 0, 1, 2
"""What a move costs in one column: w·δ (the sum from 0 up), w·|δ| or w·δ²."""
Words = NDArray[np.uint64]


@intrinsic  # type: ignore[untyped-decorator]
def lowest(typingctx: Any, word: Any) -> Any:
    """Return the place of the lowest bit that is set."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.cttz(args[0], cgutils.false_bit)

    return types.int64(types.uint64), generate


class TreePeople(NamedTuple):
    """Everybody's actions; blocks are the numbers that move, then the listed ones."""

    X: Floats  # (n, d)
    low: Floats  # (n, d) of the action
    high: Floats
    block: Index  # (d,) the block of a column, -1 where nobody moves it
    numbers: Index  # (p,) the column of each number
    step: Floats  # (d,)
    weight: Floats  # (d,)
    shape: int
    columns: Index  # (q, width) of listed blocks, padded with -1
    first: Index  # (q + 1,) where each block's options start
    change: Floats  # (n, o, width)
    allowed: Mask  # (n, o)
    code: Index  # (n, o) what a coded thing is in a state
    thing: Index  # (things,) the listed block of a coded thing, -1 where nobody moves it
    target: Floats  # (n,) of the sum of leaves
    most: Floats  # (n,) what nobody pays more than


class SplitGrid(NamedTuple):
    """All splits of every column, sorted."""

    splits: Floats
    first: Index  # (d + 1,)
    rank: Index  # (nodes,) of each node's split in its column


class Leaves(NamedTuple):
    """Leaves met, tree by tree; ``seen`` marks splits of a grid by the person who met them."""

    value: Floats
    low: Index  # (leaves, p) first and last cell of each number
    high: Index
    states: Words  # (leaves, q)
    first: Index  # (trees + 1,)
    seen: Index  # (splits,)


class Cells(NamedTuple):
    """A person's cells and states, block after block."""

    first: Index  # (p + q + 1,)
    cost: Floats
    action: Floats  # of numbers: the cheapest, and both ends
    lower: Floats
    upper: Floats
    upto: Floats  # the last place
    home: Index  # (p + q,) the cheapest
    local: Index  # (splits + 2 d,) the cell of a person in which a column's cell lies


@lean_part
def rank_of(splits, first, last, x):  # type: ignore[no-untyped-def]
    """Return how many splits of a column lie below x."""
    low, high = first, last
    while low < high:
        middle = (low + high) // 2
        if splits[middle] < x:
            low = middle + 1
        else:
            high = middle
    return low - first


@lean_part
def price(people, j, move):  # type: ignore[no-untyped-def]
    """Return what a move in one column costs."""
    if people.shape == SQUARED:
        return people.weight[j] * move * move
    if people.shape == ABSOLUTE:
        return people.weight[j] * abs(move)
    return people.weight[j] * move


@lean_part
def reach_of(people, i, j):  # type: ignore[no-untyped-def]
    """Return the lowest and highest place of one number, by bounds and by what it costs."""
    low, high, w = people.low[i, j], people.high[i, j], people.weight[j]
    if people.shape != SIGNED and w > 0.0 and people.most[i] < np.inf:
        # Who has to move pays for that in any case.
        forced = max(0.0, max(low, -high))
        if people.shape == SQUARED:
            far = np.sqrt(forced * forced + people.most[i] / w)
        else:
            far = forced + people.most[i] / w
        far *= 1.0 + 1e-12
        low, high = max(low, -far), min(high, far)
    return people.X[i, j] + low, people.X[i, j] + high


@lean_part
def _left_states(trees, people, i, node, states):  # type: ignore[no-untyped-def]
    """Return which of a listed block's states a node sends to the left."""
    left = np.uint64(0)
    by_code = trees.words[node] >= 0
    j = trees.feature[node]
    block = (people.thing[j] if by_code else people.block[j]) - people.numbers.size
    column = 0
    while not by_code and people.columns[block, column] != j:
        column += 1
    rest = states
    while rest != 0:
        s = lowest(rest)
        rest &= rest - np.uint64(1)
        o = people.first[block] + s
        if by_code:
            code = people.code[i, o]
            goes = trees.missing_left[node] if code < 0 else in_set(trees, node, code)
        else:
            goes = people.X[i, j] + people.change[i, o, column] <= trees.split[node]
        if goes:
            left |= np.uint64(1) << np.uint64(s)
    return left


@lean_part
def _fixed_side(trees, row, codes, node):  # type: ignore[no-untyped-def]
    """Return whether a row goes left at a node that nobody can move."""
    if trees.words[node] >= 0:
        code = codes[trees.feature[node]]
        return trees.missing_left[node] if code < 0 else in_set(trees, node, code)
    x = row[trees.feature[node]]
    return trees.missing_left[node] if np.isnan(x) else x <= trees.split[node]


@lean_part
def block_at(trees, people, i, node):  # type: ignore[no-untyped-def]
    """Return the block a node asks about, -1 where this person cannot move it."""
    j = trees.feature[node]
    if trees.words[node] >= 0:
        return people.thing[j]
    return -1 if np.isnan(people.X[i, j]) else people.block[j]


@lean_part
def _copy_start(start, stack):  # type: ignore[no-untyped-def]
    """Begin the stack with the ranges within a person's reach."""
    _, lows, highs, sets = stack
    for b in range(lows.shape[1]):
        lows[0, b], highs[0, b] = start[0][b], start[1][b]
    for b in range(sets.shape[1]):
        sets[0, b] = start[2][b]


@lean_part
def collect(trees, grid, people, i, codes, start, stack, leaves, stamp):  # type: ignore[no-untyped-def]
    """Write the leaves a person can reach, tree by tree; return how many, -1 without room."""
    nodes, lows, highs, sets = stack
    p, total = people.numbers.size, 0
    for tree in range(trees.root.size):
        leaves.first[tree] = total
        depth, nodes[0] = 0, trees.root[tree]
        _copy_start(start, stack)
        while depth >= 0:
            node = nodes[depth]
            if trees.left[node] < 0:
                if total == leaves.value.size:
                    return -1
                leaves.value[total] = trees.value[node]
                for b in range(p):
                    leaves.low[total, b], leaves.high[total, b] = lows[depth, b], highs[depth, b]
                for b in range(sets.shape[1]):
                    leaves.states[total, b] = sets[depth, b]
                total += 1
                depth -= 1
                continue
            block = block_at(trees, people, i, node)
            if block < 0:
                goes = _fixed_side(trees, people.X[i], codes, node)
                nodes[depth] = trees.left[node] if goes else trees.right[node]
            elif block < p:
                depth = _number(trees, grid, node, block, depth, stack, leaves.seen, stamp)
            else:
                depth = _states(trees, people, i, node, block - p, depth, stack)
    leaves.first[trees.root.size] = total
    return total


@lean_part
def _copy_level(depth, stack):  # type: ignore[no-untyped-def]
    """Copy a level of the stack onto the next."""
    _, lows, highs, sets = stack
    for b in range(lows.shape[1]):
        lows[depth + 1, b], highs[depth + 1, b] = lows[depth, b], highs[depth, b]
    for b in range(sets.shape[1]):
        sets[depth + 1, b] = sets[depth, b]


@lean_part
def _number(trees, grid, node, block, depth, stack, seen, stamp):  # type: ignore[no-untyped-def]
    """Go down both sides of a split that some cell lies on; return the new depth."""
    nodes, lows, highs, _ = stack
    r = grid.rank[node]
    if highs[depth, block] <= r:
        nodes[depth] = trees.left[node]
    elif lows[depth, block] > r:
        nodes[depth] = trees.right[node]
    else:
        seen[grid.first[trees.feature[node]] + r] = stamp
        _copy_level(depth, stack)
        nodes[depth], nodes[depth + 1] = trees.right[node], trees.left[node]
        lows[depth, block], highs[depth + 1, block] = r + 1, r
        depth += 1
    return depth


@lean_part
def _states(trees, people, i, node, listed, depth, stack):  # type: ignore[no-untyped-def]
    """Go down both sides of a split that some state lies on; return the new depth."""
    nodes, _, _, sets = stack
    here = sets[depth, listed]
    left = _left_states(trees, people, i, node, here)
    if left == here:
        nodes[depth] = trees.left[node]
    elif left == 0:
        nodes[depth] = trees.right[node]
    else:
        _copy_level(depth, stack)
        nodes[depth], nodes[depth + 1] = trees.right[node], trees.left[node]
        sets[depth, listed], sets[depth + 1, listed] = here & ~left, left
        depth += 1
    return depth


@lean_part
def _whole_ends(x, step, above, upto, low, high):  # type: ignore[no-untyped-def]
    """Return the first and last whole step into the cell ``above < x <= upto``."""
    first = np.ceil((max(low, above) - x) / step - 1e-9)
    while abs(first) < FAR and x + first * step <= above:
        first += 1.0
    last = np.floor((min(high, upto) - x) / step + 1e-9)
    while abs(last) < FAR and x + last * step > upto:
        last -= 1.0
    return first * step, last * step


@lean_part
def cell_ends(people, i, j, above, upto, place):  # type: ignore[no-untyped-def]
    """Return the least and greatest move into ``above < x <= upto``, the first greater if none."""
    x, (low, high) = people.X[i, j], place
    if np.isnan(x):
        return 0.0, 0.0
    if upto <= -FAR or above >= FAR:
        return 1.0, 0.0
    if people.step[j] > 0.0:
        return _whole_ends(x, people.step[j], above, upto, low, high)
    room = 0.25 * (min(high, upto) - max(low, above))
    lower, upper = low, high
    if above >= low:
        lower = above + min(SLACK * (1.0 + abs(above)), room)
    if upto <= high:
        upper = upto - min(SLACK * (1.0 + abs(upto)), room)
    if not (lower > above and upper <= upto):
        return 1.0, 0.0
    if low <= x <= high and above < x <= upto:  # nearer to a split than anybody else goes
        lower, upper = min(lower, x), max(upper, x)
    return lower - x, upper - x


@lean_part
def _cheapest_move(people, j, lower, upper):  # type: ignore[no-untyped-def]
    """Return the cheapest move between two ends."""
    if people.shape == SIGNED and people.weight[j] != 0.0:
        return lower if people.weight[j] > 0.0 else upper
    return min(max(0.0, lower), upper)


@lean_part
def number_cells(grid, people, i, b, start, place, leaves, stamp, cells, at):  # type: ignore[no-untyped-def]
    """Write the cells of one number that hold an allowed place; return where they end."""
    j = people.numbers[b]
    base = grid.first[j]
    above, begin = -np.inf, at
    for r in range(start[0][b], start[1][b] + 1):
        cells.local[base + 2 * j + r] = at
        if r < start[1][b] and leaves.seen[base + r] != stamp:
            continue
        upto = grid.splits[base + r] if r < start[1][b] else np.inf
        lower, upper = cell_ends(people, i, j, above, upto, place)
        above = upto
        if lower <= upper:
            move = _cheapest_move(people, j, lower, upper)
            cells.cost[at], cells.action[at] = price(people, j, move), move
            cells.lower[at], cells.upper[at], cells.upto[at] = lower, upper, upto
            at += 1
    cells.local[base + 2 * j + start[1][b] + 1] = at
    home = begin
    for k in range(begin, at):
        if cells.cost[k] < cells.cost[home]:
            home = k
    cells.home[b] = home - begin
    return at


@lean_part
def listed_cells(people, i, listed, cells, at):  # type: ignore[no-untyped-def]
    """Write what a listed block's states cost; return where they end."""
    begin = at
    cheapest = -1
    for o in range(people.first[listed], people.first[listed + 1]):
        total = 0.0
        for c in range(people.columns.shape[1]):
            j = people.columns[listed, c]
            if j >= 0:
                total += price(people, j, people.change[i, o, c])
        cells.cost[at] = total if people.allowed[i, o] else np.inf
        if people.allowed[i, o] and (cheapest < 0 or total < cells.cost[cheapest]):
            cheapest = at
        at += 1
    cells.home[people.numbers.size + listed] = cheapest - begin
    return at


@lean_part
def local_leaf(grid, people, cells, leaves, leaf, most):  # type: ignore[no-untyped-def]
    """Turn a leaf's cells into the person's; return whether it can be reached within ``most``."""
    total, p = 0.0, people.numbers.size
    for b in range(p):
        begin, j = cells.first[b], people.numbers[b]
        base = grid.first[j] + 2 * j
        low = cells.local[base + leaves.low[leaf, b]] - begin
        high = cells.local[base + leaves.high[leaf, b] + 1] - 1 - begin
        if low > high:
            return False
        leaves.low[leaf, b], leaves.high[leaf, b] = low, high
        total += cells.cost[begin + min(max(cells.home[b], low), high)]
    for b in range(people.first.size - 1):
        total += cells.cost[
            cells.first[p + b] + cheapest_state(cells, p + b, leaves.states[leaf, b])
        ]
    return total <= most


@lean_part
def cheapest_state(cells, block, states):  # type: ignore[no-untyped-def]
    """Return the cheapest of some states."""
    home = cells.home[block]
    if (states >> np.uint64(home)) & np.uint64(1) == np.uint64(1):
        return home
    begin = cells.first[block]
    found = lowest(states)
    rest = states & (states - np.uint64(1))
    while rest != 0:
        s = lowest(rest)
        rest &= rest - np.uint64(1)
        if cells.cost[begin + s] < cells.cost[begin + found]:
            found = s
    return found
