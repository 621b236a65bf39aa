"""Versions of a rule, decisions about them, and one pointer to the champion.

A version is there once its facts are, which are written last. The pointer is
the only file that is ever replaced. So whatever interrupts a run, what was the
champion still loads; `recover` then finishes or clears away what was begun.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from countermove.data.schema import Schema
from countermove.data.storage import canonical_digest, seal, unseal
from countermove.errors import ModelFileError, nearest
from countermove.production.registry.records import Decision, Pointer, sequence_of
from countermove.production.registry.signing import Signer
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
    schema
        The present one: models made for another are refused; None takes all.
    options
        Credentials of the file system.
    clock
        Gives the time; only names and records carry it, nothing is ordered by it.
    signer
        Signs and checks records; None: with the keys that the environment names, if any.
    """

    def __init__(
        self,
        url: str,
        schema: Schema | None = None,
        options: Mapping[str, Any] | None = None,
        clock: Callable[[], datetime] = now,
        signer: Signer | None = None,
    ) -> None:
        self.store = Store(url, options)
        self.signer = Signer.from_environment() if signer is None else signer
        self._schema, self._clock = schema, clock

    def time(self, days: int = 0) -> str:
        """Return the present time, or that in some days, as records carry it."""
        return (self._clock() + timedelta(days=days)).isoformat(timespec="seconds")

    def read(self, name: str) -> dict[str, Any]:
        """Return a record; refuse one that is damaged, altered, or signed by nobody with a key."""
        where = self.store.where(name)
        return self.signer.verified(name, unseal(self.store.read(name), where), where)

    def write(self, name: str, record: Mapping[str, Any]) -> None:
        """Write or replace a record, sealed, and signed if there is a key."""
        self.store.write(name, seal(self.signer.signed(name, record)))

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
        self.write(f"{VERSIONS}/{version}/{FACTS}", record)
        return digest

    def load(self, version: str) -> StoredVersion:
        """Read a version; refuse one that is damaged, altered or not there."""
        known = self.versions()
        if version not in known:
            hint = nearest(version, known) if known else "there is none yet"
            raise ModelFileError(f"{self.store.where()} holds no version {version!r}: {hint}")
        place = f"{VERSIONS}/{version}"
        facts = self._facts(f"{place}/{FACTS}")
        model, digest = unpack_model(
            lambda name: self.store.read(f"{place}/{name}"),
            self.store.where(place),
            self._schema,
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
            return Pointer.from_record(self.read(CHAMPION), self.store.where(CHAMPION))
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
        found = Decision.from_record(self.read(name), self.store.where(name))
        if found.version != version:
            raise ModelFileError(
                f"{self.store.where(name)} is decision {found.version}; restore the file"
            )
        return found

    def record(self, decision: Decision) -> None:
        """Write down a decision; after this it is carried out, even if the run dies here."""
        name = f"{DECISIONS}/{decision.version}.json"
        if self.store.exists(name):
            raise ModelFileError(
                f"{self.store.where(name)} exists already: decisions do not change"
            )
        self.write(name, decision.to_record())

    def carry_out(self, decision: Decision) -> Pointer:
        """Point to the champion that a recorded decision chose, after verifying it."""
        if not decision.changes_champion or decision.champion_after is None:
            raise ModelFileError(f"decision {decision.version} leaves the champion as it is")
        chosen = (decision.champion_after, decision.version, decision.champion_before)
        pointer = self._pointing(*chosen, decision.at)
        self.write(CHAMPION, pointer.to_record())
        return pointer

    def _pointing(self, version: str, decided_by: str, previous: str | None, since: str) -> Pointer:
        """Return a pointer to a version, which is verified."""
        chosen = self.load(version)
        return Pointer(
            version=chosen.version,
            sha256=chosen.sha256,
            facts_sha256=canonical_digest(chosen.facts),
            decided_by=decided_by,
            previous=previous,
            since=since,
            metrics=chosen.facts["metrics"],
            data_hash=chosen.facts["data_hash"],
        )

    def sign_all(self) -> int:
        """Sign every record with the present key; return how many there are."""
        # One after the other, each replaced whole: a kill leaves some signed by the old key.
        names = list(self._records())
        for name in names:
            self.write(name, self.read(name))
        return len(names)

    def _records(self) -> Iterator[str]:
        folders = ("", DECISIONS, OPEN_ADVICE)
        for folder in folders:
            for name in self.store.names(folder):
                if name.endswith(".json") and not name.startswith("."):
                    yield f"{folder}/{name}".lstrip("/")
        yield from (f"{VERSIONS}/{version}/{FACTS}" for version in self.versions())

    def _facts(self, name: str) -> dict[str, Any]:
        """Read the facts of a version, which name the model's SHA-256."""
        facts = self.read(name)
        kinds = {"sha256": str, "metrics": dict, "data_hash": str}
        odd = [key for key, kind in kinds.items() if not isinstance(facts.get(key), kind)]
        if odd:
            raise ModelFileError(
                f"{self.store.where(name)} does not hold what it should; look at: {', '.join(odd)},"
                " and restore the file from a backup"
            )
        return facts

    def _listed(self) -> list[str]:
        return [name for name in self.store.names(VERSIONS) if not name.startswith(".")]

    def _decided(self) -> list[str]:
        names = [name for name in self.store.names(DECISIONS) if not name.startswith(".")]
        return [name.removesuffix(".json") for name in names]
