"""What each person may do, whole numbers and one-hot groups included.

`FeasibleActions` is an `ActionSet` seen by the people of one search: a box whose ends lie
on the lattice of whole numbers, the categories each may choose, and A δ + b ≥ 0.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from countermove._types import Floats, Index, Mask
from countermove.errors import DataError, InfeasibleActionsError, ParameterError, shown
from countermove.people import ActionSet

TOLERANCE = 1e-9
"""Room for rounding in bounds and constraints, a hundredth of what `contains` grants."""


def absent(action: Floats) -> Mask:
    """Return who has no action: NaN stands for none, zeros for staying."""
    mask: Mask = np.isnan(action[:, 0])
    return mask


@dataclass(frozen=True)
class FeatureBlock:
    """One thing a person decides on: a number, a whole number or a one-hot group."""

    columns: tuple[int, ...]
    kind: Literal["number", "whole", "group"]


@dataclass(frozen=True)
class FeasibleActions:
    """The allowed actions of n people."""

    low: Floats  # (n, d), finite and on the lattice
    high: Floats
    step: Floats  # of the lattice per column, (d,); 0 where any number will do
    unit: Floats  # original units per standardised unit, (d,)
    groups: tuple[Index, ...]  # one-hot columns
    chosen: tuple[Index, ...]  # each person's present category, a position in the group, (n,)
    choices: tuple[Mask, ...]  # who may choose which category, (n, k)
    A: Floats | None  # A δ + b ≥ 0, (m, d) and (n, m)
    b: Floats | None
    open_low: Mask  # where nothing bounds the action but the search's own limit, (n, d)
    open_high: Mask

    @property
    def blocks(self) -> tuple[FeatureBlock, ...]:
        """What at least one person can decide on."""
        grouped = {int(j) for group in self.groups for j in group}
        free = (self.low < self.high).any(axis=0)
        single = [
            FeatureBlock((j,), "whole" if self.step[j] > 0.0 else "number")
            for j in np.flatnonzero(free).tolist()
            if j not in grouped
        ]
        joint = [
            FeatureBlock(tuple(group.tolist()), "group")
            for group, choices in zip(self.groups, self.choices, strict=True)
            if (choices.sum(axis=1) > 1).any()
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
        """Positions of the columns that someone can move or has to, with their groups whole."""
        mask = self.movable
        for group in self.groups:
            mask[group] = mask[group].any()
        return np.flatnonzero(mask)

    @property
    def discrete(self) -> bool:
        """Whether a block is a whole number or a group."""
        return any(block.kind != "number" for block in self.blocks)

    def rows(self, who: Index | Mask) -> FeasibleActions:
        """Return the actions of some of the people."""
        return replace(
            self,
            low=self.low[who],
            high=self.high[who],
            chosen=tuple(part[who] for part in self.chosen),
            choices=tuple(part[who] for part in self.choices),
            b=None if self.b is None else self.b[who],
            open_low=self.open_low[who],
            open_high=self.open_high[who],
        )

    def only(self, columns: Index) -> FeasibleActions:
        """Return the actions on some columns; nobody moves the others (see `used`)."""
        place = {int(j): k for k, j in enumerate(columns)}
        kept = [g for g, group in enumerate(self.groups) if int(group[0]) in place]
        return replace(
            self,
            low=self.low[:, columns],
            high=self.high[:, columns],
            step=self.step[columns],
            unit=self.unit[columns],
            groups=tuple(np.array([place[int(j)] for j in self.groups[g]]) for g in kept),
            chosen=tuple(self.chosen[g] for g in kept),
            choices=tuple(self.choices[g] for g in kept),
            A=None if self.A is None else self.A[:, columns],
            open_low=self.open_low[:, columns],
            open_high=self.open_high[:, columns],
        )

    def repeated(self, times: int) -> FeasibleActions:
        """Return the actions with every person ``times`` over, each in a row."""
        return self.rows(np.repeat(np.arange(len(self.low)), times))

    def frozen(self, held: Mask, blocks: tuple[FeatureBlock, ...]) -> FeasibleActions:
        """Return the actions where person i leaves block k alone if ``held[i, k]`` and it may."""
        low, high = self.low.copy(), self.high.copy()
        choices = [part.copy() for part in self.choices]
        groups = [tuple(group.tolist()) for group in self.groups]
        for k, block in enumerate(blocks):
            columns = np.array(block.columns)
            can_stay = ((low[:, columns] <= 0.0) & (high[:, columns] >= 0.0)).all(axis=1)
            who = np.flatnonzero(held[:, k] & can_stay)
            low[np.ix_(who, columns)] = 0.0
            high[np.ix_(who, columns)] = 0.0
            if block.kind == "group":
                g = groups.index(block.columns)
                choices[g][who] = False
                choices[g][who, self.chosen[g][who]] = True
        return replace(
            self,
            low=low,
            high=high,
            choices=tuple(choices),
            open_low=self.open_low & (low < 0.0),
            open_high=self.open_high & (high > 0.0),
        )

    def snap(self, action: Floats) -> Floats:
        """Return the nearest action of the box on the lattice, group by group (A ignored)."""
        on = np.where(self.step > 0.0, self.step, 1.0)
        rounded = np.where(self.step > 0.0, np.round(action / on) * on, action)
        snapped: Floats = np.clip(rounded, self.low, self.high)
        rows = np.arange(len(action))
        for group, chosen, choices in zip(self.groups, self.chosen, self.choices, strict=True):
            share = action[:, group] * self.unit[group]
            share[rows, chosen] += 1.0
            best = np.where(choices, share, -np.inf).argmax(axis=1)
            snapped[:, group] = self.switch(group, chosen, best)
        return snapped

    def snap_within(self, action: Floats) -> Floats:
        """Return the nearest lattice action, or the next smaller one where that breaks A."""
        snapped = self.snap(action)
        broken = ~self.meets(snapped)
        if broken.any():
            on = np.where(self.step > 0.0, self.step, 1.0)
            shorter = np.where(self.step > 0.0, np.trunc(action / on) * on, action)
            snapped[broken] = self.snap(shorter)[broken]
        return snapped

    def switch(self, group: Index, chosen: Index, wanted: Index) -> Floats:
        """Return the action, shape (n, k), that changes each person's category."""
        rows = np.arange(len(chosen))
        bits = np.zeros((len(chosen), len(group)))
        bits[rows, wanted] += 1.0
        bits[rows, chosen] -= 1.0
        change: Floats = bits / self.unit[group]
        return change

    def meets(self, action: Floats) -> Mask:
        """Return whose action meets A δ + b ≥ 0."""
        if self.A is None or self.b is None:
            return np.ones(len(action), bool)
        inside: Mask = np.all(action @ self.A.T + self.b >= -TOLERANCE, axis=1)
        return inside

    def changed(self, action: Floats) -> NDArray[np.int64]:
        """Return how many blocks each action touches."""
        count = np.zeros(len(action), np.int64)
        grouped = [int(j) for group in self.groups for j in group]
        alone = np.ones(action.shape[1], bool)
        alone[grouped] = False
        count += (action[:, alone] != 0.0).sum(axis=1)
        for group in self.groups:
            count += (action[:, group] != 0.0).any(axis=1)
        return count


LARGEST_MOVE = 10.0
"""How far a search goes, in standardised units, where nothing bounds the action."""


def feasible_actions(
    actions: ActionSet, X: Floats, largest: Floats | float = LARGEST_MOVE
) -> FeasibleActions:
    """Return what each person may do."""
    low, high = _box(actions, X)
    d = X.shape[1]
    unit = np.ones(d) if actions.unit is None else actions.unit
    offset = np.zeros(d) if actions.offset is None else actions.offset
    open_low, open_high = np.isneginf(low), np.isposinf(high)
    low = np.where(open_low, np.minimum(-largest, high - largest), low)
    high = np.where(open_high, np.maximum(largest, low + largest), high)
    step = lattice(actions, d)
    low, high = _on_lattice(low, high, step)
    groups, chosen, choices = [], [], []
    for columns in map(np.array, actions.groups):
        now = _category(X[:, columns] * unit[columns] + offset[columns], columns)
        allowed = _choices(now, low[:, columns], high[:, columns], 1.0 / unit[columns])
        low[:, columns], high[:, columns] = _group_box(now, allowed, unit[columns])
        groups.append(columns)
        chosen.append(now)
        choices.append(allowed)
    b = None if actions.b is None else np.broadcast_to(actions.b, (len(X), actions.b.shape[-1]))
    return FeasibleActions(
        low,
        high,
        step,
        unit,
        tuple(groups),
        tuple(chosen),
        tuple(choices),
        actions.A,
        b,
        open_low,
        open_high,
    )


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


def _group_box(now: Index, allowed: Mask, unit: Floats) -> tuple[Floats, Floats]:
    rows = np.arange(len(now))
    elsewhere = allowed.copy()
    elsewhere[rows, now] = False
    high = np.where(elsewhere, 1.0 / unit, 0.0)
    high[rows, now] = np.where(allowed[rows, now], 0.0, -1.0 / unit[now])
    low = np.zeros(allowed.shape)
    low[rows, now] = np.where(elsewhere.any(axis=1), -1.0 / unit[now], 0.0)
    return low, high


def starting_actions(feasible: FeasibleActions) -> Floats:
    """Return each person's starting action: none where that is allowed, else one close to it."""
    home = feasible.snap(np.zeros_like(feasible.low))
    for i in np.flatnonzero(~feasible.meets(home)).tolist():
        home[i] = _some_action(feasible.rows(np.array([i])), i)
    return home


def _some_action(feasible: FeasibleActions, row: int) -> Floats:
    """Return an allowed action of least absolute size for one person, by mixed-integer program."""
    from countermove.recourse._integer_highs import smallest_action

    found = smallest_action(feasible)
    if found is not None:
        return found
    if feasible.A is None or feasible.b is None:
        raise ParameterError("without constraints there is an action by construction")
    best = (
        np.where(feasible.A > 0.0, feasible.high * feasible.A, feasible.low * feasible.A).sum(
            axis=1
        )
        + feasible.b[0]
    )
    broken = np.flatnonzero(best < -TOLERANCE)
    which = (
        f"constraint {shown(broken)} of A δ + b ≥ 0" if broken.size else "A δ + b ≥ 0 as a whole"
    )
    raise InfeasibleActionsError(
        f"the person in row {row} has no allowed action: {which} cannot be met within the bounds",
        rows=[row],
    )
