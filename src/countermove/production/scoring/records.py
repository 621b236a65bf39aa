"""What a batch leaves on disk: what it was begun with, and the decisions.

``<folder>/<batch>/`` appears whole, by one rename, with its manifest in it; until
then all of it lies in ``<folder>/.<batch>.partial/``, which no reader looks at.
"""

from __future__ import annotations

import os
import shutil
from collections import Counter
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from countermove.data.storage import (
    beside,
    flush,
    replace_file,
    restore,
    seal,
    sha256_of,
    unseal,
)
from countermove.errors import ModelFileError, StorageError
from countermove.production.scoring.exploring import EXPLORED, PROPENSITY

if TYPE_CHECKING:
    import pyarrow as pa

MANIFEST = "manifest.json"
STARTED = "started.json"
FORGOTTEN = "forgotten"
"""Key of a manifest: how many people were deleted from the batch since it was scored."""
APPROVED, REFUSED = "approved", "refused"
COMPARED = "compared"
"""Key of a manifest: how often the champion and the challenger beside it agree."""


BESIDE = ("champion_decision", "challenger_decision")
"""Columns of parts that a challenger was beside."""


@dataclass(frozen=True)
class BatchStart:
    """What a batch is decided by from its first part to its last, whatever happens between."""

    batch: str
    content_sha256: str
    version: str
    model_sha256: str
    settings: str  # digest of all that decisions and advice depend on
    started_at: str
    challenger: str  # the version beside it; "": none

    def write(self, folder: Path) -> None:
        """Write it down, to the disk."""
        replace_file(folder / STARTED, seal(asdict(self)))

    @classmethod
    def read(cls, folder: Path) -> BatchStart | None:
        """Return what a batch was begun with; None if it was not."""
        path = folder / STARTED
        if not path.is_file():
            return None
        record = unseal(path.read_bytes(), str(path))
        texts = all(isinstance(value, str) for value in record.values())
        known = {entry.name for entry in fields(cls)}
        if not texts or set(record) != known:
            raise ModelFileError(
                f"{path} does not hold what it should; remove {folder} to begin the batch again "
                "(nothing of it was published)"
            )
        return cls(**record)


@dataclass(frozen=True)
class BatchFolder:
    """Where a batch lies: the folder of all scored batches, and its id."""

    folder: Path
    batch: str

    @property
    def published(self) -> Path:
        """The finished batch."""
        return self.folder / self.batch

    @property
    def work(self) -> Path:
        """What is under way; nothing of it is published."""
        return beside(self.published, "partial")

    @property
    def lock(self) -> Path:
        """Held by the run that is at work on the batch."""
        return beside(self.published, "lock")

    def manifest(self) -> dict[str, Any] | None:
        """Return the manifest of the finished batch; None if it is not finished."""
        restore(self.published)
        path = self.published / MANIFEST
        if not self.published.exists():
            return None
        if not path.is_file():
            raise ModelFileError(
                f"{self.published} holds no {MANIFEST}, so it is not known what was decided about "
                "these people; restore the file, or give the batch another id"
            )
        record = unseal(path.read_bytes(), str(path))
        texts = ("batch", "version", "content_sha256", "finished_at")
        if not all(isinstance(record.get(name), str) for name in texts):
            raise ModelFileError(
                f"{path} does not say what was scored ({', '.join(texts)}); restore the file"
            )
        return record

    def publish(self, finished: Path, manifest: dict[str, Any]) -> None:
        """Write the manifest beside the finished parts, then let all of it appear at once."""
        replace_file(finished / MANIFEST, seal(manifest))
        try:
            os.rename(finished, self.published)
        except OSError as error:
            if not self.published.exists():
                raise
            raise StorageError(
                f"{self.published} was published by another run meanwhile, and stays as it is; "
                "machines that share a folder have to share its locks"
            ) from error
        flush(self.folder)
        shutil.rmtree(self.work, ignore_errors=True)


def counted(finished: Path) -> dict[str, Any]:
    """Return the counts of finished parts and the digest of each, once they are on the disk."""
    import pyarrow.parquet as pq

    decisions: Counter[str] = Counter({APPROVED: 0, REFUSED: 0})
    statuses: Counter[str] = Counter()
    compared: Counter[str] = Counter()
    outside: int | None = 0
    parts: list[dict[str, Any]] = []
    for path in sorted(finished.glob("part-*.parquet")):
        known = set(pq.read_schema(path).names)
        wanted = ("decision", "status", "outside_training_range", *BESIDE)
        table = pq.read_table(path, columns=[name for name in wanted if name in known])
        for pair in table["decision"].value_counts().to_pylist():
            decisions[APPROVED if pair["values"] > 0 else REFUSED] += pair["counts"]
        for pair in table["status"].value_counts().to_pylist():
            statuses[pair["values"]] += pair["counts"]
        beyond = table["outside_training_range"]
        unknown = outside is None or beyond.null_count
        outside = None if unknown else outside + int(beyond.to_numpy().sum())  # type: ignore[operator]
        parts.append({"file": path.name, "rows": len(table), "sha256": _digest(path)})
        if known >= set(BESIDE):
            compared.update(_agreement(table))
    return {
        "rows": sum(part["rows"] for part in parts),
        "decisions": dict(decisions),
        "statuses": dict(sorted(statuses.items())),
        "outside_training_range": outside,
        "parts": parts,
    } | ({COMPARED: dict(compared)} if compared else {})


def _agreement(table: pa.Table) -> dict[str, int]:
    """Count how a champion and the challenger beside it decided."""
    champion, challenger = (np.asarray(table[name]) > 0 for name in BESIDE)
    masks = {
        "both_approve": champion & challenger,
        "both_refuse": ~champion & ~challenger,
        "only_champion_approves": champion & ~challenger,
        "only_challenger_approves": ~champion & challenger,
    }
    return {name: int(mask.sum()) for name, mask in masks.items()}


def drawn(finished: Path) -> dict[str, int]:
    """Count whom the rule refused, and whom of them a draw approved."""
    import pyarrow.parquet as pq

    counts = {"refused": 0, "approved": 0}
    for path in finished.glob("part-*.parquet"):
        table = pq.read_table(path, columns=[EXPLORED, PROPENSITY])
        counts["refused"] += int((table[PROPENSITY].to_numpy() < 1.0).sum())
        counts["approved"] += int(table[EXPLORED].to_numpy().sum())
    return counts


def _digest(path: Path) -> str:
    """Return the SHA-256 of a file, after it has reached the disk."""
    flush(path)
    return sha256_of(path)
