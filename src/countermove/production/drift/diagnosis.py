"""From two tables to findings: what was compared, in which order, and what only after an alarm."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from countermove.production.drift.comparison import ColumnTest, Comparison, compare
from countermove.production.drift.decision import Findings
from countermove.production.drift.oddities import Oddity, missing_values, odd_columns
from countermove.production.drift.people_update import (
    PeopleUpdate,
    estimated_people,
    update_people,
)
from countermove.production.drift.samples import Placed, Seen, Three, read, three_samples
from countermove.production.drift.settled import settled_tests
from countermove.production.drift.terms import DriftTerms
from countermove.production.drift.untouched import untouched_tests
from countermove.response import Response
from countermove.scores.storage import PublishedModel

NOT_MOVED = "people do not stand elsewhere than before"
ODD_FIRST = "the table is odd, and what is odd comes first"


@dataclass(frozen=True, eq=False)
class Case:
    """Two tables as read, the three samples made of them, and on which terms they are compared."""

    before: Seen
    after: Seen
    three: Three
    model: PublishedModel
    response: Response
    terms: DriftTerms
    seed: int

    @property
    def names(self) -> tuple[str, ...]:
        """The features."""
        return self.model.standardiser.names

    def compared(self, against: str, expected: Placed) -> Comparison:
        """Compare the new table with what was expected."""
        # Where labels follow the features, they go with the score as they did before.
        labelled = expected if self.terms.labels == "kept" else self.three.reference
        return compare(
            against, expected, self.three.observed, self.names, self.terms, self.seed, labelled
        )


def case_of(
    reference: Any,
    observed: Any,
    model: PublishedModel,
    response: Response,
    terms: DriftTerms,
    seed: int,
) -> Case:
    """Read two tables and make the three samples; see `drift_report`."""
    score, names = model.score, model.standardiser.names
    before = read(reference, "reference", score, names)
    after = read(observed, "observed", score, names)
    three = three_samples(before, after, score, response, terms.max_rows, seed)
    return Case(before, after, three, model, response, terms, seed)


def findings_of(case: Case) -> Findings:
    """Run the tests; what needs an alarm first, only after one."""
    three, odd = case.three, tuple(oddities_of(case))
    against_reference = case.compared("reference", three.reference)
    against_prediction = case.compared("prediction", three.induced)
    alarm = bool(against_prediction.alarms)
    anew = Anew(PeopleUpdate(None, None, reason=ODD_FIRST if odd else NOT_MOVED))
    if against_reference.moved and not odd:
        anew = _people_anew(case, alarm)
    untouched: tuple[ColumnTest, ...] = ()
    if alarm:
        untouched = untouched_tests(three, case.model.score, case.names, case.terms, case.seed)
    return Findings(
        odd,
        against_reference,
        against_prediction,
        anew.people,
        anew.against,
        untouched,
        anew.settled,
    )


@dataclass(frozen=True, eq=False)
class Anew:
    """People estimated from the new table; after an alarm, whether they explain it.

    ``settled`` tests those who had no reason to move, where it takes a price for every feature.
    """

    people: PeopleUpdate
    against: Comparison | None = None
    settled: tuple[ColumnTest, ...] = ()

    @property
    def fits(self) -> bool:
        """Whether the new table is where these people would stand."""
        return self.against is not None and not self.against.alarms


def _people_anew(case: Case, alarm: bool) -> Anew:
    """Estimate the people; after an alarm also with a price for every feature, if need be."""
    first = _estimated(case, alarm, "auto")
    if first.against is None or first.fits:
        return first
    second = _estimated(case, alarm, "weighted_quadratic")
    return second if second.fits else first


def _estimated(case: Case, alarm: bool, cost: str) -> Anew:
    """Estimate the people and, after an alarm, compare the new table with where they would be."""
    three, score, level = case.three, case.model.score, case.terms.level
    people = update_people(three, case.before, case.after, score, case.response, level, cost)
    if not alarm:
        return Anew(people)
    sample = estimated_people(people, three, score, case.seed)
    if sample is None:
        return Anew(people)
    against = case.compared("estimate", sample)
    settled: tuple[ColumnTest, ...] = ()
    if not against.alarms and people.priced:
        # A price for every feature can imitate a feature that grew for everybody.
        settled = settled_tests(three, (three.induced, sample), case.names, case.terms)
    return Anew(people, against, settled)


def oddities_of(case: Case) -> Iterator[Oddity]:
    """Name what no drift explains; both kinds of check have half of their part of the level."""
    level = 0.5 * case.terms.levels(labelled=True)["oddities"]
    yield from missing_values(case.before.X, case.after.X, case.names, level)
    yield from odd_columns(
        case.three.induced.X, case.three.observed.X, case.names, case.terms, level
    )
