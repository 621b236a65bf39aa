"""JSON records that carry the SHA-256 of their own content, so that a change shows."""

from __future__ import annotations

import json
from collections.abc import Mapping
from hashlib import sha256
from typing import Any

from countermove.errors import ModelFileError

SEAL = "seal"


def canonical_digest(record: Mapping[str, Any]) -> str:
    """Return the SHA-256 of a JSON-ready record, whatever the order of its keys."""
    text = json.dumps(record, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return sha256(text.encode()).hexdigest()


def seal(record: Mapping[str, Any]) -> bytes:
    """Return a record as JSON with its digest under ``seal``."""
    sealed = {key: value for key, value in record.items() if key != SEAL}
    return json.dumps(sealed | {SEAL: canonical_digest(sealed)}, indent=2).encode()


def unseal(content: bytes, where: str) -> dict[str, Any]:
    """Return a sealed record without its seal; refuse one that was altered.

    >>> unseal(seal({"a": 1}), "here")
    {'a': 1}
    """
    try:
        record: dict[str, Any] = json.loads(content)
        recorded = record.pop(SEAL)
    except (ValueError, KeyError, AttributeError) as error:
        raise ModelFileError(f"{where} is not a sealed record: {error!r}") from error
    if canonical_digest(record) != recorded:
        raise ModelFileError(
            f"{where} was altered: its content does not match the SHA-256 it records; "
            "restore the file from a backup"
        )
    return record
