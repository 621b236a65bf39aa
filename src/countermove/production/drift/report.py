"""Natural drift, or an answer to our own rule? One report on a new table of people."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from countermove.certificates import Assumption, Certificate
from countermove.production.drift.decision import Findings, Recommendation, decide
from countermove.production.drift.diagnosis import Case, case_of, findings_of, oddities_of
from countermove.production.drift.feature_shifts import FeatureShift, feature_shifts
from countermove.production.drift.samples import shared_ids
from countermove.production.drift.share import ShareExplained, share_explained
from countermove.production.drift.terms import DriftTerms
from countermove.production.drift.words import report_words
from countermove.response import Response
from countermove.scores.storage import PublishedModel


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
            "settled": [vars(test) for test in found.settled],
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
    return _told(case_of(reference, observed, model, response, terms, seed))


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
    case = case_of(reference, observed, model, response, terms, seed)
    compared = case.compared("prediction", case.three.induced)
    return bool(compared.alarms or tuple(oddities_of(case)))


def _told(case: Case) -> DriftReport:
    """Return what was found, what it means and what to do."""
    findings, terms = findings_of(case), case.terms
    old, new = findings.against_reference, findings.against_prediction
    decision = decide(findings)
    share = share_explained(case.three, old.moved, terms, case.seed)
    shifts = feature_shifts(case.three, case.model.standardiser, old, new)
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


def _certificate(findings: Findings, case: Case) -> Certificate:
    p, level = findings.against_prediction.p_value, case.terms.level
    verdict = "is not what our response predicts" if findings.alarm else "is as predicted"
    return Certificate(
        name="unexpected_drift",
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


def _rows(case: Case) -> dict[str, int]:
    shared, _ = shared_ids(case.before, case.after)
    return {
        "reference": len(case.before.X),
        "observed": len(case.after.X),
        "shared": len(shared),
        "compared_reference": len(case.three.reference.X),
        "compared_observed": len(case.three.observed.X),
    }
