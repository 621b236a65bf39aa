"""Cells of an experiment, whoever works on them: results in the order of the items."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from countermove.execution.mapping import Mapper, SerialMapper, Work
from countermove.execution.progress import part_bar


def map_ordered(
    work: Work,
    items: Sequence[Any],
    shared: Any = None,
    mapper: Mapper | None = None,
    what: str = "cells",
) -> list[Any]:
    """Return what a function makes of every item, in their order, with a bar on a terminal.

    Parameters
    ----------
    work, items, shared
        As in `Mapper.map`.
    mapper
        Who works; here, one item after the other, by default.
    what
        What the bar counts.
    """
    workers = SerialMapper() if mapper is None else mapper
    found: dict[int, Any] = {}
    with part_bar(len(items), what=what) as advance:
        for done in workers.map(work, items, shared):
            found[done.index] = done.value
            advance()
    return [found[index] for index in range(len(items))]
