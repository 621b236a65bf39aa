"""Where work runs: one after the other, in threads, or on a Dask cluster."""

from __future__ import annotations

from countermove.execution._mapping import (
    Execution,
    Mapper,
    SerialMapper,
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
    phase,
    pieces,
    search_bar,
    step_bar,
    watched,
)

__all__ = [
    "Execution",
    "Mapper",
    "PartTask",
    "PartsRun",
    "Piece",
    "SerialMapper",
    "Tls",
    "cores",
    "counting_bar",
    "few_threads",
    "in_turn",
    "map_ordered",
    "map_parts",
    "matrix_of",
    "phase",
    "pieces",
    "pieces_of",
    "search_bar",
    "step_bar",
    "watched",
]

__dir__ = __all__.copy
