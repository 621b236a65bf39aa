"""Promotion: the decision about a challenger is recorded first, then carried out.

The pointer to the champion is the last file of the registry that a decision writes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from countermove.data.sources import table_hash
from countermove.errors import ModelFileError
from countermove.production.gates.base import GateResult
from countermove.production.history import DecisionHistory
from countermove.production.registry import Decision, Registry, StoredVersion
from countermove.production.registry.records import Kind
from countermove.scores.storage import PublishedModel

if TYPE_CHECKING:
    from countermove.production.retraining.nightly import Followed

SHOWN_WEIGHTS = 5
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


def challengers_evaluated(decisions: Sequence[Decision]) -> int:
    """Return how many challengers were evaluated on the hold-out."""
    return sum(decision.outcome in ("promoted", "kept") for decision in decisions)


def difference(old: StoredVersion, new: StoredVersion) -> list[str]:
    """Return sentences on how two versions differ: threshold, weights, accuracy, promise, rows."""
    if old.sha256 == new.sha256:
        return [f"{old.version} and {new.version} hold the same rule."]
    return [
        *_threshold(old, new),
        *_weights(old, new),
        *_accuracies(old.facts, new.facts),
        *_promises(old.facts, new.facts),
        *_rows(old, new),
    ]


def _threshold(old: StoredVersion, new: StoredVersion) -> list[str]:
    before, after = (each.model.threshold for each in (old, new))
    if abs(before - after) < 5e-4:
        return [f"Both ask for a probability of {after:.3f}."]
    return [f"The probability asked for goes from {before:.3f} to {after:.3f}."]


def _weights(old: StoredVersion, new: StoredVersion) -> list[str]:
    """Compare directions in standardised units: only the proportions of weights decide."""
    before, after = (each.model.score.slope() for each in (old, new))
    if before is None or after is None or before.shape != after.shape:
        return ["The scores are not linear, so no weights are compared."]
    units = [
        np.asarray(slope.detach()) / max(float(slope.detach().norm()), 1e-12)
        for slope in (before, after)
    ]
    names, change = new.model.standardiser.names, units[1] - units[0]
    angle = np.degrees(np.arccos(np.clip(units[0] @ units[1], -1.0, 1.0)))
    largest = np.argsort(-np.abs(change))[:SHOWN_WEIGHTS]
    listed = "; ".join(
        f"{names[place]} {units[0][place]:+.2f} to {units[1][place]:+.2f}"
        for place in largest
        if abs(change[place]) >= 0.005
    )
    turned = f"The direction of the score turns by {angle:.1f} degrees"
    return [f"{turned}; most in {listed}." if listed else f"{turned}."]


def _accuracies(old: dict[str, Any], new: dict[str, Any]) -> list[str]:
    before, after = old["metrics"]["accuracy"], new["metrics"]["accuracy"]
    said = []
    for response in sorted(set(before) & set(after)):
        points = 100.0 * (after[response] - before[response])
        same = abs(points) < 0.05
        change = (
            "as before" if same else f"{abs(points):.1f} points {'up' if points > 0 else 'down'}"
        )
        said.append(f"{response} {after[response]:.3f}, {change}")
    return [f"Accuracy on the hold-out, by how people respond: {'; '.join(said)}."] if said else []


def _promises(old: dict[str, Any], new: dict[str, Any]) -> list[str]:
    before, after = (_promised(facts) for facts in (old, new))
    if before == after:
        return [f"The promise of recourse is the same: {after}."]
    return [f"The promise of recourse was: {before}; it is now: {after}."]


def _promised(facts: dict[str, Any]) -> str:
    certificate = facts["certificate"]
    if certificate["value"] is None:
        return "none"
    return f"at most {certificate['value']:.3g} without recourse ({certificate['level']:.0%} sure)"


def _rows(old: StoredVersion, new: StoredVersion) -> list[str]:
    before, after = (_made_from(each.model.about) for each in (old, new))
    return [f"{after[:1].upper()}{after[1:]}; before: {before}."]


def _made_from(about: dict[str, Any]) -> str:
    if "adopted" in about:
        return "adopted from the {source} {file}".format(**about["adopted"])
    return f"trained on {about['rows'].get('train', 0):,} rows"
