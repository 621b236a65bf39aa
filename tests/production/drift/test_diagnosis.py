"""The decision table, line by line."""

from types import SimpleNamespace

import pytest

from countermove.production.drift.diagnosis import (
    Anomaly,
    ColumnTest,
    DriftComparison,
    DriftFindings,
    PeopleUpdate,
    decide,
)

ODD = (Anomaly("debts", "constant", 1.0, "every row holds one value"),)
NATURAL = (ColumnTest("savings", 0.2, 1e-6, 1e-5, True),)
FITS = SimpleNamespace(identified=True, misspecified=False, response="best")
DRIFT = SimpleNamespace(identified=False, misspecified=False, response="drift")
NOBODY = PeopleUpdate(None, None, reason="too few rows")
CHANGED = PeopleUpdate(FITS, 2.0, ("a unit of advance costs 4, ours 2",))
AGREES = PeopleUpdate(FITS, 2.0)


def against(*alarms):
    return DriftComparison("x", (), 0.5, None, alarms, 0.01 if alarms else 0.5)


def found(reference, prediction, people=NOBODY, estimate=None, untouched=(), odd=(), settled=()):
    return DriftFindings(odd, reference, prediction, people, estimate, untouched, settled)


MOVED, LABELS, BOTH, SAME = (
    against("joint"),
    against("labels"),
    against("joint", "labels"),
    against(),
)


@pytest.mark.parametrize(
    ("findings", "recommendation", "reason"),
    [
        (found(SAME, SAME), "keep", "nothing differs"),
        (found(MOVED, SAME), "keep", "where our response says"),
        (found(MOVED, SAME, odd=ODD), "investigate", "debts"),
        (found(SAME, MOVED), "re-estimate costs", "where they stood"),
        (found(MOVED, MOVED, CHANGED, SAME), "re-estimate costs", "estimated"),
        (found(MOVED, BOTH, CHANGED, SAME), "re-estimate costs", "estimated"),
        (found(MOVED, MOVED, CHANGED, SAME, NATURAL), "re-estimate costs", "estimated"),
        (found(MOVED, MOVED, CHANGED, SAME, settled=NATURAL), "retrain", "no response to the rule"),
        (found(MOVED, MOVED, CHANGED, MOVED, NATURAL), "retrain", "costs look different too"),
        (found(MOVED, MOVED, AGREES, MOVED, NATURAL), "retrain", "no response to the rule"),
        (found(MOVED, LABELS), "retrain", "labels"),
        (found(BOTH, BOTH, CHANGED, LABELS), "retrain", "labels"),
        (found(LABELS, BOTH), "retrain", "labels"),
        (found(MOVED, MOVED, PeopleUpdate(DRIFT, 2.0)), "retrain", "rule or no rule"),
        (found(BOTH, BOTH, CHANGED, MOVED), "investigate", "do not explain it either"),
        (found(MOVED, MOVED, AGREES, SAME), "investigate", "agrees with ours"),
        (found(MOVED, MOVED), "investigate", "too few rows"),
    ],
)
def test_line(findings, recommendation, reason):
    decision = decide(findings)
    assert decision.recommendation == recommendation
    assert any(reason in text for text in decision.reasons)
    assert findings.alarm == (recommendation != "keep")
