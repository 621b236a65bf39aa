"""What each person may do: the one feasible set that recourse and responses in whole steps read.

A box of whole or any steps, blocks whose states are listed (one-hot groups, histories), linear
rows, and rows that are in force only where a column takes a value.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from countermove._types import Floats, Index, Mask
from countermove.errors import DataError, InfeasibleActionsError, shown
from countermove.people.actions import ActionSet
from countermove.people.possible import Possible

TOLERANCE = 1e-9
"""Room for rounding in bounds and constraints, a hundredth of what `contains` grants."""
ROUNDING = 1e-7
"""What `contains` grants: an allowed action may lack as much in a row."""
APART = 1e-6
"""How far a continuous column stays from the value of a premise that is not to hold."""
SLACK = 1e6
"""Offset of a row that is not in force: no action in a finite box breaks it."""


def absent(action: Floats) -> Mask:
    """Return who has no action: NaN stands for none, zeros for staying."""
    mask: Mask = np.isnan(action[:, 0])
    return mask


@dataclass(frozen=True)
class FeatureBlock:
    """One thing a person decides on: a number, a whole number or a list of states."""

    columns: tuple[int, ...]
    kind: Literal["number", "whole", "listed"]


@dataclass(frozen=True)
class ListedStates:
    """Columns that only move together, to one of a person's own states."""

    columns: Index
    change: Floats  # (n, states, columns), standardised units
    allowed: Mask  # (n, states)
    present: Index  # the state each person is in, (n,)
    metric: Floats  # what a unit of each column counts where the nearest state is asked for

    @property
    def end(self) -> tuple[Floats, Floats]:
        """The least and greatest change of each column over the allowed states, (n, k)."""
        reachable = self.allowed[:, :, None]
        low = np.where(reachable, self.change, np.inf).min(axis=1)
        return low, np.where(reachable, self.change, -np.inf).max(axis=1)

    def rows(self, who: Index | Mask) -> ListedStates:
        """Return the states of some of the people."""
        return replace(
            self, change=self.change[who], allowed=self.allowed[who], present=self.present[who]
        )

    def of(self, state: Index) -> Floats:
        """Return the change that leads each person to a state, (n, k)."""
        change: Floats = self.change[np.arange(len(state)), state]
        return change

    def nearest(self, action: Floats) -> Index:
        """Return the allowed state nearest to an action on all columns, (n,)."""
        away = ((action[:, None, self.columns] - self.change) * self.metric) ** 2
        place: Index = np.where(self.allowed, away.sum(axis=2), np.inf).argmin(axis=1)
        return place

    def best(self, slope: Floats) -> Index:
        """Return the allowed state that gains most along slopes (n, d); staying wins a tie."""
        gains = np.einsum("nsk,nk->ns", self.change, slope[:, self.columns])
        gains = np.where(self.allowed, gains, -np.inf)
        wanted = gains.argmax(axis=1)
        rows = np.arange(len(gains))
        tie = self.allowed[rows, self.present] & (gains[rows, self.present] >= gains[rows, wanted])
        return np.where(tie, self.present, wanted)

    def only_present(self, who: Index) -> ListedStates:
        """Return the states where some people leave the block as it is."""
        allowed = self.allowed.copy()
        allowed[who] = False
        allowed[who, self.present[who]] = True
        return replace(self, allowed=allowed)


@dataclass(frozen=True)
class Premise:
    """Rows A δ + b ≥ 0 that are in force only where a column takes a value."""

    column: int
    value: Floats  # (n,) the action that takes each person there
    A: Floats  # (r, d)
    b: Floats  # (n, r)

    def holds(self, action: Floats) -> Mask:
        """Return for whom the rows are in force after the action."""
        return np.asarray(np.abs(action[:, self.column] - self.value) <= APART)


@dataclass(frozen=True)
class FeasibleActions:
    """The allowed actions of n people."""

    low: Floats  # (n, d), finite and on the lattice
    high: Floats
    step: Floats  # of the lattice per column, (d,); 0 where any number will do
    listed: tuple[ListedStates, ...]  # one-hot groups first, then histories
    n_groups: int  # how many of them are one-hot groups
    A: Floats | None  # A δ + b ≥ 0, (m, d) and (n, m)
    b: Floats | None
    premises: tuple[Premise, ...]
    open_low: Mask  # where nothing bounds the action but the search's own limit, (n, d)
    open_high: Mask

    @property
    def blocks(self) -> tuple[FeatureBlock, ...]:
        """What at least one person can decide on."""
        together = {int(j) for part in self.listed for j in part.columns}
        free = (self.low < self.high).any(axis=0)
        single = [
            FeatureBlock((j,), "whole" if self.step[j] > 0.0 else "number")
            for j in np.flatnonzero(free).tolist()
            if j not in together
        ]
        joint = [
            FeatureBlock(tuple(part.columns.tolist()), "listed")
            for part in self.listed
            if (part.allowed.sum(axis=1) > 1).any()
        ]
        return tuple(sorted([*single, *joint], key=lambda block: block.columns))

    @property
    def decided(self) -> Mask:
        """Columns that belong to a block, shape (d,)."""
        mask = np.zeros(self.low.shape[1], bool)
        for block in self.blocks:
            mask[list(block.columns)] = True
        return mask

    @property
    def movable(self) -> Mask:
        """Columns that someone can move, shape (d,)."""
        mask: Mask = ((self.low != 0.0) | (self.high != 0.0)).any(axis=0)
        return mask

    @property
    def used(self) -> Index:
        """Positions of the columns that someone can move or has to, of states and premises."""
        mask = self.movable
        for part in self.listed:
            mask[part.columns] = True
        mask[[premise.column for premise in self.premises]] = True
        return np.flatnonzero(mask)

    @property
    def discrete(self) -> bool:
        """Whether a block is a whole number or a list of states."""
        return any(block.kind != "number" for block in self.blocks)

    @property
    def convex(self) -> bool:
        """Whether the actions of a branch are a box cut by rows, whole steps aside."""
        return not self.premises and len(self.listed) == self.n_groups

    def states_of(self, block: FeatureBlock) -> ListedStates:
        """Return the states of a listed block."""
        return next(p for p in self.listed if tuple(p.columns.tolist()) == block.columns)

    def rows(self, who: Index | Mask) -> FeasibleActions:
        """Return the actions of some of the people."""
        return replace(
            self,
            low=self.low[who],
            high=self.high[who],
            listed=tuple(part.rows(who) for part in self.listed),
            b=None if self.b is None else self.b[who],
            premises=tuple(replace(p, value=p.value[who], b=p.b[who]) for p in self.premises),
            open_low=self.open_low[who],
            open_high=self.open_high[who],
        )

    def only(self, columns: Index) -> FeasibleActions:
        """Return the actions on some columns; nobody moves the others (see `used`)."""
        place = {int(j): k for k, j in enumerate(columns)}
        return replace(
            self,
            low=self.low[:, columns],
            high=self.high[:, columns],
            step=self.step[columns],
            listed=tuple(
                replace(part, columns=np.array([place[int(j)] for j in part.columns]))
                for part in self.listed
            ),
            A=None if self.A is None else self.A[:, columns],
            premises=tuple(
                replace(p, column=place[p.column], A=p.A[:, columns]) for p in self.premises
            ),
            open_low=self.open_low[:, columns],
            open_high=self.open_high[:, columns],
        )

    def may_go_on(self, action: Floats) -> Mask:
        """Return which amounts of actions are any numbers strictly within bounds, (n, d)."""
        inside = (action > self.low + TOLERANCE) & (action < self.high - TOLERANCE)
        mask: Mask = np.asarray(inside & (self.step == 0.0))
        for part in self.listed:
            mask[:, part.columns] = False
        return mask

    def repeated(self, times: int) -> FeasibleActions:
        """Return the actions with every person ``times`` over, each in a row."""
        return self.rows(np.repeat(np.arange(len(self.low)), times))

    def frozen(self, held: Mask, blocks: tuple[FeatureBlock, ...]) -> FeasibleActions:
        """Return the actions where person i leaves block k alone if ``held[i, k]`` and it may."""
        low, high = self.low.copy(), self.high.copy()
        listed = list(self.listed)
        names = [tuple(part.columns.tolist()) for part in listed]
        for k, block in enumerate(blocks):
            columns = np.array(block.columns)
            can_stay = ((low[:, columns] <= 0.0) & (high[:, columns] >= 0.0)).all(axis=1)
            who = np.flatnonzero(held[:, k] & can_stay)
            low[np.ix_(who, columns)] = 0.0
            high[np.ix_(who, columns)] = 0.0
            if block.kind == "listed":
                at = names.index(block.columns)
                listed[at] = listed[at].only_present(who)
        return replace(
            self,
            low=low,
            high=high,
            listed=tuple(listed),
            open_low=self.open_low & (low < 0.0),
            open_high=self.open_high & (high > 0.0),
        )

    def branch_at(self, action: Floats) -> FeasibleActions:
        """Return the actions in the branch of an allowed action: premises and histories as there.

        What is left is a box cut by rows, whole steps and one-hot groups; staying may not be
        among it.
        """
        low, high = self.low.copy(), self.high.copy()
        A, b = [self.A] if self.A is not None else [], [self.b] if self.b is not None else []
        for premise in self.premises:
            j, held = premise.column, premise.holds(action)
            gap = self.step[j] if self.step[j] > 0.0 else 2.0 * APART
            above = action[:, j] > premise.value
            low[:, j] = np.where(held, action[:, j], low[:, j])
            high[:, j] = np.where(held, action[:, j], high[:, j])
            edge = np.where(above, premise.value + 0.5 * gap, premise.value - 0.5 * gap)
            low[:, j] = np.where(~held & above, np.maximum(low[:, j], edge), low[:, j])
            high[:, j] = np.where(~held & ~above, np.minimum(high[:, j], edge), high[:, j])
            A.append(premise.A)
            b.append(np.where(held[:, None], premise.b, SLACK))
        low, high = _on_lattice(low, high, self.step)
        for part in self.listed[self.n_groups :]:
            there = part.of(part.nearest(action))
            low[:, part.columns] = high[:, part.columns] = there
        rows, room = (np.vstack(A), np.hstack(b)) if A else (None, None)
        if rows is not None and room is not None:
            # What rounding takes off a row of held columns would leave the branch empty.
            lacks = np.maximum(-(action @ rows.T + room), 0.0)
            room = room + np.where(lacks <= ROUNDING, lacks + 0.1 * TOLERANCE, 0.0)
        return replace(
            self,
            low=low,
            high=high,
            listed=self.listed[: self.n_groups],
            A=rows,
            b=room,
            premises=(),
            open_low=self.open_low & (low == self.low),
            open_high=self.open_high & (high == self.high),
        )

    def snap(self, action: Floats) -> Floats:
        """Return the nearest action of the box on the lattice, block by block (rows ignored)."""
        on = np.where(self.step > 0.0, self.step, 1.0)
        rounded = np.where(self.step > 0.0, np.round(action / on) * on, action)
        snapped: Floats = np.clip(rounded, self.low, self.high)
        for part in self.listed:
            snapped[:, part.columns] = part.of(part.nearest(action))
        return snapped

    def snap_within(self, action: Floats) -> Floats:
        """Return the nearest lattice action, or the next smaller one where that breaks a row."""
        snapped = self.snap(action)
        broken = ~self.meets(snapped)
        if broken.any():
            on = np.where(self.step > 0.0, self.step, 1.0)
            shorter = np.where(self.step > 0.0, np.trunc(action / on) * on, action)
            snapped[broken] = self.snap(shorter)[broken]
        return snapped

    def meets(self, action: Floats) -> Mask:
        """Return whose action meets every row that is in force."""
        inside = np.ones(len(action), bool)
        if self.A is not None and self.b is not None:
            inside &= np.all(action @ self.A.T + self.b >= -TOLERANCE, axis=1)
        for premise in self.premises:
            met = np.all(action @ premise.A.T + premise.b >= -TOLERANCE, axis=1)
            inside &= met | ~premise.holds(action)
        return inside

    def changed(self, action: Floats) -> NDArray[np.int64]:
        """Return how many blocks each action touches."""
        count = np.zeros(len(action), np.int64)
        together = [int(j) for part in self.listed for j in part.columns]
        alone = np.ones(action.shape[1], bool)
        alone[together] = False
        count += (action[:, alone] != 0.0).sum(axis=1)
        for part in self.listed:
            count += (action[:, part.columns] != 0.0).any(axis=1)
        return count


LARGEST_MOVE = 10.0
"""How far a search goes, in standardised units, where nothing bounds the action."""


def feasible_actions(
    actions: ActionSet, X: Floats, largest: Floats | float = LARGEST_MOVE, whole: bool = True
) -> FeasibleActions:
    """Return what each person may do; not ``whole``: any step will do, but off a premise's value.

    Columns then keep their step only where a premise asks for it: whoever leaves its value leaves
    by a whole step. Nothing bounds what the action set leaves open.
    """
    low, high = _box(actions, X)
    open_low, open_high = np.isneginf(low), np.isposinf(high)
    possible = actions.possible
    together = () if possible is None else tuple(j for h in possible.histories for j in h.columns)
    step = lattice(actions, X.shape[1])
    step[list(together)] = 0.0
    if whole:
        low = np.where(open_low, np.minimum(-largest, high - largest), low)
        high = np.where(open_high, np.maximum(largest, low + largest), high)
        low, high = _on_lattice(low, high, step)
    elif possible is not None:
        step[~np.isin(np.arange(len(step)), possible.relations.premise_columns)] = 0.0
    listed = [_one_hot(actions, X, np.array(group), low, high) for group in actions.groups]
    n_groups = len(listed)
    if possible is not None:
        listed += _histories(possible, X, low, high)
    for part in listed:
        low[:, part.columns], high[:, part.columns] = part.end
    A, b, premises = _rows(actions, X)
    return FeasibleActions(
        low, high, step, tuple(listed), n_groups, A, b, premises, open_low, open_high
    )


def _rows(
    actions: ActionSet, X: Floats
) -> tuple[Floats | None, Floats | None, tuple[Premise, ...]]:
    """Return the rows of everybody and those of premises; who breaks one may not break it more."""
    parts = []
    if actions.A is not None and actions.b is not None:
        parts.append((actions.A, np.broadcast_to(actions.b, (len(X), actions.b.shape[-1]))))
    premises: list[Premise] = []
    if actions.possible is not None:
        relations = actions.possible.relations
        plain, then = actions.possible.unjudged(actions.unknown(X))
        A, b = _one_sided(relations.rows.A, relations.rows.lower, relations.rows.upper, X)
        plain = _of_sides(plain, relations.rows.lower, relations.rows.upper)
        parts.append((A, np.where(plain, SLACK, np.maximum(b, 0.0))))
        here = relations.in_force(X)
        pairs = list(
            zip(relations.premise_columns.tolist(), relations.premise_values.tolist(), strict=True)
        )
        for column, value in dict.fromkeys(pairs):
            which = [i for i, pair in enumerate(pairs) if pair == (column, value)]
            rows = relations.conditional
            A, b = _one_sided(rows.A[which], rows.lower[which], rows.upper[which], X)
            b = np.where(here[:, which[:1]], np.maximum(b, 0.0), b)
            b = np.where(_of_sides(then[:, which], rows.lower[which], rows.upper[which]), SLACK, b)
            premises.append(Premise(column, value - X[:, column], A, b))
    if not any(len(A) for A, _ in parts):
        return None, None, tuple(premises)
    return np.vstack([A for A, _ in parts]), np.hstack([b for _, b in parts]), tuple(premises)


def _one_sided(A: Floats, lower: Floats, upper: Floats, X: Floats) -> tuple[Floats, Floats]:
    """Return rows l ≤ A x ≤ u as A' δ + b ≥ 0 of the actions of n people."""
    below, above = np.isfinite(lower), np.isfinite(upper)
    values = X @ A.T
    rows = np.vstack([A[below], -A[above]])
    return rows, np.hstack([values[:, below] - lower[below], upper[above] - values[:, above]])


def _of_sides(unjudged: Mask, lower: Floats, upper: Floats) -> Mask:
    """Return the same of the rows that `_one_sided` makes."""
    return np.hstack([unjudged[:, np.isfinite(lower)], unjudged[:, np.isfinite(upper)]])


def _histories(possible: Possible, X: Floats, low: Floats, high: Floats) -> list[ListedStates]:
    """Return the states of everybody's histories; those beyond the box are not allowed."""
    found = []
    for history, change in zip(possible.histories, possible.changes(X), strict=True):
        columns = np.array(history.columns)
        slack = TOLERANCE * (1.0 + np.abs(change))
        inside = (change >= low[:, None, columns] - slack) & (
            change <= high[:, None, columns] + slack
        )
        allowed: Mask = np.asarray(inside.all(axis=2))
        allowed[:, 0] = True
        for state in range(1, change.shape[1]):  # a state that was there before is no new one
            again = (change[:, state, None] == change[:, :state]).all(axis=2)
            allowed[again.any(axis=1), state] = False
        present = np.zeros(len(X), np.intp)
        found.append(ListedStates(columns, change, allowed, present, np.ones(len(columns))))
    return found


def _one_hot(
    actions: ActionSet, X: Floats, columns: Index, low: Floats, high: Floats
) -> ListedStates:
    """Return one group as a block: one state per category."""
    d = X.shape[1]
    unit = (np.ones(d) if actions.unit is None else actions.unit)[columns]
    offset = (np.zeros(d) if actions.offset is None else actions.offset)[columns]
    now = _category(X[:, columns] * unit + offset, columns)
    allowed = _choices(now, low[:, columns], high[:, columns], 1.0 / unit)
    k = len(columns)
    bits = np.broadcast_to(np.eye(k), (len(X), k, k)) - np.eye(k)[now][:, None]
    return ListedStates(columns, bits / unit, allowed, now, unit)


def lattice(actions: ActionSet, n_features: int) -> Floats:
    """Return the step of each whole-number feature in standardised units, 0 for the others."""
    unit = np.ones(n_features) if actions.unit is None else actions.unit
    step = np.zeros(n_features)
    grouped = {j for group in actions.groups for j in group}
    whole = [j for j in actions.integer if j not in grouped]
    step[whole] = actions.step_sizes(n_features)[whole] / unit[whole]
    return step


def _box(actions: ActionSet, X: Floats) -> tuple[Floats, Floats]:
    try:
        low, high = actions.box(X)
    except InfeasibleActionsError as error:
        if not error.rows:
            raise
        row = error.rows[0]
        parts = actions.bounds(*X.shape)
        lower, upper = (np.broadcast_to(p, X.shape)[row] for p in (parts.lower, parts.upper))
        least, most = (
            np.broadcast_to(p, X.shape)[row] - X[row] for p in (parts.min_value, parts.max_value)
        )
        clash = np.flatnonzero(np.maximum(lower, least) > np.minimum(upper, most))
        j = int(clash[0])
        raise InfeasibleActionsError(
            f"{error}. In row {row}, feature {j} must change by at least "
            f"{max(lower[j], least[j]):.6g} and by at most {min(upper[j], most[j]):.6g}",
            rows=error.rows,
        ) from error
    return low.copy(), high.copy()


def _on_lattice(low: Floats, high: Floats, step: Floats) -> tuple[Floats, Floats]:
    """Pull the ends of the box in to whole steps from where each person stands."""
    for j in np.flatnonzero(step):
        first = np.ceil(low[:, j] / step[j] - 1e-7)
        last = np.floor(high[:, j] / step[j] + 1e-7)
        stuck = np.flatnonzero(first > last)
        if stuck.size:
            raise InfeasibleActionsError(
                f"feature {j} moves in whole units, and none lies within the bounds of the "
                f"people in rows {shown(stuck)}; widen them or drop the feature from `integer`",
                rows=stuck,
            )
        low[:, j], high[:, j] = first * step[j], last * step[j]
    return low, high


def _category(bits: Floats, columns: Index) -> Index:
    on = np.abs(bits - 1.0) <= 1e-6
    wrong = np.flatnonzero(
        (on.sum(axis=1) != 1) | ((np.abs(bits) <= 1e-6).sum(axis=1) != bits.shape[1] - 1)
    )
    if wrong.size:
        raise DataError(
            f"the columns {shown(columns)} are one group, of which exactly one is 1 and the "
            f"others 0 (in original units); rows {shown(wrong)} are not so",
            rows=wrong,
        )
    position: Index = on.argmax(axis=1)
    return position


def _choices(now: Index, low: Floats, high: Floats, bit: Floats) -> Mask:
    """Return who may choose which category: to leave the present one and to enter the other."""
    rows = np.arange(len(now))
    leave = low[rows, now] <= -bit[now] + TOLERANCE
    allowed: Mask = leave[:, None] & (high >= bit - TOLERANCE)
    # Entering another category must leave the third ones where they are.
    idle = (low <= TOLERANCE) & (high >= -TOLERANCE)
    others = (~idle).sum(axis=1)[:, None] - (~idle) - (~idle)[rows, now][:, None]
    allowed &= others <= 0
    allowed[rows, now] = idle.all(axis=1)
    stuck = np.flatnonzero(~allowed.any(axis=1))
    if stuck.size:
        raise InfeasibleActionsError(
            f"a one-hot group leaves no category to the people in rows {shown(stuck)}", rows=stuck
        )
    return allowed
