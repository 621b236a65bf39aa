"""Gates say yes or no; the registry is told first what was decided, then what follows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

import pandas as pd

from countermove.data.sources import table_hash
from countermove.errors import ModelFileError
from countermove.production.gates.base import GateResult
from countermove.production.history import History
from countermove.production.registry import Decision, Registry
from countermove.scores.storage import PublishedModel

BATCHES = "batches"
"""Key of a decision's facts: the batches it looked at, with hashes and the rule of the time."""


def settle(
    registry: Registry,
    history: History,
    challenger: PublishedModel,
    version_facts: Mapping[str, Any],
    gates: Sequence[GateResult],
    facts: Mapping[str, Any],
) -> Decision:
    """Keep the challenger, decide by its gates, and carry the decision out.

    Whatever stops the run on the way, the champion loads: the challenger is stored before
    it is decided about, the decision is recorded before the pointer moves, and the history
    follows from both.

    Parameters
    ----------
    registry, history
        Where versions and decisions go.
    challenger
        The calibrated rule.
    version_facts
        What is kept with it: ``certificates``, ``metrics``, ``data_hash``, ``forecast`` ….
    gates
        What they found.
    facts
        What else the decision records.
    """
    pointer = registry.pointer()
    before = None if pointer is None else pointer.version
    version = registry.next_version()
    registry.add(version, challenger, version_facts)
    refused = [gate for gate in gates if gate.passed is False]
    decision = Decision(
        version=version,
        kind="cold_start" if before is None else "retrain",
        outcome="kept" if refused else "promoted",
        at=registry.time(),
        champion_before=before,
        champion_after=before if refused else version,
        reasons=[f"{gate.name}: {gate.words}" for gate in refused or gates],
        facts=dict(facts) | {"gates": [gate.to_json() for gate in gates]},
    )
    registry.record(decision)
    if decision.changes_champion:
        registry.carry_out(decision)
    history.add_decisions([decision])
    return decision


def settle_challenger(
    registry: Registry,
    history: History,
    challenger: PublishedModel,
    calibration: Mapping[str, Any],
    judged: Mapping[str, Any],
    seen: Mapping[str, Any],
    train: pd.DataFrame,
    people: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Settle a judged challenger; return the decision, JSON-ready.

    Parameters
    ----------
    registry, history, challenger
        As in `settle`.
    calibration
        Its threshold and promises.
    judged
        What `weigh` returned.
    seen
        What the run looked at: ``batches``, ``holdout``, ``outcomes``, ``drift``.
    train
        The rows it was trained on, for their hash.
    people
        Settings of the people it was made for, kept with it.
    """
    shown = judged["judgement"]
    version_facts = {
        "metrics": {"accuracy": shown["accuracy"]["challenger"], "people": shown["people"]},
        "certificate": calibration["certificate"],
        "certificates": calibration["certificates"],
        "threshold": calibration["threshold"],
        "terms": calibration["terms"],
        "forecast": judged["forecast"],
        "data_hash": table_hash(train),
        "people": None if people is None else dict(people),
    }
    drift = {key: seen["drift"].get(key) for key in ("recommendation", "reasons", "reason")}
    facts = dict(seen) | {"judgement": shown, "forecast": judged["forecast"], "drift": drift}
    gates = [GateResult(**gate) for gate in judged["gates"]]
    return asdict(settle(registry, history, challenger, version_facts, gates, facts))


def blocked(registry: Registry, history: History, reason: str) -> Decision:
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


def roll_back(registry: Registry, history: History, version: str | None = None) -> Decision:
    """Make an earlier version the champion again; the one before the present by default.

    The version is loaded and verified first. An unreadable pointer does not stand in the
    way when the version is named.
    """
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


def looked_at(decisions: Sequence[Decision]) -> dict[str, dict[str, Any]]:
    """Return every batch that a challenger was made from: its hash and the rule it answered."""
    found: dict[str, dict[str, Any]] = {}
    for decision in decisions:
        if decision.outcome in ("promoted", "kept"):
            found = dict(decision.facts.get(BATCHES, {})) | found
    return found


def judged_before(decisions: Sequence[Decision]) -> int:
    """Return how many challengers the hold-out has judged."""
    return sum(decision.outcome in ("promoted", "kept") for decision in decisions)
