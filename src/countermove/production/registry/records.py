"""What the registry writes down: which version is the champion, and why."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any, Literal, Self

from countermove.errors import ModelFileError

FORMAT_VERSION = 1
Kind = Literal["cold_start", "retrain", "adoption", "rollback", "recovery"]
Outcome = Literal["promoted", "kept", "blocked", "rolled_back", "interrupted"]
NAME = re.compile(r"[0-9]{6,12}-[0-9A-Za-z]{1,40}")
"""Of a version: nothing that leads out of its folder, no digits of other scripts."""
CHANGES: tuple[Outcome, ...] = ("promoted", "rolled_back")
"""Outcomes after which another version is the champion."""


def sequence_of(version: str) -> int:
    """Return the number a version begins with.

    Versions are ordered by it and never by the clock, which may go backwards.

    >>> sequence_of("000012-20261116T132005Z")
    12
    """
    if not NAME.fullmatch(version):
        raise ModelFileError(f"{version!r} is no version; they look like 000012-20261116T132005Z")
    return int(version.partition("-")[0])


class _Record:
    """What the registry keeps as one JSON file; fields of other names or types are refused."""

    def to_record(self) -> dict[str, Any]:
        """Return the record, JSON-ready."""
        return asdict(self) | {"format_version": FORMAT_VERSION}  # type: ignore[call-overload, no-any-return]

    @classmethod
    def from_record(cls, record: Mapping[str, Any], where: str) -> Self:
        """Read what `to_record` returned; refuse another format, other fields, other types."""
        given = dict(record)
        if given.pop("format_version", None) != FORMAT_VERSION:
            raise ModelFileError(f"{where} was written in another format; use its own release")
        kinds = {entry.name: _KINDS[str(entry.type)] for entry in fields(cls)}  # type: ignore[arg-type]
        odd = sorted(set(given) ^ set(kinds))
        odd = odd or [name for name, kind in kinds.items() if not isinstance(given[name], kind)]
        if not odd and isinstance(given.get("reasons"), list):
            odd = [] if all(isinstance(each, str) for each in given["reasons"]) else ["reasons"]
        if odd:
            raise ModelFileError(
                f"{where} does not hold what it should; look at: {', '.join(odd)}, and restore "
                "the file from a backup"
            )
        return cls(**given)


_KINDS: dict[str, tuple[type, ...]] = {
    "str": (str,),
    "Kind": (str,),
    "Outcome": (str,),
    "str | None": (str, type(None)),
    "list[str]": (list,),
    "Mapping[str, Any]": (dict,),
    "dict[str, Any]": (dict,),
}
"""What JSON may hold for a field of each type."""


@dataclass(frozen=True)
class Pointer(_Record):
    """``champion.json``: which version decides, and what it must hash to.

    Attributes
    ----------
    version, sha256, facts_sha256
        The version, and the digests of its model and of its facts.
    decided_by
        Version of the decision that set the pointer.
    previous
        The champion before; None after a cold start.
    since
        When, UTC. For people: nothing is ordered by it.
    metrics, data_hash
        What the version showed on the hold-out, and the hash of the rows it was made from.
    """

    version: str
    sha256: str
    facts_sha256: str
    decided_by: str
    previous: str | None
    since: str
    metrics: Mapping[str, Any]
    data_hash: str


@dataclass(frozen=True)
class Decision(_Record):
    """``decisions/<version>.json``: what a run decided, and everything it decided by.

    Attributes
    ----------
    version
        Of the decision; where a challenger was made it is the challenger's.
    kind, outcome
        What ran, and how it ended.
    at
        When, UTC.
    champion_before, champion_after
        Versions; None where there was none.
    reasons
        Why, in plain words, one sentence each.
    facts
        Gates, judgement, forecast, drift, data: JSON-ready.
    """

    version: str
    kind: Kind
    outcome: Outcome
    at: str
    champion_before: str | None
    champion_after: str | None
    reasons: list[str]
    facts: dict[str, Any] = field(default_factory=dict)

    @property
    def sequence(self) -> int:
        """The number of the decision: the order of all of them."""
        return sequence_of(self.version)

    @property
    def changes_champion(self) -> bool:
        """Whether another version decides afterwards."""
        return self.outcome in CHANGES
