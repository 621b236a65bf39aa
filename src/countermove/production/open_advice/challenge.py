"""What a challenger would do to people who follow the advice they were given."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator

import numpy as np
import pyarrow as pa

from countermove._types import Floats
from countermove.data.partitions import Partitions
from countermove.data.schema import ROW_ID, Schema
from countermove.errors import DataError
from countermove.execution import matrix_of
from countermove.production.open_advice.keys import advice_key, person_hash
from countermove.production.open_advice.register import AdviceRegister, Advised, BatchAdvice
from countermove.production.registry import Registry
from countermove.production.scoring.applicants import AdmitTask, usable
from countermove.scores.base import values
from countermove.scores.storage import PublishedModel

logger = logging.getLogger(__name__)
ROWS = 100_000
"""Rows of a batch held at once."""
Applicants = Callable[..., Partitions]
"""From the id of a batch to its raw files."""


def broken_advice(
    registry: Registry, applicants: Applicants, schema: Schema, challenger: PublishedModel
) -> dict[str, int]:
    """Return how much advice is open, how much could be judged, and how much would be broken."""
    # The register holds the advised columns only: the others are in the applicants' own files, as
    # long as those are kept.
    kept = AdviceRegister(registry).open()
    counts = {"open": sum(len(batch.people) for batch in kept), "judged": 0, "broken": 0}
    if not counts["open"]:
        return counts
    key = advice_key(registry.store, new=False)
    for batch in kept:
        try:
            raw = applicants(batch.batch, rows_per_part=ROWS)
        except DataError as error:
            logger.warning("open advice of batch %r cannot be judged: %s", batch.batch, error)
            continue
        for judged, broken in _parts(raw, batch, key, schema, challenger):
            counts["judged"] += judged
            counts["broken"] += broken
    return counts


def _parts(
    raw: Partitions, batch: BatchAdvice, key: bytes, schema: Schema, challenger: PublishedModel
) -> Iterator[tuple[int, int]]:
    """Yield, per part of a batch, how many are judged and how many the challenger would refuse."""
    task, names, first = AdmitTask(schema), tuple(schema.feature_names), 0
    for _, part in raw.raw():
        rows = usable(task(pa.Table.from_pandas(part.frame, preserve_index=False), first))
        first += len(part.frame)
        hashes = [person_hash(key, str(row_id)) for row_id in rows[ROW_ID].to_pylist()]
        who = [place for place, person in enumerate(hashes) if person in batch.people]
        if not who:
            continue
        X = matrix_of(rows, names)[who]
        for x, place in zip(X, who, strict=True):
            _follow(x, batch.people[hashes[place]], names)
        after = values(challenger.rule, challenger.standardiser.transform(X))
        yield len(who), int(np.count_nonzero(after < 0.0))


def _follow(x: Floats, advised: Advised, names: tuple[str, ...]) -> None:
    """Move a person, in place, to what was advised."""
    for column, move in advised.items():
        if column in names:
            x[names.index(column)] = move.value
