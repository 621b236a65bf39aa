"""How a run ends: one code for each way, alarms only where a person has to act."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest

from countermove import errors
from countermove.production.endings import (
    ENDINGS,
    ending_of_decision,
    ending_of_error,
    outcome_record,
)
from countermove.production.registry import Decision


def decided(outcome: str, drift: str | None, number: int = 1) -> Decision:
    champion = "000001-x"
    facts = {"drift": {"recommendation": drift}}
    return Decision(f"{number:06d}-x", "retrain", outcome, "", champion, champion, [], facts)


def asked(*decisions: Decision) -> str:
    *earlier, last = decisions
    said = {"outcome": last.outcome, "champion_after": last.champion_after, "facts": last.facts}
    return ending_of_decision(said, earlier).name


def test_codes_are_distinct_but_for_the_two_good_ones_and_none_is_a_usage_error():
    codes = Counter(ending.code for ending in ENDINGS)
    assert codes.pop(0) == 2
    assert set(codes.values()) == {1}
    assert 2 not in codes  # click's own
    assert len({ending.name for ending in ENDINGS}) == len(ENDINGS)


@pytest.mark.parametrize(
    ("error", "code"),
    [("NothingNewError", 0), ("BlockedError", 4), ("AfterDecisionError", 7), ("LockedError", 75)],
)
def test_errors_with_a_code_of_their_own(error, code):
    assert ending_of_error(getattr(errors, error)("words")).code == code


def test_any_other_error_is_a_failure():
    assert ending_of_error(errors.StorageError("words")).code == 1
    assert ending_of_error(KeyError("words")).code == 1


def test_kept_twice_in_a_row_against_drift():
    kept, calm = decided("kept", "retrain"), decided("kept", "keep")
    blocked, promoted = decided("blocked", None), decided("promoted", "retrain")
    assert asked(kept) == "kept"
    assert asked(kept, kept) == "kept_against_drift"
    assert asked(kept, blocked, kept) == "kept_against_drift"
    assert asked(kept, calm) == "kept"
    assert asked(calm, kept) == "kept"
    assert asked(kept, promoted, kept) == "kept"
    assert asked(promoted) == "promoted"


def test_no_alarm_where_new_labels_show_that_little_would_be_gained():
    """Only what nobody can change has shifted: the champion is right to stay, month after month."""
    kept = decided("kept", "retrain")
    policy = {"acts": {"forget": False}, "evidence": {"immaterial": True}}
    calm = replace(kept, facts=kept.facts | {"policy": policy})
    assert asked(calm, calm, calm) == "kept"
    assert asked(kept, calm) == asked(calm, kept) == "kept"
    for other in ({"acts": {"forget": True}}, {"evidence": {"immaterial": False}}, {"acts": None}):
        doubt = replace(kept, facts=kept.facts | {"policy": policy | other})
        assert asked(doubt, doubt) == "kept_against_drift"


def test_a_decision_without_a_drift_report_is_kept():
    bare = Decision("000001-x", "retrain", "kept", "", "a", "a", [], {})
    assert asked(bare, bare) == "kept"


def test_a_first_challenger_that_is_refused_leaves_no_champion():
    said = {"outcome": "kept", "champion_after": None, "facts": {}}
    assert ending_of_decision(said).name == "cold_start_refused"


def test_the_record_of_an_error_has_its_words_and_what_was_found():
    made = outcome_record(ending_of_error(errors.BlockedError("x")), words="why", found=["half"])
    assert (made["outcome"], made["code"], made["reasons"]) == ("blocked", 4, ["why"])
    assert (made["decision"], made["found"]) == (None, ["half"])
