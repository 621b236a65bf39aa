"""Promotion: the decision about a challenger is recorded first, then carried out.

The pointer to the champion is the last file of the registry that a decision writes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import pandas as pd

from countermove.data.sources import table_hash
from countermove.errors import ModelFileError
from countermove.production.gates.base import GateResult
from countermove.production.history import DecisionHistory
from countermove.production.registry import Decision, Registry
from countermove.production.registry.records import Kind
from countermove.scores.storage import PublishedModel

if TYPE_CHECKING:
    from countermove.production.retraining.nightly import Followed

BATCHES = "batches"
"""Key of a decision's facts: the batches it used, with hashes and the rule of the time."""


def promote_or_keep(
    registry: Registry,
    history: DecisionHistory,
    challenger: PublishedModel,
    version_facts: Mapping[str, Any],
    gates: Sequence[GateResult],
    facts: Mapping[str, Any],
    adopted: bool = False,
) -> Decision:
    """Store the challenger, decide by its gates, and carry the decision out.

    An adopted model without a champion decides already: its gates are recorded only.
    """
    # Whatever stops the run on the way, the champion loads: the challenger is stored before it is
    # decided about, the decision is recorded before the pointer moves; the history follows both.
    pointer = registry.pointer()
    before = None if pointer is None else pointer.version
    version = registry.next_version()
    registry.add(version, challenger, version_facts)
    refused = [gate for gate in gates if gate.passed is False]
    kept = bool(refused) and not (adopted and before is None)
    kind: Kind = "cold_start" if before is None else "retrain"
    decision = Decision(
        version=version,
        kind="adoption" if adopted else kind,
        outcome="kept" if kept else "promoted",
        at=registry.time(),
        champion_before=before,
        champion_after=before if kept else version,
        reasons=[f"{gate.name}: {gate.words}" for gate in refused or gates],
        facts=dict(facts) | {"gates": [gate.to_json() for gate in gates]},
    )
    registry.record(decision)
    if decision.changes_champion:
        registry.carry_out(decision)
    history.add_decisions([decision])
    return decision


def decide_on_challenger(
    registry: Registry,
    history: DecisionHistory,
    challenger: PublishedModel,
    calibration: Mapping[str, Any],
    evaluated: Mapping[str, Any],
    seen: Mapping[str, Any],
    train: pd.DataFrame,
    people: Mapping[str, Any] | None = None,
    followed: Followed | None = None,
    adopted: bool = False,
) -> dict[str, Any]:
    """Decide on an evaluated challenger; return the decision, JSON-ready."""
    shown = evaluated["judgement"]
    version_facts = {
        "metrics": {"accuracy": shown["accuracy"]["challenger"], "people": shown["people"]},
        "certificate": calibration["certificate"],
        "certificates": calibration["certificates"],
        "threshold": calibration["threshold"],
        "terms": calibration["terms"],
        "forecast": evaluated["forecast"],
        "data_hash": table_hash(train),
        "people": None if people is None else dict(people),
    }
    drift = {key: seen["drift"].get(key) for key in ("recommendation", "reasons", "reason")}
    facts = dict(seen) | {"judgement": shown, "forecast": evaluated["forecast"], "drift": drift}
    gates = [GateResult(**gate) for gate in evaluated["gates"]]
    kept = any(gate.passed is False for gate in gates)
    if followed is not None:
        facts["policy"] = followed.to_json()
        night = followed.night
        if night is not None:
            facts["policy"]["memory"] = night.after(promoted=not kept).to_json()
            version_facts |= {"reach": night.people.to_json(), "allowance": night.allowance}
    given = (version_facts, gates, facts, adopted)
    return asdict(promote_or_keep(registry, history, challenger, *given))


def record_blocked(registry: Registry, history: DecisionHistory, reason: str) -> Decision:
    """Record that the rows at hand allowed no retraining; the champion stays."""
    pointer = registry.pointer()
    champion = None if pointer is None else pointer.version
    decision = Decision(
        registry.next_version(),
        "cold_start" if champion is None else "retrain",
        "blocked",
        registry.time(),
        champion,
        champion,
        [reason],
    )
    registry.record(decision)
    history.add_decisions([decision])
    return decision


def roll_back(
    registry: Registry, history: DecisionHistory, version: str | None = None, force: bool = False
) -> Decision:
    """Make an earlier version the champion again; the one before the present by default.

    A version that was never promoted (its gates refused it, or its run was interrupted before
    they were checked) has to be forced.
    """
    # An unreadable pointer does not stand in the way when the version is named.
    try:
        pointer = registry.pointer()
    except ModelFileError:
        if version is None:
            raise
        pointer = None
    present = None if pointer is None else pointer.version
    target = version if version is not None else (pointer.previous if pointer else None)
    if target is None:
        known = ", ".join(registry.versions()) or "none"
        raise ModelFileError(f"there is no earlier champion to go back to; name a version: {known}")
    if target == present:
        raise ModelFileError(f"version {target} is the champion already")
    registry.load(target)
    if not force:
        _check_promoted(registry, target)
    decision = Decision(
        registry.next_version(),
        "rollback",
        "rolled_back",
        registry.time(),
        present,
        target,
        [f"rolled back from {present or 'an unreadable pointer'} to {target} on request"],
    )
    registry.record(decision)
    registry.carry_out(decision)
    history.add_decisions([decision])
    return decision


def _check_promoted(registry: Registry, version: str) -> None:
    """Refuse a version that did not pass its gates."""
    try:
        made = registry.decision(version)
    except ModelFileError:
        return  # An unreadable decision does not stand in the way of a version that loads.
    if made.outcome in ("kept", "interrupted"):
        raise ModelFileError(
            f"version {version} was never promoted ({made.outcome}): {'; '.join(made.reasons)}. "
            "If it is to decide nevertheless, say so with --force"
        )


def used_batches(decisions: Sequence[Decision]) -> dict[str, dict[str, Any]]:
    """Return every batch that a challenger was made from: its hash and the rule of the time."""
    found: dict[str, dict[str, Any]] = {}
    for decision in decisions:
        if decision.outcome in ("promoted", "kept"):
            found = dict(decision.facts.get(BATCHES, {})) | found
    return found


def challengers_evaluated(decisions: Sequence[Decision]) -> int:
    """Return how many challengers were evaluated on the hold-out."""
    return sum(decision.outcome in ("promoted", "kept") for decision in decisions)
