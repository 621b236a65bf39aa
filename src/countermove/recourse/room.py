"""What each person may do, with whole numbers and one-hot groups taken seriously.

A `Room` is an `ActionSet` seen by the people of one search: a box whose ends lie
on the lattice of whole numbers, the categories each may choose, and A δ + b ≥ 0.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from countermove._types import Floats, Index, Mask

TOLERANCE = 1e-9
"""Room for rounding in bounds and constraints, a hundredth of what `contains` grants."""


def absent(action: Floats) -> Mask:
    """Return who has no action: NaN stands for none, zeros for staying."""
    mask: Mask = np.isnan(action[:, 0])
    return mask


@dataclass(frozen=True)
class Block:
    """One thing a person decides on: a number, a whole number or a one-hot group."""

    columns: tuple[int, ...]
    kind: Literal["number", "whole", "group"]


@dataclass(frozen=True)
class Room:
    r"""The allowed actions of n people.

    Parameters
    ----------
    low, high
        Least and greatest action, shape (n, d), finite and on the lattice.
    step
        Lattice step per column, shape (d,); 0 where any number will do.
    unit
        Original units per standardised unit, shape (d,).
    groups, chosen, choices
        One-hot columns, each person's present category as a position in the
        group (n,), and who may choose which category (n, k).
    A, b
        Linear constraints, shapes (m, d) and (n, m); None without.
    open_low, open_high
        Where nothing bounds the action but the search's own limit, shape (n, d).
    """

    low: Floats
    high: Floats
    step: Floats
    unit: Floats
    groups: tuple[Index, ...]
    chosen: tuple[Index, ...]
    choices: tuple[Mask, ...]
    A: Floats | None
    b: Floats | None
    open_low: Mask
    open_high: Mask

    @property
    def blocks(self) -> tuple[Block, ...]:
        """What at least one person can decide on."""
        grouped = {int(j) for group in self.groups for j in group}
        free = (self.low < self.high).any(axis=0)
        single = [
            Block((j,), "whole" if self.step[j] > 0.0 else "number")
            for j in np.flatnonzero(free).tolist()
            if j not in grouped
        ]
        joint = [
            Block(tuple(group.tolist()), "group")
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

    def rows(self, who: Index | Mask) -> Room:
        """Return the room of some of the people."""
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

    def only(self, columns: Index) -> Room:
        """Return the room of some columns; nobody moves the others (see `used`)."""
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

    def repeated(self, times: int) -> Room:
        """Return the room with every person ``times`` over, each in a row."""
        return self.rows(np.repeat(np.arange(len(self.low)), times))

    def frozen(self, held: Mask, blocks: tuple[Block, ...]) -> Room:
        """Return the room where person i leaves block k alone if ``held[i, k]`` (if allowed to)."""
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
