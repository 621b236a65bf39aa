"""Where work runs: one after the other, in threads, or on a Dask cluster."""

from __future__ import annotations

from countermove.execution.mapping import Done, Execution, Mapper, SerialMapper, ThreadMapper, Tls
from countermove.execution.ordered import map_ordered
from countermove.execution.parts import PartsRun, PartTask, map_parts

__all__ = [
    "Done",
    "Execution",
    "Mapper",
    "PartTask",
    "PartsRun",
    "SerialMapper",
    "ThreadMapper",
    "Tls",
    "map_ordered",
    "map_parts",
]
