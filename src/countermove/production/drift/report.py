"""Natural drift, or an answer to our own rule? One report on a new table of people."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from countermove.certificates import Assumption, Certificate
from countermove.production.drift.comparison import ColumnTest, Comparison, compare
from countermove.production.drift.decision import Findings, Recommendation, decide
from countermove.production.drift.feature_shifts import FeatureShift, feature_shifts
from countermove.production.drift.oddities import Oddity, missing_values, odd_columns
from countermove.production.drift.people_update import (
    PeopleUpdate,
    estimated_people,
    update_people,
)
from countermove.production.drift.samples import (
    Placed,
    Seen,
    Three,
    read,
    shared_ids,
    three_samples,
)
from countermove.production.drift.share import ShareExplained, share_explained
from countermove.production.drift.terms import DriftTerms
from countermove.production.drift.untouched import untouched_tests
from countermove.production.drift.words import report_words
from countermove.response import Response
from countermove.scores.storage import PublishedModel

NOT_MOVED = "people do not stand elsewhere than before"
ODD_FIRST = "the table is odd, and what is odd comes first"


@dataclass(frozen=True)
class DriftReport:
    """Where people are, where they were, and where we said they would be.

    Attributes
    ----------
    recommendation, reasons
        ``keep``, ``retrain``, ``re-estimate costs`` or ``investigate``, and why.
    alarm
        Whether the new table is not what our response predicts.
    words
        All of it in sentences.
    findings
        The tests behind it.
    share
        Part of the shift that our response explains.
    shifts
        Feature by feature.
    certificate
        What an alarm means.
    rows
        How many of either table, and how many were compared.
    terms
        Level and effort.
    """

    recommendation: Recommendation
    reasons: tuple[str, ...]
    alarm: bool
    words: str
    findings: Findings = field(repr=False)
    share: ShareExplained
    shifts: tuple[FeatureShift, ...] = field(repr=False)
    certificate: Certificate = field(repr=False)
    rows: dict[str, int] = field(repr=False)
    terms: DriftTerms = field(repr=False)

    def to_json(self) -> dict[str, Any]:
        """Return everything, JSON-ready."""
        found = self.findings
        estimate = found.against_estimate
        return {
            "recommendation": self.recommendation,
            "reasons": list(self.reasons),
            "alarm": self.alarm,
            "words": self.words,
            "share_explained": self.share.to_json(),
            "features": [shift.to_json() for shift in self.shifts],
            "against_reference": found.against_reference.to_json(),
            "against_prediction": found.against_prediction.to_json(),
            "against_estimate": None if estimate is None else estimate.to_json(),
            "untouched": [vars(test) for test in found.untouched],
            "people": found.people.to_json(),
            "oddities": [odd.to_json() for odd in found.oddities],
            "certificate": self.certificate.to_json(),
            "rows": self.rows,
            "terms": self.terms.to_json(),
        }


def drift_report(
    reference: Any,
    observed: Any,
    model: PublishedModel,
    response: Response,
    terms: DriftTerms | None = None,
    seed: int = 0,
) -> DriftReport:
    r"""Tell natural drift from an answer to the deployed rule.

    With :math:`R` the response to the deployed score, three samples are compared: people before,
    :math:`x \sim P`; the prediction, :math:`R(x)`; and the new table. If people answer as modelled
    and nothing else changed, rows of prediction and new table are independent draws of
    :math:`R_\# P`, and all tests of one against the other hold their level exactly.

    Parameters
    ----------
    reference
        People before they answered, standardised: `Rows`, or anything with ``X`` and, where there
        are, ``y`` and ``ids``. Take rows the deployed model was not trained on.
    observed
        The new table, likewise; labels may be missing (NaN), or all of them absent.
    model
        The deployed model.
    response
        How we say people answer it.
    terms
        Level and effort.
    seed
        Of every draw.

    Returns
    -------
    DriftReport
        ``alarm`` has probability at most ``terms.level`` if the rows of both tables are
        independent draws of one population that answers as ``response`` says.
    """
    terms = DriftTerms() if terms is None else terms
    case = _case(reference, observed, model, response, terms, seed)
    findings = _findings(case)
    decision = decide(findings)
    share = share_explained(case.three, findings.against_reference.moved, terms, seed)
    shifts = feature_shifts(
        case.three, model.standardiser, findings.against_reference, findings.against_prediction
    )
    return DriftReport(
        decision.recommendation,
        decision.reasons,
        findings.alarm,
        report_words(decision, findings, share, shifts, terms.level),
        findings,
        share,
        shifts,
        _certificate(findings, case),
        _rows(case),
        terms,
    )


def unexpected(
    reference: Any,
    observed: Any,
    model: PublishedModel,
    response: Response,
    terms: DriftTerms | None = None,
    seed: int = 0,
) -> bool:
    """Tell whether a new table is not what our response predicts: a report's alarm, no diagnosis.

    Parameters and guarantee are those of `drift_report`.
    """
    terms = DriftTerms() if terms is None else terms
    case = _case(reference, observed, model, response, terms, seed)
    return any(True for _ in _oddities(case)) or bool(
        case.compared("prediction", case.three.induced).alarms
    )


@dataclass(frozen=True, eq=False)
class _Case:
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


def _case(
    reference: Any,
    observed: Any,
    model: PublishedModel,
    response: Response,
    terms: DriftTerms,
    seed: int,
) -> _Case:
    score, names = model.score, model.standardiser.names
    before = read(reference, "reference", score, names)
    after = read(observed, "observed", score, names)
    three = three_samples(before, after, score, response, terms.max_rows, seed)
    return _Case(before, after, three, model, response, terms, seed)


def _findings(case: _Case) -> Findings:
    """Run the tests; what needs an alarm first, only after one."""
    three, score, odd = case.three, case.model.score, tuple(_oddities(case))
    against_reference = case.compared("reference", three.reference)
    against_prediction = case.compared("prediction", three.induced)
    people = PeopleUpdate(None, None, reason=ODD_FIRST if odd else NOT_MOVED)
    against_estimate: Comparison | None = None
    untouched: tuple[ColumnTest, ...] = ()
    if against_reference.moved and not odd:
        people, against_estimate = _people_anew(case, bool(against_prediction.alarms))
    if against_prediction.alarms:
        untouched = untouched_tests(three, score, case.names, case.terms, case.seed)
    return Findings(
        odd,
        against_reference,
        against_prediction,
        people,
        against_estimate,
        untouched,
    )


def _people_anew(case: _Case, alarm: bool) -> tuple[PeopleUpdate, Comparison | None]:
    """Estimate the people; after an alarm also with a price for every feature, if need be."""
    first = _estimated(case, alarm, "auto")
    if first[1] is None or not first[1].alarms:
        return first
    second = _estimated(case, alarm, "weighted_quadratic")
    explained = second[1] is not None and not second[1].alarms
    return second if explained else first


def _estimated(case: _Case, alarm: bool, cost: str) -> tuple[PeopleUpdate, Comparison | None]:
    """Estimate the people and, after an alarm, compare the new table with where they would be."""
    three, score, level = case.three, case.model.score, case.terms.level
    people = update_people(three, case.before, case.after, score, case.response, level, cost)
    anew = estimated_people(people, three, score, case.seed) if alarm else None
    return people, None if anew is None else case.compared("estimate", anew)


def _oddities(case: _Case) -> Iterator[Oddity]:
    """Name what no drift explains; both kinds of check have half of their part of the level."""
    level = 0.5 * case.terms.levels(labelled=True)["oddities"]
    yield from missing_values(case.before.X, case.after.X, case.names, level)
    yield from odd_columns(
        case.three.induced.X, case.three.observed.X, case.names, case.terms, level
    )


def _certificate(findings: Findings, case: _Case) -> Certificate:
    p, level = findings.against_prediction.p_value, case.terms.level
    verdict = "is not what our response predicts" if findings.alarm else "is as predicted"
    return Certificate(
        name="p-value of unexpected drift",
        value=p,
        direction="upper",
        kind="certificate",
        level=1.0 - level,
        n=len(case.three.reference.X) + len(case.three.observed.X),
        assumptions=(
            Assumption("rows of both tables are independent draws, people in both counted once"),
            Assumption("the deployed model was not trained on the reference rows"),
        ),
        reference="exact and permutation tests; Phipson and Smyth (2010), Holm (1979)",
        words=(
            f"the new table {verdict} (p = {p:.2g}); where people answer as modelled and nothing "
            f"else changed, an alarm has probability at most {level:g}"
        ),
    )


def _rows(case: _Case) -> dict[str, int]:
    shared, _ = shared_ids(case.before, case.after)
    return {
        "reference": len(case.before.X),
        "observed": len(case.after.X),
        "shared": len(shared),
        "compared_reference": len(case.three.reference.X),
        "compared_observed": len(case.three.observed.X),
    }
