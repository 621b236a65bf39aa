r"""People before a sum of trees: the cheapest crossing and the highest score, with proofs.

.. math:: \min_\delta c(\delta) \quad\text{s.t.}\quad \sum_t v_t(x+\delta) \ge target

over the one feasible set (`countermove.people.feasible`). Scores are step functions, so the
search is over the cells that splits cut the columns into; it is exact up to ``SLACK``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from countermove._types import Floats, Index, Mask
from countermove.errors import ParameterError
from countermove.execution import pieces
from countermove.people.feasible import FeasibleActions, ListedStates
from countermove.scores.trees import TreeScore

if TYPE_CHECKING:
    from countermove.people import Cost
    from countermove.people.costs import CanonicalCost
    from countermove.response._tree_cells import SplitGrid, TreePeople
    from countermove.response._tree_rows import RowTables

BUDGET = 20_000
"""Nodes searched per person; beyond, what is known is returned without proof."""
STATES = 64
"""Most states of one listed block."""
OF_EACH = ("X", "low", "high", "change", "allowed", "code", "target", "most")
"""What tables of people have a row of for each."""


@dataclass(frozen=True)
class TreeMoves:
    """What a search found for n people."""

    action: Floats  # (n, d), NaN without one
    cost: Floats  # (n,), infinite without an action
    score: Floats  # (n,) there; of who stays, now
    proven: Mask  # the optimum, or that there is none
    bound: Floats  # what no crossing costs less than, or the score nobody exceeds
    nodes: Index  # of the search


def cheapest_crossing(
    score: TreeScore,
    X: Floats,
    feasible: FeasibleActions,
    cost: Cost,
    target: float | Floats = 0.0,
    most: float | Floats = np.inf,
    budget: int = BUDGET,
) -> TreeMoves:
    """Return everybody's cheapest action with a score of at least ``target``.

    Parameters
    ----------
    score, X, feasible, cost
        The rule, people (n, d) in its units and what they may do at what cost.
    target
        The score to reach, of all or of each.
    most
        What nobody pays beyond what they have to in any case.
    budget
        Nodes searched per person.
    """
    return _searched(score, X, feasible, cost, target, most, budget, highest=False)


def highest_score(
    score: TreeScore,
    X: Floats,
    feasible: FeasibleActions,
    cost: Cost | None = None,
    most: float | Floats = np.inf,
    budget: int = BUDGET,
) -> TreeMoves:
    """Return the highest score everybody can reach, for at most ``most`` where it costs something.

    The parameters are those of `cheapest_crossing`.
    """
    return _searched(score, X, feasible, cost, np.inf, most, budget, highest=True)


def priced_by_cell(cost: Cost | None, n_features: int) -> bool:
    """Return whether a cost is one of those whose cheapest place in a cell is known by column."""
    shape = None if cost is None else cost.canonical(n_features)
    return cost is None or (shape is not None and shape.matrix is None)


def _mixed(shape: CanonicalCost) -> bool:
    return shape.weights is not None and shape.kink is not None


def _searched(
    score: TreeScore,
    X: Floats,
    feasible: FeasibleActions,
    cost: Cost | None,
    target: float | Floats,
    most: float | Floats,
    budget: int,
    highest: bool,
) -> TreeMoves:
    """Search for everybody, cheapest or highest."""
    from countermove.response._tree_places import Found
    from countermove.response._tree_search import CHEAPEST, HIGHEST, OPEN, search_everyone

    n, d = X.shape
    aims = np.broadcast_to(np.asarray(target, np.float64), (n,))
    known = {aim: score.raw_target(float(aim)) for aim in np.unique(aims)}
    raw = np.array([known[aim] for aim in aims]) if not highest else np.full(n, np.inf)
    limits = np.broadcast_to(most, (n,)).astype(np.float64)
    people, listed = _people(score, X, feasible, cost, raw, limits)
    rows = _row_tables(feasible, listed, cost, d)
    found = Found(
        np.full((n, d), np.nan),
        np.full(n, np.inf),
        np.full(n, -np.inf),
        np.full(n, np.inf),
        np.zeros(n, np.int64),
        np.zeros(n, np.int64),
    )
    mode = HIGHEST if highest else CHEAPEST
    trees = (score.arrays, score.ensemble.offset, grid_of(score))
    for who in pieces(n):
        some = people._replace(**{name: getattr(people, name)[who] for name in OF_EACH})
        own = rows._replace(everyone=type(rows.everyone)._make(p[who] for p in rows.everyone))
        search_everyone(*trees, some, own, mode, budget, Found._make(p[who] for p in found))
    reached = np.where(np.isneginf(found.raw), score.raw(X), found.raw)
    bound = score.of_raw(found.bound) if highest else found.bound
    return TreeMoves(
        found.action, found.cost, score.of_raw(reached), found.status != OPEN, bound, found.nodes
    )


def grid_of(score: TreeScore) -> SplitGrid:
    """Return all splits of every column, sorted, and the rank of each node's; made once."""
    kept: SplitGrid | None = getattr(score, "_grid", None)
    if kept is not None:
        return kept
    from countermove.response._tree_cells import SplitGrid

    trees = score.arrays
    number = np.flatnonzero((trees.left >= 0) & (trees.words < 0))
    splits, first = [], [0]
    rank = np.zeros(len(trees.left), np.int64)
    for j in range(score.n_features):
        nodes = number[trees.feature[number] == j]
        grid, where = np.unique(trees.split[nodes], return_inverse=True)
        rank[nodes] = where
        splits.append(grid)
        first.append(first[-1] + len(grid))
    made = SplitGrid(np.concatenate(splits), np.array(first, np.int64), rank)
    object.__setattr__(score, "_grid", made)
    return made


def _people(
    score: TreeScore,
    X: Floats,
    feasible: FeasibleActions,
    cost: Cost | None,
    target: Floats,
    most: Floats,
) -> tuple[TreePeople, list[ListedStates]]:
    """Return everybody's actions as the kernels read them, and the listed blocks among them."""
    from countermove.response._tree_cells import SIGNED, TreePeople

    n, d = X.shape
    shape, weight = _prices(cost, d)
    used = score.ensemble.used()
    if shape == SIGNED:  # a move the trees do not see may pay for one they do
        used = used | (weight != 0.0)
    low, high = _covering(score, X, feasible)
    listed = [part for part in feasible.listed if _matters(part, used)]
    listed += _coded_columns(score, X, low, high, feasible)
    held = {int(j) for part in listed for j in part.columns}
    moves = ((low != 0.0) | (high != 0.0)).any(axis=0)
    forced = ((low > 0.0) | (high < 0.0)).any(axis=0)
    numbers = [j for j in np.flatnonzero(moves & (used | forced)).tolist() if j not in held]
    block = np.full(d, -1, np.int64)
    block[numbers] = np.arange(len(numbers))
    width = max([1, *(len(part.columns) for part in listed)])
    columns = np.full((len(listed), width), -1, np.int64)
    for at, part in enumerate(listed):
        columns[at, : len(part.columns)] = part.columns
        block[part.columns] = len(numbers) + at
    first = np.cumsum([0, *(part.allowed.shape[1] for part in listed)]).astype(np.int64)
    change = np.zeros((n, first[-1], width))
    allowed, code = np.zeros((n, first[-1]), bool), np.zeros((n, first[-1]), np.int64)
    for at, part in enumerate(listed):
        here = slice(first[at], first[at + 1])
        change[:, here, : len(part.columns)] = part.change
        allowed[:, here] = part.allowed
    thing = _things(score, X, listed, block, len(numbers), first, code)
    made = TreePeople(
        np.ascontiguousarray(X), np.ascontiguousarray(low), np.ascontiguousarray(high), block,
        np.array(numbers, np.int64), np.ascontiguousarray(feasible.step), weight, shape, columns,
        first, change, allowed, code, thing, np.ascontiguousarray(target),
        np.ascontiguousarray(most),
    )  # fmt: skip
    return made, listed


def _row_tables(
    feasible: FeasibleActions, listed: list[ListedStates], cost: Cost | None, d: int
) -> RowTables:
    """Return what the search for the cheapest place reads where rows or a kink tie columns."""
    from countermove.response._tree_rows import RowTables
    from countermove.response.exact.cheapest import exact_tables

    shape = None if cost is None else cost.canonical(d)
    mixed = shape is not None and _mixed(shape)
    on = mixed or feasible.A is not None or bool(feasible.premises)
    some = feasible if on else feasible.rows(np.zeros(0, np.intp))
    weights = np.ones(d)
    if shape is not None and shape.weights is not None:
        weights = np.asarray(shape.weights.detach().numpy(), np.float64)
    elif on and shape is not None:
        raise ParameterError(
            f"{type(cost).__name__} costs nothing in some directions; with relations between "
            "columns trees are searched under costs with a quadratic part"
        )
    kink = (
        shape.kink.detach().numpy()
        if shape is not None and mixed and shape.kink is not None
        else None
    )
    need = np.full(len(some.low), -np.inf)
    zeros = np.zeros((len(some.low), d))
    shared, everyone = exact_tables(
        some, zeros, need, weights, kink, zeros, np.full(len(need), np.inf)
    )
    one = type(everyone)(*(np.zeros((1, *part.shape[1:]), part.dtype) for part in everyone))
    used, place = some.used, np.full(d, -1, np.int64)
    place[used] = np.arange(len(used))
    known = [part.columns.tolist() for part in feasible.listed]
    if on and any(part.columns.tolist() not in known for part in listed):
        raise ParameterError(
            "columns of codes that people move cannot be tied to others by relations; list them "
            "as immutable, or give the model one-hot columns"
        )
    block = [known.index(part.columns.tolist()) if on else 0 for part in listed]
    bend = np.zeros(len(used)) if kink is None else np.ascontiguousarray(kink[used], np.float64)
    return RowTables(on, shared, everyone, one, used, place, np.array(block, np.int64), bend)


def _prices(cost: Cost | None, d: int) -> tuple[int, Floats]:
    """Return how a column's move is priced, and the weights."""
    from countermove.response._tree_cells import SIGNED, SQUARED

    shape = None if cost is None else cost.canonical(d)
    if cost is None:
        return SQUARED, np.zeros(d)
    if shape is None or shape.matrix is not None:
        raise ParameterError(
            f"{type(cost).__name__} is no sum over columns, and trees are searched cell by cell; "
            "use QuadraticCost, WeightedQuadraticCost, MixtureCost or LinearCost"
        )
    if shape.weights is not None:
        return SQUARED, np.ascontiguousarray(shape.weights.detach().numpy(), np.float64)
    assert shape.kink is not None
    return SIGNED, np.ascontiguousarray(shape.kink.detach().numpy(), np.float64)


def _covering(score: TreeScore, X: Floats, feasible: FeasibleActions) -> tuple[Floats, Floats]:
    """Return the box of actions, beyond every split where nothing else bounds it."""
    low, high = feasible.low.copy(), feasible.high.copy()
    grid = grid_of(score)
    for j in range(X.shape[1]):
        own = grid.splits[grid.first[j] : grid.first[j + 1]]
        if len(own):
            step = 1.0 + feasible.step[j]
            low[:, j] = np.where(
                feasible.open_low[:, j], np.minimum(low[:, j], own[0] - X[:, j] - step), low[:, j]
            )
            high[:, j] = np.where(
                feasible.open_high[:, j],
                np.maximum(high[:, j], own[-1] - X[:, j] + step),
                high[:, j],
            )
    return low, high


def _matters(part: ListedStates, used: Mask) -> bool:
    """Return whether the trees read a listed block, or somebody has to leave their state."""
    if part.allowed.shape[1] > STATES:
        raise ParameterError(
            f"the columns {part.columns.tolist()} have {part.allowed.shape[1]} states together; "
            f"trees are searched over at most {STATES}"
        )
    stays = part.allowed[np.arange(len(part.present)), part.present]
    return bool(used[part.columns].any() or not stays.all())


def _coded_columns(
    score: TreeScore, X: Floats, low: Floats, high: Floats, feasible: FeasibleActions
) -> list[ListedStates]:
    """Return the columns of codes that people move, as blocks of listed states."""
    found = []
    for columns in score.ensemble.coded:
        j = columns[0]
        if len(columns) > 1 or not ((low[:, j] != 0.0) | (high[:, j] != 0.0)).any():
            continue
        step = float(feasible.step[j])
        if step == 0.0:
            raise ParameterError(
                f"column {j} holds codes of categories (the model asks whether they are in a set), "
                "so it moves in whole steps or not at all: list it as integer or immutable"
            )
        first, last = np.ceil(low[:, j] / step - 1e-9), np.floor(high[:, j] / step + 1e-9)
        count = int((last - first).max()) + 1
        if count > STATES:
            raise ParameterError(
                f"column {j} of codes moves over {count} values; bound it to {STATES} or fewer"
            )
        at = first[:, None] + np.arange(count)
        allowed = at <= last[:, None]
        change = (np.where(allowed, at, 0.0) * step)[:, :, None]
        present = np.abs(np.where(allowed, at, np.inf)).argmin(axis=1)
        found.append(ListedStates(np.array([j]), change, allowed, present, np.ones(1)))
    return found


def _things(
    score: TreeScore,
    X: Floats,
    listed: list[ListedStates],
    block: Index,
    n_numbers: int,
    first: Index,
    code: Index,
) -> Index:
    """Return the listed block of each coded thing, and write the codes of its states."""
    thing = np.full(len(score.ensemble.coded), -1, np.int64)
    for k, columns in enumerate(score.ensemble.coded):
        owners = {int(block[j]) for j in columns}
        if owners == {-1}:
            continue
        at = max(owners) - n_numbers
        if len(owners) > 1 or at < 0 or set(listed[at].columns.tolist()) != set(columns):
            raise ParameterError(
                f"columns {list(columns)} are the categories of one column; list them as one of "
                "the action set's groups, or as immutable"
            )
        part = listed[at]
        here = slice(first[at], first[at + 1])
        thing[k] = n_numbers + at
        if len(columns) == 1:
            j = columns[0]
            place = (X[:, j, None] + part.change[:, :, 0]) * score.scale[j] + score.mean[j]
            code[:, here] = np.floor(place + 1e-6).astype(np.int64)
        else:
            code[:, here] = [columns.index(int(j)) for j in part.columns]
    return thing
