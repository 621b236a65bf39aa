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
    few_threads,
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
from countermove.execution._progress import (
    counting_bar,
    in_turn,
    part_bar,
    phase,
    pieces,
    search_bar,
    step_bar,
    watched,
)

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
    "counting_bar",
    "few_threads",
    "in_turn",
    "map_ordered",
    "map_parts",
    "matrix_of",
    "part_bar",
    "phase",
    "pieces",
    "pieces_of",
    "search_bar",
    "step_bar",
    "watched",
]

__dir__ = __all__.copy
