"""What a run has to work with: the batches, which are new, and what their people answered."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from countermove.data.rows import standardised_table
from countermove.data.schema import Schema
from countermove.data.standardise import Standardiser
from countermove.errors import BlockedError, shown
from countermove.production.registry import Registry
from countermove.production.retraining.batches import BATCH, Batch, gather
from countermove.production.retraining.deciding import looked_at
from countermove.production.retraining.training import LEARNED_FROM, Deployed, challenger_rows
from countermove.response import Response

SHA256, RULE, NEW = "sha256", "rule", "new"


def take_stock(
    registry: Registry,
    batches: Sequence[Batch],
    base: pd.DataFrame,
    schema: Schema,
    observed: str = "after",
    window: int | None = None,
) -> tuple[pd.DataFrame, dict[str, dict[str, Any]]]:
    """Return the typed rows of the batches in the window, and the facts of every batch.

    The facts of a batch say whether it is ``new`` and which version's ``rule`` its people
    had answered: None if they were seen before they could, or there was none.

    Raises
    ------
    BlockedError
        If there is a champion and no new batch, or `gather` refuses a batch.
    """
    pointer = registry.pointer()
    known = looked_at(registry.decisions())
    missing = sorted(set(known) - {batch.name for batch in batches})
    if missing:
        raise BlockedError(
            f"batches that earlier decisions were based on are gone: {shown(missing)}; restore them"
        )
    found = gather(batches, {name: facts[SHA256] for name, facts in known.items()}, base, schema)
    if pointer is not None and not found.new:
        raise BlockedError(
            f"no new batch: all {len(batches)} were looked at before; the champion "
            f"{pointer.version} stays"
        )
    deployed = pointer.version if pointer is not None and observed == "after" else None
    facts = {
        name: counted
        | {NEW: name in found.new, RULE: known[name][RULE] if name in known else deployed}
        for name, counted in found.facts.items()
    }
    recent = list(facts) if window is None else list(facts)[-window:]
    rows = found.rows[found.rows[BATCH].isin(recent)] if len(found.rows) else found.rows
    return rows.reset_index(drop=True), facts


def rules_answered(
    registry: Registry, facts: Mapping[str, Mapping[str, Any]]
) -> dict[str, Deployed]:
    """Return by batch the rule its people had answered, loaded and verified."""
    versions = {batch[RULE] for batch in facts.values() if batch[RULE] is not None}
    scores = {version: registry.load(version).model.rule for version in versions}
    return {name: Deployed(scores.get(batch[RULE])) for name, batch in facts.items()}


def collect(
    registry: Registry,
    base: Sequence[pd.DataFrame],
    batches: pd.DataFrame,
    facts: Mapping[str, Mapping[str, Any]],
    schema: Schema,
    standardiser: Standardiser,
    response: Response,
    fractions: Mapping[str, float],
    seed: int,
) -> tuple[pd.DataFrame, ...]:
    """Return train, validation and calibration rows: the base's, and the batches' beside them."""
    parts = challenger_rows(
        dict(zip(LEARNED_FROM, base, strict=True)),
        batches,
        rules_answered(registry, facts),
        schema,
        standardiser,
        response,
        fractions,
        seed,
    )
    return tuple(parts[name] for name in LEARNED_FROM)


def new_rows(
    rows: pd.DataFrame,
    facts: Mapping[str, Mapping[str, Any]],
    schema: Schema,
    standardiser: Standardiser,
) -> tuple[pd.DataFrame, pd.Series]:
    """Return the new people as they were observed, standardised, and the batch of each."""
    names = [name for name, batch in facts.items() if batch[NEW]]
    if not names or not len(rows):
        return pd.DataFrame(), pd.Series(dtype="str")
    new = rows[rows[BATCH].isin(names)].reset_index(drop=True)
    return standardised_table(new.drop(columns=BATCH), schema, standardiser), new[BATCH]
