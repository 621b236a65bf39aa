"""The file of the ledger: what people did about batches, oldest first, replaced whole."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any, Literal, get_args

from countermove.errors import ModelFileError
from countermove.production.registry import Decision, Registry
from countermove.production.retraining.promotion import BATCHES

LEDGER = "batches.json"
Act = Literal["withdrawn", "restored", "superseded", "confirmed"]


@dataclass(frozen=True)
class LedgerEntry:
    """What somebody did about a batch.

    Attributes
    ----------
    batch, act
        Which batch, and what was done.
    contents
        SHA-256 of the contents it is about.
    by
        SHA-256 of the content that takes their place; None: none does.
    at, reason
        When, UTC, and why, in words.
    """

    batch: str
    act: Act
    contents: list[str]
    by: str | None
    at: str
    reason: str


def read_entries(registry: Registry) -> list[LedgerEntry]:
    """Return what people did; nothing where nobody did anything."""
    if not registry.store.exists(LEDGER):
        return []
    listed = registry.read(LEDGER).get("entries")
    try:
        return [_entry(each) for each in listed]  # type: ignore[union-attr]
    except (TypeError, ValueError) as error:
        raise ModelFileError(
            f"{registry.store.where(LEDGER)} is no ledger of batches: {error}; restore it from a "
            "backup"
        ) from error


def add_entry(registry: Registry, known: Sequence[LedgerEntry], entry: LedgerEntry) -> None:
    """Write the ledger with one entry more."""
    registry.write(LEDGER, {"entries": [asdict(each) for each in (*known, entry)]})


def of_batches(decision: Decision) -> bool:
    """Return whether a challenger was made of batches; refuse facts that are not of their form."""
    facts = decision.facts.get(BATCHES)
    if decision.outcome not in ("promoted", "kept") or facts is None:
        return False
    each = facts.values() if isinstance(facts, dict) else [None]
    if not all(isinstance(of, dict) and isinstance(of.get("sha256"), str) for of in each):
        raise ModelFileError(
            f"decision {decision.version} does not say which batches it used; restore its file"
        )
    return True


def _entry(given: Any) -> LedgerEntry:
    entry = LedgerEntry(**given)
    listed = entry.contents if isinstance(entry.contents, list) else [None]
    texts = (entry.batch, entry.at, entry.reason, entry.by or "", *listed)
    if entry.act not in get_args(Act) or not all(isinstance(each, str) for each in texts):
        raise ValueError(f"an entry about {str(entry.batch)[:80]!r} is not of its form")
    datetime.fromisoformat(entry.at)
    return entry
