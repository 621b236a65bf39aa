"""Where work runs: one after the other, in threads, or on a Dask cluster."""

from __future__ import annotations

from countermove.execution._mapping import (
    Done,
    Execution,
    Mapper,
    SerialMapper,
    ThreadMapper,
    Tls,
    cores,
    map_ordered,
)
from countermove.execution._parts import (
    PartsRun,
    PartTask,
    Piece,
    map_parts,
    matrix_of,
    pieces_of,
)
from countermove.execution._progress import part_bar, step_bar, watched

__all__ = [
    "Done",
    "Execution",
    "Mapper",
    "PartTask",
    "PartsRun",
    "Piece",
    "SerialMapper",
    "ThreadMapper",
    "Tls",
    "cores",
    "map_ordered",
    "map_parts",
    "matrix_of",
    "part_bar",
    "pieces_of",
    "step_bar",
    "watched",
]

__dir__ = __all__.copy
