"""Labelled batches: read, checked and counted; rows that cannot be used are set aside."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from countermove._types import Index
from countermove.data.checks import repeated_id_problems, rows_problem
from countermove.data.cleaning import clean_rows
from countermove.data.parsing import texts
from countermove.data.quarantine import (
    ROW,
    check_share,
    joined,
    listed_cells,
    nothing_wrong,
    set_aside,
    with_broken,
)
from countermove.data.recipes import outcome_columns
from countermove.data.rows import standardised_table
from countermove.data.schema import LABEL, ROW_ID, Schema
from countermove.data.standardise import Standardiser
from countermove.data.typed_columns import label_words
from countermove.errors import BlockedError, DataError, shown
from countermove.production.registry import Registry
from countermove.production.retraining.corrections import (
    BEFORE,
    CORRECTIONS,
    completed,
    counted_corrections,
)
from countermove.production.retraining.labelled_batch import BATCH, LabelledBatch, Ready
from countermove.production.retraining.ledger import BatchLedger

SEEN = "first_seen"
"""Column that says in which batch a person stood first, labelled or not."""
LABELLED = "first_labelled"
"""Column that says with which batch the first label of a person came, corrected since or not."""
RULE, NEW, DAY = "rule", "new", "day"
SECONDS_A_DAY = 86_400.0


@dataclass(frozen=True)
class Gathered:
    """What the batches hold, all together."""

    rows: pd.DataFrame  # typed, with the column `batch`
    new: list[str]  # names of the new batches
    facts: dict[str, dict[str, Any]]  # of each
    quarantine: pd.DataFrame  # rows set aside, with the column `batch` first
    waiting: pd.DataFrame  # typed, of people whose label has not come yet
    corrections: pd.DataFrame  # labels that took the place of earlier ones


def read_batches(
    registry: Registry,
    batches: Sequence[LabelledBatch],
    base: pd.DataFrame,
    schema: Schema,
    observed: str = "after",
    window: int | None = None,
    labels: Sequence[str] = (),
    ready: Ready = "none",
    labels_needed: bool = True,
) -> tuple[pd.DataFrame, dict[str, dict[str, Any]], pd.DataFrame, pd.DataFrame, pd.DataFrame]:
    """Return rows of the batches in the window, facts, quarantine, who waits, corrections."""
    # ``labels`` are the two values that the base table's outcome has: any other is a wrong row.
    # The facts of a batch say whether it is ``new``, its ``day``, and which version's ``rule`` its
    # people had responded to: None if they were seen before they could, or there was none.
    ledger, pointer = BatchLedger(registry), registry.pointer()
    chosen = ledger.check_new(batches, ready)
    known = {batch.name for batch in chosen.batches} - set(chosen.new)
    found = gather(chosen.batches, known, base, with_labels(schema, labels), labels_needed)
    deployed = pointer.version if pointer is not None and observed == "after" else None
    facts = {}
    for batch in chosen.batches:
        before = ledger.first_use(batch.name)
        facts[batch.name] = found.facts[batch.name] | {
            NEW: batch.name in found.new,
            RULE: deployed if before is None else before[RULE],
            "date": None if batch.date is None else batch.date.isoformat(),
            DAY: (before or {}).get(DAY, day_of(batch.date, registry.time())),
        }
    recent = list(facts) if window is None else list(facts)[-window:]
    rows, waiting = (
        table[table[BATCH].isin(recent)].reset_index(drop=True) if len(table) else table
        for table in (found.rows, found.waiting)
    )
    return rows, facts, found.quarantine, waiting, found.corrections


def day_of(dated: date | None, now: str) -> float:
    """Return the day of a batch, counted from 1970: its date, or else the present."""
    if dated is None:
        return datetime.fromisoformat(now).timestamp() / SECONDS_A_DAY
    return float((dated - date(1970, 1, 1)).days)


def with_labels(schema: Schema, labels: Sequence[str]) -> Schema:
    """Return the schema that names both values of the outcome, those of the base table."""
    if len(labels) != 2 or schema.label.unfavourable is not None:
        return schema
    return replace(schema, label=replace(schema.label, unfavourable=labels[1]))


def new_rows(
    rows: pd.DataFrame,
    facts: Mapping[str, Mapping[str, Any]],
    schema: Schema,
    standardiser: Standardiser,
) -> tuple[pd.DataFrame, pd.Series]:
    """Return the new people as they were observed, standardised, and the batch of each.

    Whose label was corrected came before.
    """
    names = [name for name, batch in facts.items() if batch[NEW]]
    if not names or not len(rows):
        return pd.DataFrame(), pd.Series(dtype="str")
    first = rows[LABELLED] if LABELLED in rows else rows[BATCH]
    new = rows[first.isin(names)].reset_index(drop=True)
    return standardised_table(new.drop(columns=BATCH), schema, standardiser), new[BATCH]


def gather(
    batches: Sequence[LabelledBatch],
    known: Collection[str],
    base: pd.DataFrame,
    schema: Schema,
    labels_needed: bool = True,
) -> Gathered:
    """Read every batch, all but the known ones new, and keep each labelled person once."""
    # A row without a label waits: when the person comes again with one, in a later batch, that row
    # is used. A row that was seen before, cell by cell, counts once.
    _check_distinct(batches)
    frames: list[pd.DataFrame] = []
    facts: dict[str, dict[str, Any]] = {}
    seen = _Seen(base)
    listed: list[pd.DataFrame] = []
    unlabelled: list[pd.DataFrame] = []
    corrections: list[pd.DataFrame] = []
    for place, brought in enumerate(batches):
        whole = completed(brought, batches[:place], schema)
        batch = whole.batch
        typed, waiting, quarantine = _typed(batch, schema, brought, whole.places)
        unlabelled.append(_waiting(batch, schema))
        kept, repeated, other, corrected = seen.unseen(typed, batch.name)
        quarantine = joined([quarantine, whole.unknown, other])
        what = f"batch {batch.name!r}"
        quarantine = with_broken(quarantine, batch.broken)
        check_share(what, quarantine, brought.rows, schema.quarantine, BlockedError)
        frames.append(kept.drop(columns=ROW, errors="ignore"))
        facts[batch.name] = {
            "sha256": brought.sha256,
            "rows": brought.rows,
            "used": len(kept),
            "waiting_for_label": waiting,
            "repeated": repeated,
            "set_aside": set_aside(quarantine),
            "corrected": counted_corrections(corrected),
        }
        for name, part in corrected.groupby(BEFORE):
            facts[str(name)]["used"] -= len(part)
        corrections.append(corrected)
        quarantine.insert(0, BATCH, batch.name)
        listed.append(quarantine)
    rows = pd.concat(frames, ignore_index=True) if frames else pd.DataFrame()
    every = pd.concat([pd.DataFrame(columns=list(CORRECTIONS)), *corrections], ignore_index=True)
    if len(rows):  # Whoever is corrected is as old as when they came first.
        first = every.drop_duplicates(ROW_ID).set_index(ROW_ID)[BEFORE].to_dict()
        rows = rows.drop_duplicates(ROW_ID, keep="last", ignore_index=True)
        rows[LABELLED] = [first.get(*pair) for pair in zip(rows[ROW_ID], rows[BATCH], strict=True)]
    rows, unlabelled_rows = _first_seen(rows, unlabelled)
    new = [batch.name for batch in batches if batch.name not in known]
    several = labels_needed or not len(unlabelled_rows)
    if new and several and not sum(facts[name]["used"] for name in new):
        raise BlockedError(
            f"nothing new to learn from: batches {shown(new)} hold no labelled row that was not "
            f"seen before ({sum(facts[name]['waiting_for_label'] for name in new)} wait for their "
            "label); the champion stays"
        )
    return Gathered(rows, new, facts, joined(listed), unlabelled_rows, every)


def _first_seen(
    rows: pd.DataFrame, unlabelled: Sequence[pd.DataFrame]
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Say in which batch everybody stood first; return the labelled, and those who still wait."""
    nobody = pd.DataFrame(columns=[ROW_ID, BATCH], dtype="str")
    waiting = pd.concat([table for table in unlabelled if len(table)] or [nobody])
    if not len(rows) or not len(waiting):
        first = rows.assign(**{SEEN: rows[LABELLED]}) if len(rows) else rows
        return first, waiting.reset_index(drop=True)
    waiting = waiting.drop_duplicates(ROW_ID)
    before = rows[ROW_ID].map(waiting.set_index(ROW_ID)[BATCH])
    still = waiting[~waiting[ROW_ID].isin(rows[ROW_ID])]
    return rows.assign(**{SEEN: before.fillna(rows[LABELLED])}), still.reset_index(drop=True)


def _waits(batch: LabelledBatch, fitting: Schema) -> NDArray[np.bool_]:
    """Return which rows have no label yet."""
    if fitting.label.column not in batch.raw:
        return np.zeros(len(batch.raw), dtype=np.bool_)
    cells, two = batch.raw[fitting.label.column], fitting.label.favourable is not None
    known = label_words(cells, fitting.label) if two else texts(cells)
    return known.isna().to_numpy(np.bool_)


def _waiting(batch: LabelledBatch, schema: Schema) -> pd.DataFrame:
    """Return the people of a batch whose label has not come yet, typed, their label NaN."""
    # Nothing is learned from them but where people stand; what is wrong with a row is said when
    # its label comes.
    fitting = _fitting(schema, batch.raw)
    waiting = _waits(batch, fitting)
    if not waiting.any():
        return pd.DataFrame()
    outcome: dict[str, Any] = dict(outcome_columns(fitting))
    raw = batch.raw[waiting].assign(**outcome)
    try:
        typed = clean_rows(raw, fitting, part_from=0).table
    except DataError as error:
        raise BlockedError(f"batch {batch.name!r}, rows without a label: {error}") from error
    if fitting.id is None:
        typed[ROW_ID] = batch.name + ":" + typed[ROW_ID].astype("str")
    return typed.assign(**{LABEL: np.nan}).assign(**{BATCH: batch.name})


def _check_distinct(batches: Sequence[LabelledBatch]) -> None:
    by_hash: dict[str, str] = {}
    for batch in batches:
        before = by_hash.setdefault(batch.sha256, batch.name)
        if before != batch.name and len(batch.raw):
            raise BlockedError(
                f"batch {batch.name!r} is batch {before!r} again, cell by cell; remove one"
            )


def _typed(
    batch: LabelledBatch, schema: Schema, brought: LabelledBatch, places: Index
) -> tuple[pd.DataFrame, int, pd.DataFrame]:
    """Return the labelled rows of a batch, typed, how many wait for a label, the quarantine."""
    if not len(brought.raw):
        raise BlockedError(
            f"batch {batch.name!r} is empty: it has columns and no row; look at the job that "
            "writes it, or remove the file"
        )
    fitting, raw = _fitting(schema, batch.raw), batch.raw
    waiting = _waits(batch, fitting)
    if waiting.all():
        nobody = pd.DataFrame({ROW_ID: pd.Series(dtype="str"), LABEL: []})
        return nobody, int(waiting.sum()), nothing_wrong()
    places = places[~waiting]
    try:
        read = clean_rows(raw[~waiting], fitting, part_from=0)
    except DataError as error:
        rows = [int(places[row]) for row in error.rows if row < len(places)]
        raise BlockedError(f"batch {batch.name!r}: {error}", rows=rows) from error
    typed = read.table.assign(**{ROW: places[read.kept]}).assign(**{BATCH: batch.name})
    listed = read.quarantine.assign(**{ROW: places[read.quarantine[ROW].to_numpy(np.intp)]})
    if fitting.id is None:
        typed[ROW_ID] = batch.name + ":" + typed[ROW_ID].astype("str")
        listed[ROW_ID] = batch.name + ":" + listed[ROW_ID].astype("str")
    # Of one person's rows that differ, none is known to be right; equal ones count once later.
    contents = pd.Series(_contents(typed), index=typed.index)
    several = (contents.groupby(typed[ROW_ID]).transform("nunique") > 1).to_numpy(np.bool_)
    problems = repeated_id_problems(typed[ROW_ID], several)
    listed = joined([listed, listed_cells(problems, typed, typed[ROW_ID], typed[ROW].to_numpy())])
    return typed[~several].reset_index(drop=True), int(waiting.sum()), listed


def _fitting(schema: Schema, raw: pd.DataFrame) -> Schema:
    """Return the schema without its recipe for a batch that is cleaned already."""
    cleaned = {feature.name for feature in schema.features} <= set(map(str, raw.columns))
    return replace(schema, cleaning=None) if schema.cleaning is not None and cleaned else schema


class _Seen:
    """Whom the batches have brought so far: where, with which cells, and which label."""

    def __init__(self, base: pd.DataFrame) -> None:
        self._people = {
            row_id: ("the base table", digest, label)
            for row_id, digest, label in zip(
                base[ROW_ID], _contents(base.drop(columns=LABEL)), base[LABEL], strict=True
            )
        }
        self._base = frozenset(self._people)

    def unseen(
        self, typed: pd.DataFrame, name: str
    ) -> tuple[pd.DataFrame, int, pd.DataFrame, pd.DataFrame]:
        """Return rows to use, how many were seen alike, the quarantine, and corrected labels."""
        keep = np.ones(len(typed), dtype=np.bool_)
        where: dict[str, list[int]] = {}
        corrected: list[tuple[Any, ...]] = []
        cells = _contents(typed.drop(columns=LABEL))
        for place, person in enumerate(zip(typed[ROW_ID], cells, typed[LABEL], strict=True)):
            row_id, digest, label = person
            before = self._people.get(row_id)
            if before is None or (
                before[1] == digest and before[2] != label and row_id not in self._base
            ):
                if before is not None:
                    corrected.append((name, row_id, before[0], before[2], label))
                self._people[row_id] = (name, digest, label)
                continue
            keep[place] = False
            if before[1:] != (digest, label):
                where.setdefault(before[0], []).append(place)
        found = pd.DataFrame(corrected, columns=list(CORRECTIONS))
        other = _listed_again(typed, where)
        return typed[keep], int(np.sum(~keep)) - len(other), other, found


def _listed_again(typed: pd.DataFrame, where: Mapping[str, list[int]]) -> pd.DataFrame:
    """Return the quarantine of known ids with other values."""
    problems = []
    for before, places in where.items():
        mask = np.zeros(len(typed), dtype=np.bool_)
        mask[places] = True
        expected = (
            f"the values it had in {before} (another label alone is a correction, but of the base "
            "table); a person who applies again needs a new id, a corrected row goes into the "
            "batch it came with (kedro countermove supersede)"
        )
        problems += rows_problem("an id seen before", mask, columns=(ROW_ID,), expected=expected)
    rows = typed[ROW].to_numpy(np.intp) if ROW in typed else np.arange(0)
    return listed_cells(problems, typed, typed[ROW_ID], rows)


def _contents(typed: pd.DataFrame) -> list[int]:
    """Return a hash of each row's cells, its id and batch left out."""
    cells = typed.drop(columns=[ROW_ID, BATCH, ROW], errors="ignore")
    hashes: list[int] = pd.util.hash_pandas_object(cells, index=False).tolist()
    return hashes
