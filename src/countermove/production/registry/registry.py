"""Versions of a rule, decisions about them, and one pointer to the champion.

A version is there once its facts are, which are written last. The pointer is
the only file that is ever replaced. So whatever interrupts a run, what was the
champion still loads; `recover` then finishes or clears away what was begun.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from countermove.data.storage import canonical_digest, seal, unseal
from countermove.errors import ModelFileError, nearest
from countermove.production.registry.records import Decision, Pointer, sequence_of
from countermove.production.registry.store import Store
from countermove.scores.storage import PublishedModel, pack_model, unpack_model

CHAMPION = "champion.json"
VERSIONS = "versions"
DECISIONS = "decisions"
OPEN_ADVICE = "open_advice"
FACTS = "version.json"


def now() -> datetime:
    """Return the present time, UTC."""
    return datetime.now(UTC)


@dataclass(frozen=True)
class StoredVersion:
    """A version as it was stored.

    Attributes
    ----------
    version
        Its name: a number that only grows, and when it was made.
    model
        The rule, verified against its hashes.
    sha256
        Of the model's description, which holds that of the weights.
    facts
        ``certificates``, ``metrics``, ``data_hash``, ``calibration`` and what else the run
        that made it wanted kept.
    """

    version: str
    model: PublishedModel
    sha256: str
    facts: dict[str, Any]


@dataclass(frozen=True)
class Champion(StoredVersion):
    """The version that decides, with the pointer that says so."""

    pointer: Pointer


class Registry:
    """A folder, or any fsspec URL, that holds every version of one dataset's rule.

    Parameters
    ----------
    url
        Where, e.g. ``data/06_models/credit``.
    schema_digest
        Of the present schema: models made for another are refused; None takes all.
    options
        Credentials of the file system.
    clock
        Gives the time; only names and records carry it, nothing is ordered by it.
    """

    def __init__(
        self,
        url: str,
        schema_digest: str | None = None,
        options: Mapping[str, Any] | None = None,
        clock: Callable[[], datetime] = now,
    ) -> None:
        self.store = Store(url, options)
        self._schema_digest, self._clock = schema_digest, clock

    def time(self, days: int = 0) -> str:
        """Return the present time, or that in some days, as records carry it."""
        return (self._clock() + timedelta(days=days)).isoformat(timespec="seconds")

    def next_version(self) -> str:
        """Return a name that no version and no decision bears: one more than the largest."""
        known = [*self._listed(), *self._decided()]
        number = 1 + max((sequence_of(name) for name in known), default=0)
        return f"{number:06d}-{self._clock():%Y%m%dT%H%M%SZ}"

    def versions(self) -> list[str]:
        """Return the complete versions, oldest first."""
        return [name for name in self._listed() if self.store.exists(f"{VERSIONS}/{name}/{FACTS}")]

    def add(self, version: str, model: PublishedModel, facts: Mapping[str, Any]) -> str:
        """Store a version, its facts last; return the SHA-256 of its model."""
        if self.store.names(f"{VERSIONS}/{version}"):
            raise ModelFileError(f"version {version} exists already and is never overwritten")
        files, digest = pack_model(model)
        for name, content in files.items():
            self.store.write(f"{VERSIONS}/{version}/{name}", content)
        record = dict(facts) | {"version": version, "sha256": digest}
        self.store.write(f"{VERSIONS}/{version}/{FACTS}", seal(record))
        return digest

    def load(self, version: str) -> StoredVersion:
        """Read a version; refuse one that is damaged, altered or not there."""
        known = self.versions()
        if version not in known:
            hint = nearest(version, known) if known else "there is none yet"
            raise ModelFileError(f"{self.store.where()} holds no version {version!r}: {hint}")
        place = f"{VERSIONS}/{version}"
        facts = unseal(self.store.read(f"{place}/{FACTS}"), self.store.where(f"{place}/{FACTS}"))
        model, digest = unpack_model(
            lambda name: self.store.read(f"{place}/{name}"),
            self.store.where(place),
            self._schema_digest,
        )
        if digest != facts["sha256"]:
            raise ModelFileError(
                f"the model of version {version} is not the one that was stored: its SHA-256 is "
                f"{digest[:12]}…, recorded was {facts['sha256'][:12]}…; restore the files, "
                "or go back with: kedro countermove rollback"
            )
        return StoredVersion(version, model, digest, facts)

    def pointer(self) -> Pointer | None:
        """Read ``champion.json``; None before the first promotion."""
        if not self.store.exists(CHAMPION):
            return None
        try:
            return Pointer.from_bytes(self.store.read(CHAMPION), self.store.where(CHAMPION))
        except ModelFileError as error:
            raise ModelFileError(
                f"{error}. Or choose another champion by name: kedro countermove rollback VERSION"
            ) from error

    def champion(self) -> Champion | None:
        """Return the version that decides, or None; refuse it if anything was altered."""
        pointer = self.pointer()
        if pointer is None:
            return None
        found = self.load(pointer.version)
        for said, seen in (
            (pointer.sha256, found.sha256),
            (pointer.facts_sha256, canonical_digest(found.facts)),
        ):
            if said != seen:
                raise ModelFileError(
                    f"the champion {pointer.version} was altered after its promotion: the pointer "
                    f"says {said[:12]}…, its files give {seen[:12]}…; restore them, or go back "
                    "with: kedro countermove rollback"
                )
        return Champion(found.version, found.model, found.sha256, found.facts, pointer)

    def decisions(self) -> list[Decision]:
        """Return every decision, oldest first."""
        return [self.decision(version) for version in self._decided()]

    def decision(self, version: str) -> Decision:
        """Read one decision."""
        name = f"{DECISIONS}/{version}.json"
        return Decision.from_bytes(self.store.read(name), self.store.where(name))

    def record(self, decision: Decision) -> None:
        """Write down a decision; after this it is carried out, even if the run dies here."""
        name = f"{DECISIONS}/{decision.version}.json"
        if self.store.exists(name):
            raise ModelFileError(
                f"{self.store.where(name)} exists already: decisions do not change"
            )
        self.store.write(name, decision.to_bytes())

    def carry_out(self, decision: Decision) -> Pointer:
        """Point to the champion that a recorded decision chose, after verifying it."""
        if not decision.changes_champion or decision.champion_after is None:
            raise ModelFileError(f"decision {decision.version} leaves the champion as it is")
        chosen = self.load(decision.champion_after)
        pointer = Pointer(
            version=chosen.version,
            sha256=chosen.sha256,
            facts_sha256=canonical_digest(chosen.facts),
            decided_by=decision.version,
            previous=decision.champion_before,
            since=decision.at,
            metrics=chosen.facts["metrics"],
            data_hash=chosen.facts["data_hash"],
        )
        self.store.write(CHAMPION, pointer.to_bytes())
        return pointer

    def _listed(self) -> list[str]:
        return [name for name in self.store.names(VERSIONS) if not name.startswith(".")]

    def _decided(self) -> list[str]:
        names = self.store.names(DECISIONS)
        return [name.removesuffix(".json") for name in names if not name.startswith(".")]
