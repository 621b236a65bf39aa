"""The hold-out is frozen: every challenger, ever, is judged on the same people."""

from __future__ import annotations

from typing import Any

import pandas as pd

from countermove.data.sources import table_hash
from countermove.data.standardise import Standardiser
from countermove.data.storage import canonical_digest, seal, unseal
from countermove.errors import BlockedError
from countermove.production.registry import Registry

PINNED = "holdout.json"


def pin_holdout(
    registry: Registry, holdout: pd.DataFrame, standardiser: Standardiser
) -> dict[str, Any]:
    """Write down which rows judge, until a first challenger was; then, insist on the same.

    Parameters
    ----------
    registry
        Whose champions are judged.
    holdout
        Typed rows.
    standardiser
        The units all versions share.

    Raises
    ------
    BlockedError
        If the rows or the units are no longer those that were frozen.
    """
    facts: dict[str, Any] = {
        "rows": len(holdout),
        "table_sha256": table_hash(holdout),
        "units_sha256": canonical_digest(standardiser.to_json()),
    }
    # As long as nobody was judged on it, a run that failed has frozen nothing.
    if not registry.store.exists(PINNED) or not registry.versions():
        registry.store.write(PINNED, seal(facts))
        return facts
    pinned = unseal(registry.store.read(PINNED), registry.store.where(PINNED))
    if pinned != facts:
        raise BlockedError(
            f"the hold-out has changed: {facts['rows']} rows (SHA-256 "
            f"{facts['table_sha256'][:12]}…) in place of the {pinned['rows']} that were frozen "
            f"({pinned['table_sha256'][:12]}…), or other units. The base table, the seed or the "
            "ingest parameters are not those of the first run: restore them and bring new rows as "
            "batches, or start another registry"
        )
    return facts
