"""Where the work of a run is done."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field

from countermove.params.base import Parameters

if TYPE_CHECKING:
    from countermove.data.partitions import Partitions
    from countermove.execution import Execution

Count = Annotated[int, Field(gt=0)]


class TlsParameters(Parameters):
    """Files by which a scheduler and we know each other (PEM)."""

    ca_file: Path
    cert: Path
    key: Path


class ExecutionParameters(Parameters):
    """Who works: this process, its threads, or a Dask cluster.

    ``scheduler`` None starts ``workers`` processes on this machine (None: one per core) for
    ``engine: dask``. ``rows_per_part`` is how many rows of a table in parts a worker holds.
    """

    engine: Literal["serial", "threads", "dask"] = "serial"
    workers: Count | None = None
    scheduler: str | None = None
    memory_per_worker: str | None = None
    timeout: Annotated[float, Field(gt=0)] = 10.0
    tls: TlsParameters | None = None
    rows_per_part: Count = 250_000

    def build(self) -> Execution:
        """Return where to work."""
        from countermove.execution import Execution, Tls

        said = self.model_dump(exclude={"rows_per_part", "tls"})
        tls = None if self.tls is None else Tls(**self.tls.model_dump())
        return Execution(**said, tls=tls)

    def cut(self, splits: Mapping[str, Partitions]) -> dict[str, Partitions]:
        """Return splits in parts of which workers hold ``rows_per_part`` rows at once."""
        return {
            name: replace(parts, rows_per_part=self.rows_per_part) for name, parts in splits.items()
        }
