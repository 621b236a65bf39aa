"""Labels that are corrected later.

Whoever comes again as they were, with another label, is corrected: the newest label counts, and
both stay in their files and on record.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from countermove._types import Index
from countermove.data.checks import rows_problem
from countermove.data.parsing import texts
from countermove.data.quarantine import listed_cells, nothing_wrong
from countermove.data.schema import LABEL, ROW_ID, Schema
from countermove.production.retraining.labelled_batch import BATCH, LabelledBatch

BEFORE, LABEL_BEFORE = "batch_before", "label_before"
CORRECTIONS = (BATCH, ROW_ID, BEFORE, LABEL_BEFORE, LABEL)


@dataclass(frozen=True)
class CompletedBatch:
    """A batch of ids and labels with the other cells as they came before.

    ``places`` are the rows of the file, ``unknown`` lists ids that stand in no earlier batch.
    """

    batch: LabelledBatch
    places: Index
    unknown: pd.DataFrame


def completed(
    batch: LabelledBatch, earlier: Sequence[LabelledBatch], schema: Schema
) -> CompletedBatch:
    """Return a batch that can be read like any other."""
    columns, label = set(map(str, batch.raw.columns)), schema.label.column
    if schema.id is None or columns != {schema.id, label} or not len(batch.raw):
        return CompletedBatch(batch, np.arange(len(batch.raw)), nothing_wrong())
    ids = texts(batch.raw[schema.id])
    known = pd.concat(
        [each.raw.assign(**{ROW_ID: texts(each.raw[schema.id])}) for each in earlier
         if schema.id in each.raw and set(map(str, each.raw.columns)) != columns]
        or [pd.DataFrame({ROW_ID: []})],
        ignore_index=True,
    ).drop_duplicates(ROW_ID, keep="last")  # fmt: skip
    found = ids.isin(known[ROW_ID]).to_numpy(np.bool_)
    problems = rows_problem(
        "an id that stands in no earlier batch", ~found, columns=(schema.id,),
        expected="somebody of an earlier batch: a file of ids and labels corrects or completes it",
    )  # fmt: skip
    unknown = listed_cells(problems, batch.raw, ids, np.arange(len(ids)))
    rows = known.set_index(ROW_ID).loc[ids[found]].reset_index(drop=True)
    raw = rows.assign(**{label: batch.raw[label][found].to_numpy()})
    whole = replace(batch, raw=raw, content=batch.sha256)
    return CompletedBatch(whole, np.flatnonzero(found), unknown)


def counted_corrections(corrected: pd.DataFrame) -> dict[str, dict[str, int]]:
    """Count, by the batch that a label had come with, which way labels were corrected."""
    found: dict[str, dict[str, int]] = {}
    for name, part in corrected.groupby(BEFORE):
        up = int((part[LABEL] > 0).sum())
        found[str(name)] = {"to_favourable": up, "to_unfavourable": len(part) - up}
    return found
