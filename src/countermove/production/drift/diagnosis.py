"""From two tables to findings, and from findings to one of four recommendations.

The table of `decide` reads top to bottom; some tests are made only after an alarm.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

from countermove.errors import shown
from countermove.production.drift._comparison import (
    Anomaly,
    ColumnTest,
    DriftComparison,
    anomalous_columns,
    approved_before_tests,
    compare,
    missing_values,
    unaffected_tests,
)
from countermove.production.drift._people_update import (
    PeopleUpdate,
    estimated_people,
    update_people,
)
from countermove.production.drift._samples import (
    DriftSamples,
    PeopleTable,
    ScoredSample,
    drift_samples,
    heaped,
    read,
    recordings,
)
from countermove.production.drift.terms import DriftTerms
from countermove.response import Response
from countermove.scores.storage import PublishedModel

Recommendation = Literal["keep", "retrain", "re-estimate costs", "investigate"]


@dataclass(frozen=True)
class DriftFindings:
    """Everything a recommendation rests on.

    ``against_reference`` and ``against_prediction`` are always there. ``against_estimate``
    compares with the people as estimated again, ``untouched`` tests what no response can change,
    ``settled`` people who had no reason to move, where it takes prices of their own for every
    feature to explain the rest; all three only after an alarm.
    """

    oddities: tuple[Anomaly, ...]
    against_reference: DriftComparison
    against_prediction: DriftComparison
    people: PeopleUpdate
    against_estimate: DriftComparison | None
    untouched: tuple[ColumnTest, ...]
    settled: tuple[ColumnTest, ...] = ()

    @property
    def alarm(self) -> bool:
        """Whether the new table is not what our response predicts."""
        return bool(self.oddities or self.against_prediction.alarms)

    @property
    def natural(self) -> tuple[str, ...]:
        """What changed although no response can change it."""
        return tuple(test.name for test in (*self.settled, *self.untouched) if test.alarm)

    @property
    def others_came(self) -> bool:
        """Whether people who had no reason to move are not as before: no account of costs helps."""
        return any(test.alarm for test in self.settled)


@dataclass(frozen=True)
class DriftDecision:
    """The recommendation with its reasons."""

    recommendation: Recommendation
    reasons: tuple[str, ...]


def decide(findings: DriftFindings) -> DriftDecision:
    """Return the first line of the table that fits.

    ==============================================================  =================
    found                                                           recommendation
    ==============================================================  =================
    values missing, a frozen column, a column out of range          investigate
    nothing that our response does not predict                      keep
    other people (nobody responds, or estimated again) explain it   re-estimate costs
    what no response can change, or who had no reason to move       retrain
    labels given the score                                          retrain
    people moved alike, rule or no rule                             retrain
    none of these                                                   investigate
    ==============================================================  =================
    """
    if findings.oddities:
        lines = tuple(f"{odd.column}: {odd.words}" for odd in findings.oddities)
        return DriftDecision("investigate", lines)
    if not findings.alarm:
        return DriftDecision("keep", (_kept(findings),))
    for line in (_other_people, _natural_drift):
        decision = line(findings)
        if decision is not None:
            return decision
    return DriftDecision("investigate", (_unexplained(findings),))


def _kept(findings: DriftFindings) -> str:
    if findings.against_reference.moved:
        return "people moved, and stand where our response says they would"
    return "nothing differs from what was expected"


def _other_people(findings: DriftFindings) -> DriftDecision | None:
    """Return "re-estimate costs" if another response to the rule explains all there is."""
    if not findings.against_prediction.moved:
        return None
    if not findings.against_reference.alarms:
        return DriftDecision(
            "re-estimate costs",
            ("people stand where they stood: they did not move as our response says",),
        )
    estimate = findings.against_estimate
    if estimate is None or estimate.alarms or findings.others_came:
        return None
    if not findings.people.changed:
        return None
    reason = "people as estimated from the new table explain all of the shift"
    return DriftDecision("re-estimate costs", (reason, *findings.people.changed))


def _natural_drift(findings: DriftFindings) -> DriftDecision | None:
    """Return "retrain" if something changed that is no response to the rule."""
    reasons = []
    if findings.natural:
        reasons.append(f"no response to the rule can change {shown(findings.natural)}, yet it did")
    if _labels_changed(findings):
        reasons.append("labels given the score are not what they were")
    found = findings.people.estimate
    if found is not None and found.response == "drift":
        reasons.append("people moved alike wherever they stood, rule or no rule")
    if reasons and findings.people.changed and findings.people.usable:
        reasons.append("costs look different too: " + "; ".join(findings.people.changed))
    return DriftDecision("retrain", tuple(reasons)) if reasons else None


def _labels_changed(findings: DriftFindings) -> bool:
    """Tell whether labels changed by the account that explains where people stand."""
    accounts = (findings.against_prediction, findings.against_reference, findings.against_estimate)
    fitting = [account for account in accounts if account is not None and not account.moved]
    return bool(fitting) and all(account.relabelled for account in fitting)


def _unexplained(findings: DriftFindings) -> str:
    names = findings.against_prediction.differing
    where = f" ({shown(names)})" if names else ""
    why = findings.people.reason or "people as estimated again do not explain it either"
    if findings.people.usable and not findings.people.changed:
        why = "the cost estimated again agrees with ours"
    return (
        f"the new table is not where our response puts people{where}, nothing shows other people, "
        f"and {why}"
    )


NOT_MOVED = "people do not stand elsewhere than before"
ANOMALIES_FIRST = "the table has anomalies, which come first"


@dataclass(frozen=True, eq=False)
class DriftCase:
    """Two tables as read, the three samples made of them, and on which terms they are compared."""

    before: PeopleTable
    after: PeopleTable
    samples: DriftSamples
    model: PublishedModel
    response: Response
    terms: DriftTerms
    seed: int

    @property
    def names(self) -> tuple[str, ...]:
        """The features."""
        return self.model.standardiser.names

    def compared(self, against: str, expected: ScoredSample) -> DriftComparison:
        """Compare the new table with what was expected, however it may be recorded."""
        best = self._compared(against, expected, self.samples.observed)
        if not best.alarms or expected is self.samples.reference:
            return best
        # Of the ways in which records are made the one that fits best counts: where any of them is
        # true, an alarm is no likelier than without the others.
        observed = heaped(self.samples.observed)
        for recorded in recordings(expected, self.samples.observed, self.model.rule):
            found = self._compared(against, recorded, observed)
            best = found if found.p_value > best.p_value else best
            if not best.alarms:
                break
        return best

    def _compared(
        self, against: str, expected: ScoredSample, observed: ScoredSample
    ) -> DriftComparison:
        # Where labels follow the features, they go with the score as they did before.
        labelled = expected if self.terms.labels == "kept" else self.samples.reference
        about = (self.names, self.terms, self.seed, labelled)
        return compare(against, expected, observed, *about)


def drift_case(
    reference: Any,
    observed: Any,
    model: PublishedModel,
    response: Response,
    terms: DriftTerms,
    seed: int,
) -> DriftCase:
    """Read two tables and make the three samples; see `drift_report`."""
    score, names = model.rule, model.standardiser.names
    before = read(reference, "reference", score, names)
    after = read(observed, "observed", score, names)
    samples = drift_samples(before, after, score, response, terms.max_rows, seed)
    return DriftCase(before, after, samples, model, response, terms, seed)


def drift_findings(case: DriftCase) -> DriftFindings:
    """Run the tests; what needs an alarm first, only after one."""
    samples, odd = case.samples, tuple(anomalies_of(case))
    against_reference = case.compared("reference", samples.reference)
    against_prediction = case.compared("prediction", samples.induced)
    alarm = bool(against_prediction.alarms)
    renewed = NewEstimate(PeopleUpdate(None, None, reason=ANOMALIES_FIRST if odd else NOT_MOVED))
    if against_reference.moved and not odd:
        renewed = _new_estimate(case, alarm)
    untouched: tuple[ColumnTest, ...] = ()
    if alarm:
        untouched = unaffected_tests(samples, case.model.rule, case.names, case.terms, case.seed)
    return DriftFindings(
        odd,
        against_reference,
        against_prediction,
        renewed.people,
        renewed.against,
        untouched,
        renewed.settled,
    )


@dataclass(frozen=True, eq=False)
class NewEstimate:
    """People estimated from the new table; after an alarm, whether they explain it.

    ``settled`` tests those who had no reason to move, where it takes a price for every feature.
    """

    people: PeopleUpdate
    against: DriftComparison | None = None
    settled: tuple[ColumnTest, ...] = ()

    @property
    def fits(self) -> bool:
        """Whether the new table is where these people would stand."""
        return self.against is not None and not self.against.alarms


def _new_estimate(case: DriftCase, alarm: bool) -> NewEstimate:
    """Estimate the people; after an alarm also with a price for every feature, if need be."""
    first = _estimated(case, alarm, "auto")
    if first.against is None or first.fits:
        return first
    second = _estimated(case, alarm, "weighted_quadratic")
    return second if second.fits else first


def _estimated(case: DriftCase, alarm: bool, cost: str) -> NewEstimate:
    """Estimate the people and, after an alarm, compare the new table with where they would be."""
    samples, score, level = case.samples, case.model.rule, case.terms.level
    people = update_people(samples, case.before, case.after, score, case.response, level, cost)
    if not alarm:
        return NewEstimate(people)
    sample = estimated_people(people, samples, score, case.seed)
    if sample is None:
        return NewEstimate(people)
    against = case.compared("estimate", sample)
    settled: tuple[ColumnTest, ...] = ()
    if not against.alarms and people.priced:
        # A price for every feature can imitate a feature that grew for everybody.
        settled = approved_before_tests(samples, (samples.induced, sample), case.names, case.terms)
    return NewEstimate(people, against, settled)


def anomalies_of(case: DriftCase) -> Iterator[Anomaly]:
    """Name what no drift explains; both kinds of check have half of their part of the level."""
    level = 0.5 * case.terms.levels(labelled=True)["oddities"]
    yield from missing_values(case.before.X, case.after.X, case.names, level)
    yield from anomalous_columns(
        case.samples.induced.X, case.samples.observed.X, case.names, case.terms, level
    )
