"""A stored model with a threshold chosen by promise and performance, and what it decides."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from countermove._types import Floats
from countermove.certificates import Certificate
from countermove.data.partitions import Partitions
from countermove.data.rows import Rows, rows_of
from countermove.data.schema import Schema
from countermove.errors import UnknownNameError, nearest
from countermove.randomness import generator
from countermove.recourse.pare import (
    ChoiceRows,
    GroupCalibration,
    JointChoice,
    PareCalibration,
    PromiseTerms,
    ReachFunction,
    approval_certificate,
    calibrate_pare,
    calibrate_pare_by_group,
    certify_refused,
    check_disjoint,
    choose_jointly,
    measure_after_response,
    reach_of,
    refused_certificate,
    refused_grid,
)
from countermove.response import Population, Response
from countermove.response.response_set import members_of
from countermove.scores.base import values
from countermove.scores.storage import PublishedModel


@dataclass(frozen=True)
class CalibratedRule:
    """The model at its threshold, the calibration as JSON, and promise against performance."""

    model: PublishedModel
    facts: dict[str, Any]
    frontier: pd.DataFrame


def calibrate_model(
    model: PublishedModel,
    calibration: pd.DataFrame,
    selection: pd.DataFrame,
    trained_on: Sequence[str],
    schema: Schema,
    response: Response,
    terms: PromiseTerms,
) -> CalibratedRule:
    """Choose the threshold of a stored model, which keeps it beside its score."""
    # Calibration rows are for promises alone, selection rows for choices.
    model = model.without_threshold()
    held, chosen_on = rows_of(calibration, schema), rows_of(selection, schema)
    check_disjoint(held.ids, [*trained_on, *chosen_on.ids], len(held.ids))
    reach = reach_of(model, response.actions, terms.method, terms.largest_action)
    people, choosers = (_choice_rows(rows, terms.groups) for rows in (held, chosen_on))
    plain = _pare_alone(model, people, terms, reach)
    joint = choose_jointly(model, people, choosers, response, terms, reach)
    promises = [
        *_pare_certificates(plain, joint.threshold),
        *([joint.certificate] if terms.after_response or joint.led_by == "performance" else []),
        *_refused_certificates(model, held.X, chosen_on.X, joint, terms, reach),
        *_approval_certificates(model, held.X, response, joint, terms),
    ]
    facts = {
        "threshold": joint.threshold,
        "bound": plain.bound,
        "led_by": joint.led_by,
        "certificate": joint.certificate.to_json(),
        "certificates": [promise.to_json() for promise in promises],
        "thresholds": _compared(model, chosen_on, response, plain.threshold, joint, terms),
        "terms": asdict(terms),
        "rows": {"calibration": len(held.ids), "selection": len(chosen_on.ids)},
    }
    calibrated = replace(model, threshold=joint.threshold)
    if joint.threshold != terms.threshold:
        calibrated = _with_variance_of_cut(calibrated, held.X)
    return CalibratedRule(calibrated, facts, joint.frontier())


def _with_variance_of_cut(model: PublishedModel, held: Floats) -> PublishedModel:
    """Return a model whose covariance knows that its threshold was chosen on these rows."""
    # As if the next calibration refused the same share q of as many other people: the variance of
    # a quantile, q (1 - q) / (n f²), its density f by a Gaussian kernel.
    if model.covariance is None:
        return model
    beyond, n = values(model.rule, held), len(held)
    width = 1.06 * float(beyond.std()) * n**-0.2
    if width == 0.0:
        return model
    density = float(np.exp(-0.5 * (beyond / width) ** 2).mean()) / (width * np.sqrt(2.0 * np.pi))
    share = float(np.clip((beyond < 0.0).mean(), 1.0 / n, 1.0 - 1.0 / n))
    variance = share * (1.0 - share) / (n * max(density, 1.0 / (n * width)) ** 2)
    known = model.covariance
    return replace(model, covariance=replace(known, cut_variance=known.cut_variance + variance))


def _choice_rows(rows: Rows, column: str | None) -> ChoiceRows:
    if column is None:
        return ChoiceRows(rows.X, rows.y, rows.ids)
    if column not in rows.groups.columns:
        raise UnknownNameError(
            f"the table has no group column {column!r}: {nearest(column, map(str, rows.groups))}; "
            "groups are the columns the schema lists as sensitive"
        )
    return ChoiceRows(rows.X, rows.y, rows.ids, rows.groups[column].to_numpy(dtype=object))


def _pare_alone(
    model: PublishedModel, people: ChoiceRows, terms: PromiseTerms, reach: ReachFunction
) -> PareCalibration | GroupCalibration:
    """Return PARE by itself, where people stand: the threshold it would choose alone."""
    levels = (terms.method, terms.miss_rate, terms.failure_probability)
    if people.groups is None:
        return calibrate_pare(model, people.X, *levels, wanted=terms.threshold, reach=reach)
    return calibrate_pare_by_group(
        model,
        people.X,
        people.groups,
        *levels,
        column=str(terms.groups),
        wanted=terms.threshold,
        reach=reach,
    )


def _pare_certificates(
    plain: PareCalibration | GroupCalibration, threshold: float
) -> list[Certificate]:
    """Return PARE's certificates at the chosen threshold, not applicable above its bound."""
    claims = (
        [plain.certificate]
        if isinstance(plain, PareCalibration)
        else list(plain.certificates.values())
    )
    if threshold <= plain.bound:
        return claims
    reason = (
        f"the threshold {threshold:.4g} was chosen by another promise; this one holds up to "
        f"{plain.bound:.4g}"
    )
    return [replace(claim, value=None, reason=reason, words="") for claim in claims]


def _refused_certificates(
    model: PublishedModel,
    held: Floats,
    chosen_on: Floats,
    joint: JointChoice,
    terms: PromiseTerms,
    reach: ReachFunction,
) -> list[Certificate]:
    """Return what is promised to the refused, where they stand, at the chosen threshold."""
    grid, alpha = joint.promise.thresholds, terms.failure_probability
    start = refused_grid(model, chosen_on, grid, terms.miss_rate, reach=reach)
    sequence = certify_refused(
        model,
        held,
        start,
        miss_rate=terms.miss_rate,
        failure_probability=alpha,
        reach=reach,
    )
    tested = joint.threshold if joint.threshold in start else float(start[0])
    fixed = sequence.certificate(tested)
    if tested != joint.threshold:
        reason = (
            f"the threshold {joint.threshold:.4g} refuses too few people to test; the test starts "
            f"at {tested:.4g}"
        )
        fixed = replace(fixed, value=None, reason=reason, words="")
    return [fixed, refused_certificate(model, held, grid, joint.threshold, alpha, reach=reach)]


def _approval_certificates(
    model: PublishedModel,
    held: Floats,
    response: Response,
    joint: JointChoice,
    terms: PromiseTerms,
) -> list[Certificate]:
    """Return what is promised of people who differ: how many will be approved, not only could."""
    differ = any(isinstance(member, Population) for member in members_of(response))
    if not (terms.after_response and (differ or response.confidence is not None)):
        return []
    grid, alpha = joint.promise.thresholds, terms.failure_probability
    return [approval_certificate(model, held, response, grid, joint.threshold, alpha)]


def _compared(
    model: PublishedModel,
    rows: Rows,
    response: Response,
    plain: float,
    joint: JointChoice,
    terms: PromiseTerms,
) -> dict[str, dict[str, float]]:
    """Return both thresholds and the wanted one, each with its performance on selection rows."""
    found = {"wanted": terms.threshold, "plain": plain, "joint": joint.threshold}
    compared = {}
    for name, threshold in found.items():
        at = measure_after_response(model, rows.X, rows.y, response, [threshold], terms.loss)
        compared[name] = {
            "threshold": threshold,
            "accuracy": float(at.accuracy[0]),
            "f1": float(at.f1[0]),
            "utility": float(at.utility[0]),
            "approved": float(at.approved[0]),
        }
    return compared


MOST_ROWS = 200_000
"""Rows drawn for a calibration, and so the n of its certificate."""


def calibrate_parts(
    model: PublishedModel,
    splits: Mapping[str, Partitions],
    schema: Schema,
    response: Response,
    terms: PromiseTerms,
    seed: int,
) -> CalibratedRule:
    """Choose the threshold of a rule trained on parts, on rows drawn from the other splits."""
    # The splits are disjoint by construction, so no training ids are compared.
    drawn = {
        name: splits[name].draw(MOST_ROWS, generator(seed, f"held:{name}"))
        for name in ("calibration", "validation")
    }
    return calibrate_model(
        model, drawn["calibration"], drawn["validation"], (), schema, response, terms
    )
