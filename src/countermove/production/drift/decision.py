"""What to do about it: one small table from what was found to one of four recommendations."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from countermove.errors import shown
from countermove.production.drift.comparison import ColumnTest, Comparison
from countermove.production.drift.oddities import Oddity
from countermove.production.drift.people_update import PeopleUpdate

Recommendation = Literal["keep", "retrain", "re-estimate costs", "investigate"]


@dataclass(frozen=True)
class Findings:
    """Everything a recommendation rests on.

    ``against_reference`` and ``against_prediction`` are always there. ``against_estimate``
    compares with the people as estimated anew, ``untouched`` tests what no answer can change,
    ``settled`` people who had no reason to move, where it takes prices of their own for every
    feature to explain the rest; all three only after an alarm.
    """

    oddities: tuple[Oddity, ...]
    against_reference: Comparison
    against_prediction: Comparison
    people: PeopleUpdate
    against_estimate: Comparison | None
    untouched: tuple[ColumnTest, ...]
    settled: tuple[ColumnTest, ...] = ()

    @property
    def alarm(self) -> bool:
        """Whether the new table is not what our response predicts."""
        return bool(self.oddities or self.against_prediction.alarms)

    @property
    def natural(self) -> tuple[str, ...]:
        """What changed although no answer can change it."""
        return tuple(test.name for test in (*self.settled, *self.untouched) if test.alarm)

    @property
    def others_came(self) -> bool:
        """Whether people who had no reason to move are not as before: no account of costs helps."""
        return any(test.alarm for test in self.settled)


@dataclass(frozen=True)
class Decision:
    """The recommendation with its reasons."""

    recommendation: Recommendation
    reasons: tuple[str, ...]


def decide(findings: Findings) -> Decision:
    """Return the first line of the table that fits.

    ==============================================================  =================
    found                                                           recommendation
    ==============================================================  =================
    values missing, a frozen column, a column out of range          investigate
    nothing that our response does not predict                      keep
    other people (nobody answers, or estimated anew) explain it     re-estimate costs
    what no answer can change, or who had no reason to move         retrain
    labels given the score                                          retrain
    people moved alike, rule or no rule                             retrain
    none of these                                                   investigate
    ==============================================================  =================
    """
    if findings.oddities:
        lines = tuple(f"{odd.column}: {odd.words}" for odd in findings.oddities)
        return Decision("investigate", lines)
    if not findings.alarm:
        return Decision("keep", (_kept(findings),))
    for line in (_other_people, _natural_drift):
        decision = line(findings)
        if decision is not None:
            return decision
    return Decision("investigate", (_unexplained(findings),))


def _kept(findings: Findings) -> str:
    if findings.against_reference.moved:
        return "people moved, and stand where our response says they would"
    return "nothing differs from what was expected"


def _other_people(findings: Findings) -> Decision | None:
    """Return "re-estimate costs" if another answer to the rule explains all there is."""
    if not findings.against_prediction.moved:
        return None
    if not findings.against_reference.alarms:
        return Decision(
            "re-estimate costs",
            ("people stand where they stood: they did not answer as our response says",),
        )
    estimate = findings.against_estimate
    if estimate is None or estimate.alarms or findings.others_came:
        return None
    if not findings.people.changed:
        return None
    told = "people as estimated from the new table explain all of the shift"
    return Decision("re-estimate costs", (told, *findings.people.changed))


def _natural_drift(findings: Findings) -> Decision | None:
    """Return "retrain" if something changed that is no answer to the rule."""
    reasons = []
    if findings.natural:
        reasons.append(f"no answer to the rule can change {shown(findings.natural)}, yet it did")
    if _labels_changed(findings):
        reasons.append("labels given the score are not what they were")
    found = findings.people.estimate
    if found is not None and found.response == "drift":
        reasons.append("people moved alike wherever they stood, rule or no rule")
    if reasons and findings.people.changed and findings.people.usable:
        reasons.append("costs look different too: " + "; ".join(findings.people.changed))
    return Decision("retrain", tuple(reasons)) if reasons else None


def _labels_changed(findings: Findings) -> bool:
    """Tell whether labels changed by the account that explains where people stand."""
    accounts = (findings.against_prediction, findings.against_reference, findings.against_estimate)
    fitting = [account for account in accounts if account is not None and not account.moved]
    return bool(fitting) and all(account.relabelled for account in fitting)


def _unexplained(findings: Findings) -> str:
    names = findings.against_prediction.differing
    where = f" ({shown(names)})" if names else ""
    why = findings.people.reason or "people as estimated anew do not explain it either"
    if findings.people.usable and not findings.people.changed:
        why = "the cost estimated anew agrees with ours"
    return (
        f"the new table is not where our response puts people{where}, nothing shows other people, "
        f"and {why}"
    )
