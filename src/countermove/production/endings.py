"""How a retraining ends: one table for the command line, the schedulers and the guide."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from countermove.errors import (
    AfterDecisionError,
    BlockedError,
    CountermoveError,
    LockedError,
    NothingNewError,
    shown,
)

if TYPE_CHECKING:  # Imports torch, which the command line should not wait for.
    from countermove.production.registry import Decision

RETRAIN = "retrain"
"""The drift report's recommendation that a kept champion contradicts."""
UNHEEDED = 2
"""Runs in a row that keep the champion although drift says retrain, before people are alerted."""


@dataclass(frozen=True)
class Ending:
    """One way in which a retraining ends.

    Attributes
    ----------
    name
        As ``retrain_outcome.json`` has it.
    code
        Exit code of the process.
    meaning, to_do
        For people.
    alert
        Subject under which deploy/retrain.sh alerts; None: it stays silent.
    """

    name: str
    code: int
    meaning: str
    to_do: str
    alert: str | None = None

    @property
    def success(self) -> bool:
        """Whether a scheduler has nothing to report."""
        return self.alert is None


PROMOTED = Ending("promoted", 0, "another version decides from now on", "nothing")
NOTHING_NEW = Ending("nothing_new", 0, "no batch is new, none was withdrawn or replaced", "nothing")
FAILED = Ending(
    "failed",
    1,
    "a full disk, an altered model, a lost database",
    "read the last line of the log",
    "retraining failed",
)
KEPT = Ending(
    "kept", 3, "the challenger did not pass a gate; the champion decides", "nothing; see the page"
)
BLOCKED = Ending(
    "blocked",
    4,
    "bad data: a batch that is empty, changed, gone, dated in the future, breaks the schema …",
    "look at the batch the message names",
    "retraining blocked by its data: look at the batch",
)
KEPT_AGAINST_DRIFT = Ending(
    "kept_against_drift",
    5,
    "drift says retrain, and the champion was kept for the second time in a row, where labels "
    "changed or a gain of more than a point of accuracy is not excluded",
    "read which gate refuses; more labels, or another gate",
    "champion kept although drift says retrain: read which gate refuses",
)
COLD_START_REFUSED = Ending(
    "cold_start_refused",
    6,
    "the first challenger did not pass a gate: there is no champion",
    "read which gate refuses; nobody can be scored",
    "there is no champion: the first challenger was refused",
)
AFTER_DECISION = Ending(
    "failed_after_decision",
    7,
    "the decision stands, but its page, a report or the history was not written",
    "`kedro run --pipeline=retrain --nodes=retrain.write_page`",
    "the decision stands, but its page was not written",
)
LOCKED = Ending(
    "locked",
    75,
    "another run is at work on the same dataset",
    "try later",
    "retraining put off: another run is at work",
)
ENDINGS = (
    PROMOTED, NOTHING_NEW, FAILED, KEPT, BLOCKED, KEPT_AGAINST_DRIFT, COLD_START_REFUSED,
    AFTER_DECISION, LOCKED,
)  # fmt: skip
_OF_ERRORS: dict[type[CountermoveError], Ending] = {
    NothingNewError: NOTHING_NEW,
    BlockedError: BLOCKED,
    AfterDecisionError: AFTER_DECISION,
    LockedError: LOCKED,
}


def ending_of_error(error: BaseException) -> Ending:
    """Return how a run ends that an error stopped."""
    return _OF_ERRORS.get(type(error), FAILED)  # type: ignore[arg-type]


def ending_of_decision(decision: Mapping[str, Any], earlier: Sequence[Decision] = ()) -> Ending:
    """Return how a run ends that decided about a challenger, after those earlier decisions."""
    if decision["outcome"] == "promoted":
        return PROMOTED
    if decision["champion_after"] is None:
        return COLD_START_REFUSED
    judged = [each for each in earlier if each.outcome in ("promoted", "kept")]
    before = [each.facts for each in judged[1 - UNHEEDED :] if each.outcome == "kept"]
    unheeded = [_unheeded(facts) for facts in (*before, decision["facts"])]
    return KEPT_AGAINST_DRIFT if unheeded == [True] * UNHEEDED else KEPT


def _unheeded(facts: Mapping[str, Any]) -> bool:
    """Return whether drift says retrain, and labels do not show that little would be gained."""
    if (facts.get("drift") or {}).get("recommendation") != RETRAIN:
        return False
    policy = facts.get("policy") or {}
    changed = (policy.get("acts") or {}).get("forget", True)
    return bool(changed or not (policy.get("evidence") or {}).get("immaterial", False))


def outcome_record(
    ending: Ending,
    decision: Mapping[str, Any] | None = None,
    words: str | None = None,
    found: Sequence[str] = (),
) -> dict[str, Any]:
    """Return what ``retrain_outcome.json`` holds of a run."""
    made = {} if decision is None else decision
    without = made.get("facts", {}).get("withdrawn", [])
    reasons = list(made.get("reasons", []) if words is None else [words])
    if without:
        reasons.append(f"made without batch {shown(without)} as it was")
    return {
        "outcome": ending.name,
        "code": ending.code,
        "meaning": ending.meaning,
        "to_do": ending.to_do,
        "decision": made.get("version"),
        "champion_before": made.get("champion_before"),
        "champion_after": made.get("champion_after"),
        "reasons": reasons,
        "found": list(found),
        "waiting": [],
        "left_out": (made.get("facts", {}).get("scored") or {}).get("left_out", []),
    }
