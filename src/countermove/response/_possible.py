"""People who stay possible: their branches as the compiled rows take them, and what was found."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from countermove._types import Floats, Index, Mask
from countermove.errors import ParameterError, SolverError, shown
from countermove.people import ActionSet
from countermove.people.feasible import FeasibleActions, feasible_actions
from countermove.response._branch_boxes import BranchPeople, BranchTables
from countermove.response._branch_lists import gain_branches, list_branches, project_branches
from countermove.response._branch_rows import (
    BranchFound,
    branch_tangents,
    cross_branches,
    held_directions,
    reach_branches,
    smooth_branches,
)
from countermove.response._relation_rows import SparseRows
from countermove.response.compilation import over_rows
from countermove.response.exact.cheapest import padded_options, premise_sides
from countermove.response.reduction import FINE, NOT_CONVERGED, Reduction, RowSolutions

NOTHING = 1e-11
"""Share of the largest weight below which a weight counts as none."""


class PossiblePeople:
    """The branches of n people: states of histories, sides of premises, and the rows in force."""

    def __init__(self, actions: ActionSet, X: Floats) -> None:
        actions.check_people(len(X), "the people who respond")
        self.X, self.actions = X.copy(), actions
        feasible = _staying(feasible_actions(actions, X, whole=False), actions)
        self.used = feasible.used
        self.feasible = feasible = feasible.only(self.used)
        A, offsets, rule = _rows(feasible)
        size = np.maximum(np.abs(A).max(axis=1, initial=0.0), 1e-300)
        # Kernels are compiled for one layout: picked columns would come in another.
        self.A = np.ascontiguousarray(A / size[:, None])
        self._sparse = _sparse(self.A)
        self.branches = _branches(feasible, rule)
        width = self.branches.columns.shape[1]
        change, allowed = padded_options(feasible.listed, len(X), width)
        values = np.column_stack([np.zeros((len(X), 0)), *(p.value for p in feasible.premises)])
        self.people = BranchPeople(
            np.ascontiguousarray(feasible.low),
            np.ascontiguousarray(feasible.high),
            np.ascontiguousarray(offsets / size),
            np.ascontiguousarray(values),
            change,
            allowed,
        )

    def rows(self, slope: Floats, weights: Floats) -> SparseRows:
        """Return rule, cost Σ q_j δ_j² and rows."""
        own, square = slope[self.used], weights[self.used]
        # A weight this far below the largest is rounding: nobody's search ends for chasing it.
        own = np.where(np.abs(own) < NOTHING * np.abs(own).max(initial=0.0), 0.0, own)
        sides = np.eye(len(own))
        G = np.vstack([sides, -sides, self.A])
        over = G / (2.0 * square)
        return SparseRows(
            np.stack([own, square, 0.5 / square]), *self._sparse, over @ G.T, over @ own
        )

    def reach(self, slope: Floats, weights: Floats, budgets: Floats) -> BranchFound:
        """Return everybody's action of the most gain within a budget, shape (1,) or (n,)."""
        found, size = self._empty(), _size(slope)
        rows = self.rows(slope / size, weights)

        def some(who: slice) -> None:
            people = self._some(who)
            reach_branches(rows, self.branches, people, _own(budgets, who), _rows_of(found, who))

        over_rows(len(self.X), some)
        return _enlarged(found, size)

    def cross(
        self, slope: Floats, weights: Floats, need: Floats, room: Floats, gains: Floats, who: Index
    ) -> BranchFound:
        """Return the cheapest actions of ``who`` that gain what they need, below their ``gains``.

        An action gains at most ``room`` beyond what is needed, half as much may be missing.
        """
        found, size = self._empty(), _size(slope)
        rows, asked = self.rows(slope / size, weights), (need / size, room / size)

        def some(part: slice) -> None:
            cross_branches(rows, self.branches, self.people, *asked, gains, who[part], found)

        over_rows(len(who), some)
        return _enlarged(found, size)

    def smooth(
        self, slope: Floats, weights: Floats, scores: Floats, sharpness: float, first: bool,
        factors: Floats,
    ) -> BranchFound:  # fmt: skip
        """Return where the smoothed step is best, or the ``first`` such point at home."""
        found, size = self._empty(), _size(slope)
        rows, scores, sharpness = self.rows(slope / size, weights), scores / size, sharpness * size

        def some(who: slice) -> None:
            own = (scores[who], sharpness, first, _own(factors, who), _rows_of(found, who))
            smooth_branches(rows, self.branches, self._some(who), *own)

        over_rows(len(self.X), some)
        return _enlarged(found, size)

    def gain(self, slope: Floats, weights: Floats) -> BranchFound:
        """Return everybody's action of the most gain - cost."""
        found = self._empty()
        gain_branches(self.rows(slope, weights), self.branches, self.people, found)
        return found

    def listed(self, slope: Floats | None = None, need: Floats | None = None) -> BranchList:
        """Return every branch, or those in which a person can gain what they ``need``."""
        # What nobody needs is minus infinity.
        n, d = self.X.shape
        slope = np.zeros(d) if slope is None else slope
        need = np.full(n, -np.inf) if need is None else need
        size = _size(slope)
        rows, asked = self.rows(slope / size, np.ones(d)), need / size
        count, k, m = 0, len(self.used), len(self.A)
        while True:
            who, home, on = (
                np.zeros(count, np.intp),
                np.zeros(count, bool),
                np.zeros((count, m), bool),
            )
            lo, hi = np.zeros((count, k)), np.zeros((count, k))
            wanted = list_branches(rows, self.branches, self.people, asked, who, home, lo, hi, on)
            if wanted == count:
                return BranchList(self, who, home, lo, hi, on)
            count = wanted

    def nearest(self, points: Floats) -> Floats:
        """Return the possible actions nearest to some, each (n, d)."""
        every = self.listed()
        tried = every.project(points[every.who][:, self.used])[0]
        away = ((tried - points[every.who][:, self.used]) ** 2).sum(axis=1)
        return self.full(tried[every.best(-away)])

    def directions(self, found: BranchFound, price: Floats) -> tuple[Mask, Floats]:
        """Return which features nothing stops, (n, d), and which directions rows rule out."""
        most = int(found.held.sum(axis=1).max(initial=0))
        (n, d), m = self.X.shape, len(self.A)
        free, flat, A = np.zeros((n, d), bool), np.zeros((n, most, d)), np.zeros((m, d))
        free[:, self.used] = (found.lo < found.action) & (found.action < found.hi)
        A[:, self.used] = self.A
        held_directions(A, free, found.held, price, flat)
        return free, flat

    def full(self, part: Floats) -> Floats:
        """Return numbers of the columns that move, as numbers of all columns."""
        whole = np.zeros((len(part), self.X.shape[1]))
        whole[:, self.used] = part
        return whole

    def _some(self, who: slice) -> BranchPeople:
        """Return what the kernels read of some of the people."""
        return BranchPeople._make(part[who] for part in self.people)

    def _empty(self) -> BranchFound:
        n, k = self.people.low.shape
        action, lo, hi = (np.zeros((n, k)) for _ in range(3))
        held = np.zeros((n, len(self.A)), bool)
        price = np.full(n, np.inf)
        gain, cost = np.zeros(n), np.zeros(n)
        return BranchFound(
            action, lo, hi, held, price, gain, cost, np.zeros(n, bool), np.ones(n, bool)
        )


def _rows_of(found: BranchFound, who: slice) -> BranchFound:
    """Return where the answers of some of the people are written."""
    return BranchFound._make(part[who] for part in found)


def _own(numbers: Floats, who: slice) -> Floats:
    """Return some people's numbers, which may be one for all."""
    return numbers if len(numbers) == 1 else numbers[who]


@dataclass(frozen=True)
class BranchList:
    """Branches one by one: whose they are, their boxes over the columns that move, their rows."""

    people: PossiblePeople
    who: Index  # (N,)
    home: Mask  # whether one stands in it
    lo: Floats  # (N, k)
    hi: Floats
    on: Mask  # (N, m) rows in force

    def rows(self, which: Index | Mask) -> BranchList:
        """Return some of the branches, in that order."""
        return BranchList(
            self.people,
            self.who[which],
            self.home[which],
            self.lo[which],
            self.hi[which],
            self.on[which],
        )

    def best(self, values: Floats) -> Index:
        """Return the place of everybody's branch of the highest value; the first of equal ones."""
        order = np.lexsort((np.arange(len(values)), -values, self.who))
        place: Index = order[np.unique(self.who[order], return_index=True)[1]]
        return place

    def offsets(self, wide: float) -> Floats:
        """Return the offsets of all rows, (N, m), so large where one is not in force that it holds.

        Nobody goes further than ``wide`` in a column.
        """
        A = self.people.A
        low, high = np.clip(self.lo, -wide, wide), np.clip(self.hi, -wide, wide)
        least = low @ np.maximum(A, 0.0).T + high @ np.minimum(A, 0.0).T
        return np.where(self.on, self.people.people.offset[self.who], 1.0 - least)

    def project(self, points: Floats) -> tuple[Floats, Mask]:
        """Return the nearest action of each branch, (N, k), and the rows that hold it."""
        d = self.people.X.shape[1]
        rows = self.people.rows(np.zeros(d), np.full(d, 0.5))
        nearest, held = np.empty_like(self.lo), np.zeros(self.on.shape, bool)
        offset = self.people.people.offset[self.who]
        points = np.ascontiguousarray(points)
        if not project_branches(rows, self.lo, self.hi, self.on, offset, points, nearest, held):
            raise SolverError("a projection onto possible actions did not converge")
        return nearest, held


def _size(slope: Floats) -> float:
    """Return by how much a slope is taken smaller: 1 unless it is tiny or huge."""
    # The searches tell differences of about 1 apart. A power of two costs no digit.
    largest = float(np.abs(slope).max(initial=0.0))
    if largest == 0.0 or 1e-6 <= largest <= 1e6:
        return 1.0
    return float(2.0 ** np.floor(np.log2(largest)))


def _enlarged(found: BranchFound, size: float) -> BranchFound:
    """Return what was found in units of a smaller slope, in those of the slope itself."""
    if size != 1.0:
        found.gain[:] *= size
        found.price[:] /= size
    return found


@dataclass(frozen=True)
class BranchSolution:
    """People solved in their best branches: how their actions follow the rule."""

    people: PossiblePeople
    rows: SparseRows
    found: BranchFound

    def tangent(self, vectors: Floats) -> Floats:
        """Return how everybody's action moves with one pull per person, shape (n, d)."""
        pulls = np.ascontiguousarray(vectors[:, self.people.used])
        moved = np.empty_like(pulls)
        branch_tangents(self.rows, self.found, pulls, moved)
        return self.people.full(moved)


def _staying(feasible: FeasibleActions, actions: ActionSet) -> FeasibleActions:
    """Return the actions of people who may all stay; refuse those whom an action bound moves."""
    # Whoever stands where nobody ends up, like whoever breaks a relation, may stay or move inward.
    bounds = actions.bounds(*feasible.low.shape)
    rows = np.zeros(len(feasible.low), bool) | ((bounds.lower > 0.0) | (bounds.upper < 0.0)).any(1)
    if feasible.b is not None:
        rows |= (feasible.b < -1e-9).any(axis=1)
    if rows.any():
        raise ParameterError(
            f"the action set makes the people in rows {shown(np.flatnonzero(rows))} move, and "
            "relations between columns may not let them: responses among possible people start "
            "from people who may stay. Widen their bounds, or let columns move alone in "
            "responses: serm.actions.responses: relax (ActionSet.obeyed_in_responses(False))"
        )
    low, high = np.minimum(feasible.low, 0.0), np.maximum(feasible.high, 0.0)
    return replace(feasible, low=low, high=high)


def _rows(feasible: FeasibleActions) -> tuple[Floats, Floats, Index]:
    """Return all rows A δ + b ≥ 0, their offsets (n, m), and the premise of each (-1: none)."""
    n, k = feasible.low.shape
    A = [np.zeros((0, k)) if feasible.A is None else feasible.A]
    b = [np.zeros((n, 0)) if feasible.b is None else feasible.b]
    rule = [np.full(len(A[0]), -1)]
    for number, premise in enumerate(feasible.premises):
        A.append(premise.A)
        b.append(premise.b)
        rule.append(np.full(len(premise.A), number))
    return np.vstack(A), np.hstack(b), np.concatenate(rule).astype(np.int64)


def _sparse(A: Floats) -> tuple[Index, Index, Floats]:
    """Return where each row's entries start, their columns, and the entries."""
    filled = A != 0.0
    first = np.append(0, np.cumsum(filled.sum(axis=1))).astype(np.int64)
    return first, np.nonzero(filled)[1].astype(np.int64), A[filled]


def _branches(feasible: FeasibleActions, rule: Index) -> BranchTables:
    """Return premises, their sides, and the columns of listed blocks."""
    premises, blocks = feasible.premises, feasible.listed
    block = np.full(len(premises), -1, np.int64)
    for number, premise in enumerate(premises):
        for place, part in enumerate(blocks):
            if premise.column in part.columns:
                block[number] = place
    # What a history's state says of a premise needs no side of its own.
    open_ones = tuple(p for p, at in zip(premises, block, strict=True) if at < 0)
    chosen = premise_sides(replace(feasible, premises=open_ones))
    sides = np.zeros((len(chosen), len(premises)), np.int64)
    sides[:, block < 0] = chosen
    columns = np.full((len(blocks), max([1, *(len(p.columns) for p in blocks)])), -1, np.int64)
    for place, part in enumerate(blocks):
        columns[place, : len(part.columns)] = part.columns
    column = np.array([premise.column for premise in premises], np.int64)
    options = np.cumsum([0, *(part.allowed.shape[1] for part in blocks)]).astype(np.int64)
    return BranchTables(rule, column, feasible.step[column], block, sides, options, columns)


def solve_possible_reach(
    reduction: Reduction, rows: Floats, budgets: Floats, solution: RowSolutions, reach: Floats
) -> Reduction:
    """Write everybody's largest affordable score gain; return the rule met in their branches."""
    people, arrays = reduction.plan.people(rows), reduction.arrays
    found = people.reach(arrays.slope, arrays.weights, budgets)
    reach[:], solution.price[:] = found.gain, found.price
    return _in_branches(reduction, people, found, solution, rows, as_action=True)


def solve_possible_best(
    reduction: Reduction,
    rows: Floats,
    scores: Floats,
    margin: Floats,
    gains: Floats,
    as_action: bool,
    solution: RowSolutions,
) -> Reduction:
    """Solve the hard step: cross if that costs less than one's gain, among possible people."""
    people, arrays = reduction.plan.people(rows), reduction.arrays
    refused = np.flatnonzero(scores < 0.0)
    found = people.cross(arrays.slope, arrays.weights, margin - scores, margin, gains, refused)
    solution.favoured[:] = (scores >= 0.0) | found.found
    solution.crossed[:] = found.found
    solution.cost[:], solution.price[:] = found.cost, np.where(found.found, found.price, 0.0)
    return _in_branches(reduction, people, found, solution, rows, as_action)


def solve_possible_gain(reduction: Reduction, rows: Floats, solution: RowSolutions) -> Reduction:
    """Solve for the most score less cost, among possible people."""
    people, arrays = reduction.plan.people(rows), reduction.arrays
    found = people.gain(arrays.slope, arrays.weights)
    solution.price[:], solution.cost[:] = 1.0, found.cost
    return _in_branches(reduction, people, found, solution, rows, as_action=True)


def solve_possible_smooth(
    reduction: Reduction,
    rows: Floats,
    scores: Floats,
    sharpness: float,
    first: bool,
    as_action: bool,
    factors: Floats,
    solution: RowSolutions,
) -> Reduction:
    """Solve the smoothed step among possible people, their costs multiplied by ``factors``."""
    people, arrays = reduction.plan.people(rows), reduction.arrays
    found = people.smooth(arrays.slope, arrays.weights, scores, sharpness, first, factors)
    solution.after[:] = scores + found.gain
    solution.price[:], solution.cost[:] = found.price, found.cost * factors
    return _in_branches(reduction, people, found, solution, rows, as_action)


def _in_branches(
    reduction: Reduction,
    people: PossiblePeople,
    found: BranchFound,
    solution: RowSolutions,
    rows: Floats,
    as_action: bool,
) -> Reduction:
    """Write who moved where and who did not converge; return the rule met in the best branches."""
    solution.status[:] = np.where(found.converged, FINE, NOT_CONVERGED)
    solution.moved[:] = (found.action != 0.0).any(axis=1)
    if len(solution.out):
        solution.out[:] = people.full(found.action)
        if not as_action:
            solution.out[:] += rows
    met = people.rows(reduction.arrays.slope, reduction.arrays.weights)
    return replace(reduction, branches=BranchSolution(people, met, found))
