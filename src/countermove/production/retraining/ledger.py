"""The ledger of batches: which were taken, which wait, which were withdrawn or superseded.

Decisions record which contents they were based on, and never change. What people did about a
batch since is one file of the registry, replaced whole. The state of a batch follows from both
and from the files at hand, so nothing has to be written twice, and a kill leaves nothing half done.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from functools import cached_property
from typing import Any, Literal

from countermove.errors import BlockedError, NothingNewError, UnknownNameError, nearest, shown
from countermove.production.forgetting import rehashed
from countermove.production.registry import Decision, Registry
from countermove.production.retraining._ledger_file import (
    Act,
    LedgerEntry,
    add_entry,
    of_batches,
    read_entries,
)
from countermove.production.retraining.labelled_batch import LabelledBatch, Ready
from countermove.production.retraining.promotion import BATCHES

PATIENCE = timedelta(hours=24)
"""How long a file may wait for its marker before a run that finds nothing else alerts people."""
State = Literal[
    "new", "taken", "waiting", "future", "changed", "unreadable", "gone", "superseded", "withdrawn"
]
REFUSED: tuple[State, ...] = ("gone", "changed", "future", "unreadable")
"""States that a person has to look at before a run goes on."""


@dataclass(frozen=True)
class BatchState:
    """One content of one batch, and what became of it."""

    batch: str
    state: State
    sha256: str
    rows: int | None
    set_aside: int | None
    date: str | None
    words: str


@dataclass(frozen=True)
class Selection:
    """The batches that a run takes, which of them are new, and what is said about the others."""

    batches: list[LabelledBatch]
    new: list[str]
    waiting: list[str]
    withdrawn: list[str]  # taken by the last decision, withdrawn or superseded since


class BatchLedger:
    """What the registry knows about one dataset's batches.

    Parameters
    ----------
    registry
        Whose decisions and acts.
    """

    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self._aliases = rehashed(registry)  # Somebody was deleted from these on request.
        decisions = registry.decisions()
        self._decisions = [each for each in decisions if of_batches(each)]
        self._latest_time = max((decision.at[:10] for decision in decisions), default="")

    @cached_property
    def entries(self) -> list[LedgerEntry]:
        """What people did, oldest first."""
        return read_entries(self._registry)

    @property
    def last(self) -> Decision | None:
        """The last decision that a challenger of the batches was made for."""
        return self._decisions[-1] if self._decisions else None

    def first_use(self, name: str) -> Mapping[str, Any] | None:
        """Return the facts of a batch at its first use, which name the rule of the time."""
        found = (decision.facts[BATCHES].get(name) for decision in self._decisions)
        return next((facts for facts in found if facts is not None), None)

    def corrected(self, name: str) -> str:
        """Say which batches the last decision took corrected labels of a batch from; or nothing."""
        used = {} if self.last is None else self.last.facts[BATCHES]
        found = {by: facts.get("corrected", {}).get(name, {}) for by, facts in used.items()}
        counts = [f"{sum(each.values())} by {by}" for by, each in found.items() if each]
        return f"labels corrected: {shown(counts)}" if counts else ""

    # ---- what people do ----

    def withdraw(self, name: str, files: Sequence[LabelledBatch], reason: str) -> str:
        """Take a batch out of all later retrainings; it stays on record."""
        contents = self._contents(name) | {f.sha256 for f in files if f.name == name}
        if not contents:
            self._unknown(name, files)
        if contents <= self._retired(name) and self._act(name) == "withdrawn":
            raise UnknownNameError(f"batch {name!r} is withdrawn already")
        self._add(LedgerEntry(name, "withdrawn", sorted(contents), None, self._now(), reason))
        effect = "no run takes it"
        if name in self.withdrawn():
            effect = "the next run retrains without it, and its decision says so"
        return (
            f"batch {name!r} is withdrawn: {effect}; undo with: kedro countermove withdraw {name} "
            "--undo"
        )

    def restore(self, name: str, reason: str) -> str:
        """Undo a withdrawal."""
        last = [entry for entry in self.entries if entry.batch == name]
        if not last or last[-1].act != "withdrawn":
            raise UnknownNameError(f"batch {name!r} is not withdrawn")
        contents = last[-1].contents
        self._add(LedgerEntry(name, "restored", contents, None, self._now(), reason))
        return f"batch {name!r} is restored: the next run retrains with it"

    def supersede(self, name: str, files: Sequence[LabelledBatch], reason: str) -> str:
        """Let a batch's present content take the place of the one that was used or withdrawn."""
        at_hand = self._file(name, files)
        before = self._contents(name) - {at_hand.sha256}
        if self._current(name, at_hand.sha256):
            raise UnknownNameError(
                f"batch {name!r} has the content that is in use already (SHA-256 "
                f"{at_hand.sha256[:12]}…); put the corrected file in its place first"
            )
        if not before:
            raise UnknownNameError(
                f"batch {name!r} was never used: it has nothing to supersede, the next run takes it"
            )
        if at_hand.problem is not None:
            raise BlockedError(f"batch {name!r} {at_hand.problem}")
        entry = LedgerEntry(name, "superseded", sorted(before), at_hand.sha256, self._now(), reason)
        self._add(entry)
        return (
            f"batch {name!r}: {at_hand.rows} rows (SHA-256 {at_hand.sha256[:12]}…) supersede "
            f"{shown(f'{each[:12]}…' for each in entry.contents)}; the next run retrains with them"
        )

    def confirm(self, name: str, files: Sequence[LabelledBatch], reason: str) -> str:
        """Say that a batch's date is right although it is in the future."""
        content = self._file(name, files).sha256
        self._add(LedgerEntry(name, "confirmed", [content], None, self._now(), reason))
        return f"batch {name!r} is confirmed: the next run takes it"

    # ---- what follows from it ----

    def states(self, files: Sequence[LabelledBatch], ready: Ready = "none") -> list[BatchState]:
        """Return every content of every batch, those of earlier contents first."""
        on_record = [state for name in self._names() for state in self._recorded(name, files)]
        return [*on_record, *(self._state(batch, ready) for batch in files)]

    def select(self, files: Sequence[LabelledBatch], ready: Ready = "none") -> Selection:
        """Return what a run takes; refuse to go on where a person has to look at a batch first."""
        states = self.states(files, ready)
        for refused in REFUSED:
            odd = [each for each in states if each.state == refused]
            if odd:
                raise BlockedError("; ".join(each.words for each in odd[:3]))
        known = {each.batch: each.state for each in states if each.state in ("new", "taken")}
        waiting = [each.words for each in states if each.state == "waiting"]
        return Selection(
            [batch for batch in files if batch.name in known],
            [batch.name for batch in files if known.get(batch.name) == "new"],
            waiting,
            self.withdrawn(),
        )

    def check_new(self, files: Sequence[LabelledBatch], ready: Ready = "none") -> Selection:
        """Return what a run takes; leave if there is a champion and nothing has changed."""
        chosen, pointer = self.select(files, ready), self._registry.pointer()
        if pointer is None or self.last is None or chosen.new or chosen.withdrawn:
            return chosen
        said = "".join(f"; {words}" for words in chosen.waiting)
        late = [
            batch.name
            for batch in files
            if batch.changed_at is not None
            and self._state(batch, ready).state == "waiting"
            and datetime.fromisoformat(self._now()) - batch.changed_at > PATIENCE
        ]
        if late:
            raise BlockedError(
                f"no new batch, and {shown(late)} has waited for more than a day{said}. Write the "
                "marker, or withdraw the batch with: kedro countermove withdraw NAME"
            )
        raise NothingNewError(
            f"no new batch: all {len(chosen.batches)} were looked at before{said}; the champion "
            f"{pointer.version} stays"
        )

    def withdrawn(self) -> list[str]:
        """Return the batches of the last decision whose content was withdrawn or superseded."""
        if self.last is None:
            return []
        used = self.last.facts[BATCHES]
        return [name for name, facts in used.items() if facts["sha256"] in self._retired(name)]

    def _recorded(self, name: str, files: Sequence[LabelledBatch]) -> Iterator[BatchState]:
        """Yield the contents of a batch that its file does not hold now."""
        at_hand = {batch.sha256 for batch in files if batch.name == name}
        retired, uses = self._retired(name), self._uses(name)
        for content in uses:
            if content in retired and content not in at_hand:
                state: State = "withdrawn" if self._act(name) == "withdrawn" else "superseded"
                yield self._described(name, state, content, uses[content], self._last_words(name))
        if at_hand or self.last is None or self._act(name) == "withdrawn":
            return
        if name in self.last.facts[BATCHES]:
            content = self.last.facts[BATCHES][name]["sha256"]
            words = (
                f"batch {name!r}, which the last decision was based on, is gone: restore its file, "
                f"or leave it out with: kedro countermove withdraw {name}"
            )
            yield self._described(name, "gone", content, uses.get(content, {}), words)

    def _state(self, batch: LabelledBatch, ready: Ready) -> BatchState:
        state, words = self._what(batch, ready)
        facts = dict(self._uses(batch.name).get(batch.sha256, {})) | {"rows": batch.rows}
        day = None if batch.date is None else batch.date.isoformat()
        return self._described(batch.name, state, batch.sha256, facts, words, day)

    def _what(self, batch: LabelledBatch, ready: Ready) -> tuple[State, str]:
        """Return the state of a file, and a sentence."""
        name, content = batch.name, batch.sha256
        if self._current(name, content) and self._act(name) != "withdrawn":
            if self._in_last(name, content):
                return "taken", ""
        elif content in self._retired(name) and self._act(name) == "withdrawn":
            return "withdrawn", self._last_words(name)
        elif self._contents(name):
            return "changed", self._changed_words(batch)
        waits = batch.waits(ready)
        if waits is not None:
            return "waiting", f"batch {name!r} {waits}; it is not taken"
        if batch.problem is not None:
            return "unreadable", f"batch {name!r} {batch.problem}"
        if self._in_future(batch):
            return "future", (
                f"batch {name!r} is dated {batch.date}, which is in the future (today is "
                f"{self._today()}): correct its name, or, if the date is right, confirm it with: "
                f"kedro countermove batches --confirm {name}"
            )
        return "new", f"batch {name!r} is new"

    def _changed_words(self, batch: LabelledBatch) -> str:
        known = shown(f"{each[:12]}…" for each in sorted(self._contents(batch.name)))
        done = "withdrawn" if self._act(batch.name) == "withdrawn" else "used"
        return (
            f"batch {batch.name!r} has changed since it was {done}: SHA-256 "
            f"{batch.sha256[:12]}… now, {known} then. If this content is the corrected one, take "
            f"it with: kedro countermove supersede {batch.name}; otherwise restore the file"
        )

    def _described(
        self,
        name: str,
        state: State,
        content: str,
        facts: Mapping[str, Any],
        words: str,
        day: str | None = None,
    ) -> BatchState:
        rows, aside = facts.get("rows"), facts.get("set_aside")
        return BatchState(name, state, content, rows, aside, day or facts.get("date"), words)

    # ---- contents ----

    def _names(self) -> list[str]:
        used = (name for decision in self._decisions for name in decision.facts[BATCHES])
        return list(dict.fromkeys([*used, *(entry.batch for entry in self.entries)]))

    def _uses(self, name: str) -> dict[str, Mapping[str, Any]]:
        """Return the contents of a batch that decisions were based on, with the last facts."""
        found: dict[str, Mapping[str, Any]] = {}
        for decision in self._decisions:
            facts = decision.facts[BATCHES].get(name)
            if facts is not None:
                found[facts["sha256"]] = facts
        return found

    def _contents(self, name: str) -> set[str]:
        """Return every content a batch is known to have had."""
        found = set(self._uses(name)) | set(self._aliases.get(name, ()))
        for entry in self.entries:
            if entry.batch == name and entry.act != "confirmed":
                found |= {*entry.contents} | ({entry.by} if entry.by is not None else set())
        return found

    def _retired(self, name: str) -> set[str]:
        """Return the contents of a batch that are no longer used."""
        found: set[str] = set()
        for entry in self.entries:
            if entry.batch == name and entry.act in ("withdrawn", "superseded"):
                found |= set(entry.contents)
                found -= {entry.by}
            elif entry.batch == name and entry.act == "restored":
                found -= set(entry.contents)
        return found

    def _current(self, name: str, content: str) -> bool:
        """Return whether a content is the one to be used: known, and not retired."""
        return content in self._contents(name) - self._retired(name)

    def _in_last(self, name: str, content: str) -> bool:
        """Return whether the last decision used this content, or it before a deletion."""
        if self.last is None or name not in self.last.facts[BATCHES]:
            return False
        used = self.last.facts[BATCHES][name]["sha256"]
        deleted_from = content in self._aliases.get(name, ()) and used not in self._retired(name)
        return bool(used == content or deleted_from)

    def _act(self, name: str) -> Act | None:
        acts = [e.act for e in self.entries if e.batch == name and e.act != "confirmed"]
        return acts[-1] if acts else None

    def _last_words(self, name: str) -> str:
        entry = [e for e in self.entries if e.batch == name and e.act != "confirmed"][-1]
        why = f": {entry.reason}" if entry.reason else ""
        return f"batch {name!r} was {entry.act} on {entry.at[:10]}{why}"

    def _in_future(self, batch: LabelledBatch) -> bool:
        # A day's grace: it may be tomorrow already where the batch was made.
        ahead = batch.date is not None and batch.date > self._today() + timedelta(days=1)
        return ahead and not self._confirmed(batch)

    def _confirmed(self, batch: LabelledBatch) -> bool:
        known = (e for e in self.entries if e.batch == batch.name and e.act == "confirmed")
        return any(batch.sha256 in entry.contents for entry in known)

    def _today(self) -> date:
        """Return the present day; a clock that was set back does not make the past the future."""
        return date.fromisoformat(max(self._now()[:10], self._latest_time))

    def _now(self) -> str:
        return self._registry.time()

    def _file(self, name: str, files: Sequence[LabelledBatch]) -> LabelledBatch:
        for batch in files:
            if batch.name == name:
                return batch
        return self._unknown(name, files)

    def _unknown(self, name: str, files: Sequence[LabelledBatch]) -> LabelledBatch:
        known = sorted({*self._names(), *(batch.name for batch in files)})
        hint = nearest(name, known) if known else "there is none"
        raise UnknownNameError(f"there is no file of a batch {name!r}: {hint}")

    def _add(self, entry: LedgerEntry) -> None:
        add_entry(self._registry, self.entries, entry)
        self.__dict__.pop("entries", None)
