"""Columns of the look-ahead paper's collectives: what it names, and what its code moves."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from countermove.dynamics.crowd import Crowd
from countermove.production.lookahead_table import LookaheadTable

CONSTANT = "constant"
"""The column of ones that the published code appends and, by its numbers, lets people change."""


def narrowed(people: LookaheadTable, dropped: Sequence[str]) -> LookaheadTable:
    """Return the people without some columns (the paper's Figures 2 to 4 leave out the first)."""
    gone = people.columns(dropped) if dropped else ()
    kept = [j for j in range(len(people.names)) if j not in gone]
    crowd = people.crowd
    return LookaheadTable(
        Crowd(crowd.X[:, kept], crowd.y, crowd.weight),
        tuple(people.names[j] for j in kept),
        tuple(name for name in people.changeable if name not in dropped),
    )


def chosen(columns: Sequence[str], people: LookaheadTable) -> tuple[str, ...]:
    """Return the columns named, or all that people can change; each checked to be one."""
    names = tuple(columns or people.changeable)
    people.columns(names)
    return names


def with_constant(people: LookaheadTable) -> LookaheadTable:
    """Return the people with a last column of ones, as the published code has them."""
    X = np.column_stack([people.crowd.X, np.ones(people.crowd.n)])
    return LookaheadTable(people.crowd.moved(X), (*people.names, CONSTANT))


def moved_in_code(name: str, people: LookaheadTable, narrow: LookaheadTable) -> str:
    """Return the column that the published code moves where the paper names another.

    The code drops the first column and keeps the numbers of the others, so that each name
    stands for its neighbour to the right, and the last one for the constant.
    """
    position = people.columns([name])[0]
    return (*narrow.names, CONSTANT)[position]
