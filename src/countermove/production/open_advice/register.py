"""The register of open advice: one sealed file per scored batch, until it expires.

Of a person it holds the keyed hash of the id and the advised columns, nothing else. A file
is replaced whole, so whatever interrupts a run, the register is the old one or the new one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from typing import Any, NamedTuple

from countermove.errors import ModelFileError
from countermove.production.open_advice.keys import advice_key, person_hash
from countermove.production.registry import Registry
from countermove.production.registry.registry import OPEN_ADVICE

FORMAT_VERSION = 1


class AdvisedMove(NamedTuple):
    """Of one column, in original units: direction (+1 or -1) and value advised."""

    way: float
    value: float

    def reached(self, at: float) -> bool:
        """Return whether somebody at this value has done what was advised."""
        return self.way * (at - self.value) >= -ROUNDING * (1.0 + abs(self.value))


Advised = Mapping[str, AdvisedMove]
"""What is advised, by model column."""
ROUNDING = 1e-6
"""Relative slack of a value that was advised: what was rounded on the way counts as reached."""


@dataclass(frozen=True)
class BatchAdvice:
    """The open advice of one batch.

    Attributes
    ----------
    batch, version
        Whose people, and which version advised them.
    given_at, expires_at
        When, UTC; afterwards the file is deleted.
    people
        By keyed hash of the id, what was advised.
    """

    batch: str
    version: str
    given_at: str
    expires_at: str
    people: Mapping[str, Advised]

    def to_record(self) -> dict[str, Any]:
        """Return the record, JSON-ready."""
        return asdict(self) | {"format_version": FORMAT_VERSION}

    @classmethod
    def from_record(cls, record: Mapping[str, Any], where: str) -> BatchAdvice:
        """Read what `to_record` returned; refuse what is not of its form."""
        given = dict(record)
        try:
            if given.pop("format_version") != FORMAT_VERSION:
                raise ModelFileError(f"{where} was written in another format; use its own release")
            people = {
                person: {column: AdvisedMove(*move) for column, move in of.items()}
                for person, of in given["people"].items()
            }
            moves = [move for of in people.values() for move in of.values()]
            found = cls(**given | {"people": people})
            # Whatever is compared later can be: numbers with numbers, times with times.
            all(move.reached(0.0) for move in moves)
            found.has_expired(found.given_at)
        except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
            raise ModelFileError(
                f"{where} does not hold open advice: {error!r}; restore it from a backup"
            ) from error
        return found

    def has_expired(self, at: str) -> bool:
        """Return whether the advice is no longer open at a time."""
        return datetime.fromisoformat(self.expires_at) <= datetime.fromisoformat(at)


class AdviceRegister:
    """Open advice in a registry.

    Parameters
    ----------
    registry
        Beside whose versions it is kept.
    """

    def __init__(self, registry: Registry) -> None:
        self.registry, self._store = registry, registry.store

    def names(self) -> list[str]:
        """Return the batches with a file."""
        listed = (name for name in self._store.names(OPEN_ADVICE) if not name.startswith("."))
        return [name.removesuffix(".json") for name in listed]

    def write(
        self,
        batch: str,
        version: str,
        advised: Mapping[str, Advised],
        days: int,
    ) -> BatchAdvice:
        """Keep what a batch's people, by id, were advised; in place of what was kept for it."""
        key = advice_key(self._store, new=not self.names())
        people = {person_hash(key, row_id): dict(of) for row_id, of in advised.items()}
        now, end = self.registry.time(), self.registry.time(days)
        kept = BatchAdvice(batch, version, now, end, people)
        self._save(kept)
        return kept

    def read(self, batch: str) -> BatchAdvice:
        """Read the file of one batch."""
        name = f"{OPEN_ADVICE}/{batch}.json"
        return BatchAdvice.from_record(self.registry.read(name), self._store.where(name))

    def open(self) -> list[BatchAdvice]:
        """Return what is open now, oldest first; what has expired is deleted on the way."""
        now, found = self.registry.time(), []
        for name in self.names():
            kept = self.read(name)
            if kept.has_expired(now):
                self._store.remove(f"{OPEN_ADVICE}/{name}.json")
            else:
                found.append(kept)
        return sorted(found, key=lambda kept: (kept.given_at, kept.batch))

    def of_people(self, ids: Iterable[str]) -> dict[str, list[tuple[BatchAdvice, str]]]:
        """Return the batches with open advice of some people, by id, and their keyed hash."""
        kept = self.open()
        if not kept:
            return {}
        key = advice_key(self._store, new=False)
        found: dict[str, list[tuple[BatchAdvice, str]]] = {}
        for row_id in ids:
            person = person_hash(key, row_id)
            own = [(batch, person) for batch in kept if person in batch.people]
            if own:
                found[row_id] = own
        return found

    def forget(self, row_id: str) -> dict[str, int]:
        """Delete a person; return how many pieces of advice went, by batch."""
        names = self.names()
        if not names:
            return {}
        person, gone = person_hash(advice_key(self._store, new=False), row_id), {}
        for name in names:
            kept = self.read(name)
            if person in kept.people:
                rest = {other: of for other, of in kept.people.items() if other != person}
                self._save(replace(kept, people=rest))
                gone[name] = 1
        return gone

    def _save(self, kept: BatchAdvice) -> None:
        name = f"{OPEN_ADVICE}/{kept.batch}.json"
        if kept.people:
            self.registry.write(name, kept.to_record())
        elif self._store.exists(name):
            self._store.remove(name)
