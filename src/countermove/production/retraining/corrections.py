"""Labels that are corrected later, and labels that cannot be right.

Whoever comes again as they were, with another label, is corrected: the newest label counts, and
both stay in their files and on record. A new batch whose labels contradict the base table is
asked about before anything is learned from it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import log_expit
from scipy.stats import rankdata

from countermove._types import Floats, Index
from countermove.data.checks import rows_problem
from countermove.data.parsing import texts
from countermove.data.quarantine import listed_cells, nothing_wrong
from countermove.data.rows import coded_features
from countermove.data.schema import LABEL, ROW_ID, Schema
from countermove.errors import BlockedError, shown
from countermove.production.retraining.labelled_batch import BATCH, LabelledBatch
from countermove.production.retraining.set_back import as_seen, fit

BEFORE, LABEL_BEFORE = "batch_before", "label_before"
CORRECTIONS = (BATCH, ROW_ID, BEFORE, LABEL_BEFORE, LABEL)
SWAPPED = -4.0
"""z of the base rule's ranking below which labels look swapped: by chance once in 30,000."""
IMPROBABLE = math.log(1e-6)
"""Log-probability below which it is asked why everybody has the same label."""


@dataclass(frozen=True)
class CompletedBatch:
    """A batch of ids and labels with the other cells as they came before.

    ``places`` are the rows of the file, ``unknown`` lists ids that stand in no earlier batch.
    """

    batch: LabelledBatch
    places: Index
    unknown: pd.DataFrame
    by_form: bool = False  # the file holds ids and labels only: it is there to correct


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
    return CompletedBatch(whole, np.flatnonzero(found), unknown, by_form=True)


def counted_corrections(corrected: pd.DataFrame) -> dict[str, dict[str, int]]:
    """Count, by the batch that a label had come with, which way labels were corrected."""
    found: dict[str, dict[str, int]] = {}
    for name, part in corrected.groupby(BEFORE):
        up = int((part[LABEL] > 0).sum())
        found[str(name)] = {"to_favourable": up, "to_unfavourable": len(part) - up}
    return found


def check_corrections(
    batch: str, corrected: pd.DataFrame, facts: Mapping[str, Mapping[str, Any]], largest: float
) -> None:
    """Ask about a batch that gives many people of an earlier one another label by the way."""
    for name, part in corrected.groupby(BEFORE):
        rows = facts[str(name)]["rows"]
        if len(part) > largest * rows:
            raise BlockedError(
                f"batch {batch!r} gives {len(part)} of the {rows} people of batch {name!r} another "
                f"label, e.g. {shown(part[ROW_ID], 3)}: {_asked(batch)}, or bring corrections as a "
                "file of ids and labels"
            )


def check_labels(
    rows: pd.DataFrame, names: Iterable[str], base: pd.DataFrame, schema: Schema
) -> None:
    """Ask about new batches whose labels contradict the base table far beyond chance."""
    chosen = [name for name in names if len(rows) and (rows[BATCH] == name).any()]
    if not chosen or base[LABEL].nunique() < 2:
        return
    rule = _BaseRule(base, schema)
    for name in chosen:
        words = rule.contradicted(rows[rows[BATCH] == name])
        if words is not None:
            raise BlockedError(f"batch {name!r}: {words}; {_asked(name)}")


def _asked(batch: str) -> str:
    return (
        "correct the file, or, if its labels are right, confirm them with: kedro countermove "
        f"batches --confirm-labels {batch}"
    )


class _BaseRule:
    """The rule that the base table's labels follow."""

    def __init__(self, base: pd.DataFrame, schema: Schema) -> None:
        self._schema = schema
        X = coded_features(base, schema)
        self._mean, spread = np.nanmean(X, axis=0), np.nanstd(X, axis=0)
        self._scale = np.where(spread > 0.0, spread, 1.0)
        seen = as_seen(self._standard(X), base[LABEL].to_numpy(np.float64))
        self._theta = fit([seen], [1.0], np.zeros(seen.X.shape[1]), iterations=40, within="base")

    def _standard(self, X: Floats) -> Floats:
        found: Floats = np.nan_to_num((X - self._mean) / self._scale, nan=0.0)
        return found

    def contradicted(self, rows: pd.DataFrame) -> str | None:
        """Return how labels contradict the rule; None if they do not."""
        X = self._standard(coded_features(rows, self._schema))
        score, good = X @ self._theta[:-1] + self._theta[-1], rows[LABEL].to_numpy() > 0
        up, n = int(good.sum()), len(good)
        if up in (0, n):
            chance = float(log_expit(score if up else -score).sum())
            if chance >= IMPROBABLE:
                return None
            kind = "favourable" if up else "unfavourable"
            return (
                f"all {n} labels are {kind}, which by the base table has a probability of "
                f"1e{chance / math.log(10.0):.0f}"
            )
        ranks = rankdata(score)
        auc = (float(ranks[good].sum()) - up * (up + 1) / 2) / (up * (n - up))
        z = (auc - 0.5) / math.sqrt((n + 1) / (12.0 * up * (n - up)))
        if z >= SWAPPED:
            return None
        return (
            "its labels contradict the base table, as labels that were swapped do: of a favourable "
            f"and an unfavourable person the base ranks the favourable higher in {auc:.0%} (z = "
            f"{z:.1f}, {n} people)"
        )
