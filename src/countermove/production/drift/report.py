"""Natural drift, or a response to our own rule? One report on a new table of people."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from countermove.certificates import Assumption, Certificate
from countermove.data.schema import Schema
from countermove.errors import DataError, shown
from countermove.production.drift._comparison import DriftComparison
from countermove.production.drift._samples import PeopleTable, shared_ids
from countermove.production.drift._shifts import (
    FeatureShift,
    ShareExplained,
    feature_shifts,
    share_explained,
    shift_sentence,
)
from countermove.production.drift.diagnosis import (
    DriftCase,
    DriftDecision,
    DriftFindings,
    Recommendation,
    anomalies_of,
    decide,
    drift_case,
    drift_findings,
)
from countermove.production.drift.terms import DriftTerms
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
    findings: DriftFindings = field(repr=False)
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
    r"""Distinguish natural drift from a response to the deployed rule.

    With :math:`R` the response to the deployed score, three samples are compared: people before,
    :math:`x \sim P`; the prediction, :math:`R(x)`; and the new table. If people respond as modelled
    and nothing else changed, rows of prediction and new table are independent draws of
    :math:`R_\# P`, and all tests of one against the other hold their level exactly.

    Parameters
    ----------
    reference
        People before they responded, standardised: `Rows`, or anything with ``X`` and, where there
        are, ``y`` and ``ids``. Take rows the deployed model was not trained on.
    observed
        The new table, likewise; labels may be missing (NaN), or all of them absent.
    model
        The deployed model.
    response
        How we say people respond to it.
    terms
        Level and effort.
    seed
        Of every draw.

    Returns
    -------
    DriftReport
        ``alarm`` has probability at most ``terms.level`` if the rows of both tables are
        independent draws of one population that responds as ``response`` says.
    """
    terms = DriftTerms() if terms is None else terms
    return _report(drift_case(reference, observed, model, response, terms, seed))


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
    case = drift_case(reference, observed, model, response, terms, seed)
    compared = case.compared("prediction", case.samples.induced)
    return bool(compared.alarms or tuple(anomalies_of(case)))


def _report(case: DriftCase) -> DriftReport:
    """Return what was found, what it means and what to do."""
    findings, terms = drift_findings(case), case.terms
    old, new = findings.against_reference, findings.against_prediction
    decision = decide(findings)
    share = share_explained(case.samples, old.moved, terms, case.seed)
    shifts = feature_shifts(case.samples, case.model.standardiser, old, new)
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


def _certificate(findings: DriftFindings, case: DriftCase) -> Certificate:
    p, level = findings.against_prediction.p_value, case.terms.level
    verdict = "is not what our response predicts" if findings.alarm else "is as predicted"
    return Certificate(
        name="unexpected_drift",
        value=p,
        direction="upper",
        kind="certificate",
        level=1.0 - level,
        n=len(case.samples.reference.X) + len(case.samples.observed.X),
        assumptions=(
            Assumption("rows of both tables are independent draws, people in both counted once"),
            Assumption("the deployed model was not trained on the reference rows"),
        ),
        reference="exact and permutation tests; Phipson and Smyth (2010), Holm (1979)",
        words=(
            f"the new table {verdict} (p = {p:.2g}); where people respond as modelled and nothing "
            f"else changed, an alarm has probability at most {level:g}"
        ),
    )


def _rows(case: DriftCase) -> dict[str, int]:
    shared, _ = shared_ids(case.before, case.after)
    return {
        "reference": len(case.before.X),
        "observed": len(case.after.X),
        "shared": len(shared),
        "compared_reference": len(case.samples.reference.X),
        "compared_observed": len(case.samples.observed.X),
    }


def drift_of_tables(
    reference: pd.DataFrame,
    observed: pd.DataFrame,
    schema: Schema,
    model: PublishedModel,
    response: Response,
    terms: DriftTerms | None = None,
    seed: int = 0,
) -> DriftReport:
    """Report on two tables that `standardised_table` wrote; see `drift_report`.

    Parameters
    ----------
    reference, observed
        Standardised by the deployed model's standardiser. ``row_id`` and ``label`` may be absent;
        a label that has not arrived yet is missing.
    schema
        What the columns mean.
    model, response, terms, seed
        See `drift_report`.
    """
    tables = [
        people_table(table, schema, where)
        for table, where in ((reference, "reference"), (observed, "observed"))
    ]
    return drift_report(tables[0], tables[1], model, response, terms, seed)


def people_table(frame: pd.DataFrame, schema: Schema, where: str) -> PeopleTable:
    """Return a standardised table as the report reads it."""
    names = tuple(schema.feature_names)
    absent = [name for name in names if name not in frame.columns]
    if absent:
        raise DataError(
            f"the {where} table lacks the columns {shown(map(repr, absent))}; standardise it "
            "with the deployed model's standardiser first"
        )
    X = np.array(frame[list(names)].to_numpy(dtype=np.float64, na_value=np.nan), order="C")
    y = ids = None
    if "label" in frame.columns:
        y = frame["label"].to_numpy(dtype=np.float64, na_value=np.nan)
    if "row_id" in frame.columns:
        ids = frame["row_id"].to_numpy(dtype=np.str_)
    return PeopleTable(X, y, ids, names)


SHOWN = 6
"""Features named one by one."""


def report_words(
    decision: DriftDecision,
    findings: DriftFindings,
    share: ShareExplained,
    shifts: Sequence[FeatureShift],
    level: float,
) -> str:
    """Return the verdict: what to do, what moved, what of it was our doing, what people pay."""
    lines = [f"Recommendation: {decision.recommendation}, because {'; '.join(decision.reasons)}."]
    lines.append(_tests(findings.against_reference, "people before they responded"))
    lines.append(_tests(findings.against_prediction, "where our response puts them"))
    lines.append(_share(share, level))
    moved = [shift for shift in shifts if shift.moved or shift.unexpected]
    moved.sort(key=lambda shift: min(shift.p_reference, shift.p_prediction))
    lines += [f"{shift_sentence(shift)}." for shift in moved[:SHOWN]]
    if len(moved) > SHOWN:
        lines.append(f"And {len(moved) - SHOWN} more columns.")
    lines.append(_people(findings))
    lines.append(_labels(findings.against_prediction))
    return "\n".join(line for line in lines if line)


def _tests(comparison: DriftComparison, against: str) -> str:
    p = f"p = {comparison.p_value:.2g}"
    if not comparison.alarms:
        return f"No difference from {against} is shown ({p})."
    names = {"joint": "all features together", "marginal": "single columns", "labels": "labels"}
    families = " and ".join(names[family] for family in comparison.alarms)
    return f"The new table differs from {against} in {families} ({p})."


def _share(share: ShareExplained, level: float) -> str:
    if share.value is None:
        return ""
    interval = f"{share.low:.0%} to {share.high:.0%}, {1.0 - level:.0%} interval"
    if share.value <= 0.0:
        return f"Our response explains nothing of the shift ({interval})."
    return f"Our response explains {share.value:.0%} of the shift ({interval})."


def _people(findings: DriftFindings) -> str:
    found, people = findings.people.estimate, findings.people
    if found is None:
        return f"Costs were not estimated again: {people.reason.rstrip('.')}."
    ours = "" if people.configured is None else f" Ours is {people.configured:.4g}."
    return found.verdict.replace("\n", " ") + ours


def _labels(comparison: DriftComparison) -> str:
    labels = comparison.labels
    if labels is None:
        return "Too few labels are known to judge P(y | score)."
    seen, expected = labels.error_observed, labels.error_expected
    return (
        f"The rule judges {seen[0]:.1%} wrongly ({seen[1]:.1%} to {seen[2]:.1%}), expected "
        f"{expected[0]:.1%}; labels given the score: p = {labels.p_value:.2g}."
    )
