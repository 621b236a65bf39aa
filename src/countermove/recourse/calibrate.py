"""A stored model with a threshold chosen by promise and performance, and what it decides."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from countermove._types import Floats
from countermove.certificates import Certificate
from countermove.data.partitions import Partitions
from countermove.data.rows import Rows, rows_of
from countermove.data.schema import Schema
from countermove.errors import CalibrationError, DataError, UnknownNameError, nearest
from countermove.randomness import generator
from countermove.recourse.pare import (
    ROWS_PER_CLUSTER,
    ChoiceRows,
    JointChoice,
    PromiseTerms,
    ReachFunction,
    approval_certificate,
    calibrate_pare,
    calibrate_pare_by_group,
    certify_refused,
    check_disjoint,
    choose_jointly,
    measure_after_response,
    pare_certificate,
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
    trained_clusters: NDArray[Any] | None = None,
) -> CalibratedRule:
    """Choose the threshold of a stored model, which keeps it beside its score.

    Where the schema names whose rows belong together (``group_by``), all promises are to
    clusters, and calibration rows of a cluster that was trained or selected on are left out.
    """
    # Calibration rows are for promises alone, selection rows for choices.
    model = model.without_threshold()
    if (model.about.get("choice") or {}).get("kept") == "least_regret":
        # No single response may move the threshold of a rule that is chosen for all of them.
        terms = _promised_at(model.threshold, terms)
    given, chosen_on = rows_of(calibration, schema), rows_of(selection, schema)
    check_disjoint(given.ids, [*trained_on, *chosen_on.ids], len(given.ids))
    held = _unseen_clusters(given, schema, (trained_clusters, chosen_on.clusters))
    reach = terms.reach(model, response)
    people, choosers = (_choice_rows(rows, terms.groups) for rows in (held, chosen_on))
    bound, alone = _pare_alone(model, people, terms, reach)
    joint = choose_jointly(model, people, choosers, response, terms, reach)
    promises = [
        *_pare_certificates(bound, alone, joint.threshold),
        *([joint.certificate] if terms.after_response or joint.led_by == "performance" else []),
        *_refused_certificates(model, people, chosen_on.X, joint, terms, reach),
        *_approval_certificates(model, people, response, joint, terms),
    ]
    facts = {
        "threshold": joint.threshold,
        "bound": bound,
        "led_by": joint.led_by,
        "certificate": joint.certificate.to_json(),
        "certificates": [promise.to_json() for promise in promises],
        "thresholds": _compared(model, chosen_on, response, bound, joint, terms),
        "terms": asdict(terms),
        "rows": {"calibration": len(held.ids), "selection": len(chosen_on.ids)},
        "clusters": clusters_facts(held, schema),
    }
    calibrated = replace(model, threshold=joint.threshold)
    if joint.threshold != terms.threshold:
        calibrated = _with_variance_of_cut(calibrated, held.X)
    return CalibratedRule(calibrated, facts, joint.frontier())


def certify_model(
    model: PublishedModel,
    calibration: pd.DataFrame,
    selection: pd.DataFrame,
    schema: Schema,
    response: Response,
    terms: PromiseTerms,
) -> CalibratedRule:
    """Say what is promised at the threshold a model has; nothing of it is changed."""
    asked = _promised_at(model.threshold, terms)
    return calibrate_model(model, calibration, selection, (), schema, response, asked)


def _promised_at(threshold: float, terms: PromiseTerms) -> PromiseTerms:
    """Return terms by which the threshold stays, whatever can be promised at it."""
    loss = 0.5 if terms.largest_loss is None else terms.largest_loss
    return replace(terms, threshold=threshold, grid=(threshold,), largest_loss=loss)


def clusters_facts(rows: Rows, schema: Schema) -> dict[str, Any] | None:
    """Return by which column rows belong together, and how many clusters there are."""
    if schema.group_by is None or rows.clusters is None:
        return None
    return {
        "column": schema.group_by,
        "clusters": len(set(rows.clusters)),
        "rows_per_cluster": ROWS_PER_CLUSTER,
    }


def _unseen_clusters(rows: Rows, schema: Schema, seen: Iterable[NDArray[Any] | None]) -> Rows:
    """Return the rows of clusters that nothing was learned from."""
    if schema.group_by is None:
        return rows
    if rows.clusters is None:
        raise DataError(
            f"rows of one {schema.group_by!r} belong together (`group_by:`), but the calibration "
            "rows do not say whose they are; run ingest again"
        )
    known = {cluster for some in seen if some is not None for cluster in some}
    kept = np.array([cluster not in known for cluster in rows.clusters], dtype=np.bool_)
    groups, windows = (part[kept].reset_index(drop=True) for part in (rows.groups, rows.windows))
    own = (rows.ids[kept], rows.X[kept], rows.y[kept])
    return Rows(*own, groups, windows, rows.clusters[kept])


def _with_variance_of_cut(model: PublishedModel, held: Floats) -> PublishedModel:
    """Return a model whose refits know that its threshold was chosen on these rows."""
    # As if the next calibration refused the same share q of as many other people: the variance of
    # a quantile, q (1 - q) / (n f²), its density f by a Gaussian kernel.
    if model.covariance is None and model.refits is None:
        return model
    beyond, n = values(model.rule, held), len(held)
    width = 1.06 * float(beyond.std()) * n**-0.2
    if width == 0.0:
        return model
    density = float(np.exp(-0.5 * (beyond / width) ** 2).mean()) / (width * np.sqrt(2.0 * np.pi))
    share = float(np.clip((beyond < 0.0).mean(), 1.0 / n, 1.0 - 1.0 / n))
    variance = share * (1.0 - share) / (n * max(density, 1.0 / (n * width)) ** 2)
    if model.covariance is not None:
        model = replace(model, covariance=model.covariance.with_cut(variance))
    if model.refits is not None:
        model = replace(model, refits=model.refits.with_cut(variance))
    return model


def _choice_rows(rows: Rows, column: str | None) -> ChoiceRows:
    if column is None:
        return ChoiceRows(rows.X, rows.y, rows.ids, None, rows.clusters, rows.windows)
    if column not in rows.groups.columns:
        raise UnknownNameError(
            f"the table has no group column {column!r}: {nearest(column, map(str, rows.groups))}; "
            "groups are the columns the schema lists as sensitive"
        )
    groups = rows.groups[column].to_numpy(dtype=object)
    return ChoiceRows(rows.X, rows.y, rows.ids, groups, rows.clusters, rows.windows)


def _pare_alone(
    model: PublishedModel, people: ChoiceRows, terms: PromiseTerms, reach: ReachFunction
) -> tuple[float | None, list[Certificate]]:
    """Return the largest threshold of PARE by itself, where people stand, and its certificates."""
    levels = (terms.method, terms.miss_rate, terms.failure_probability)
    given: dict[str, Any] = {"ids": people.ids, "reach": reach, "clusters": people.clusters}
    try:
        if people.groups is None:
            plain = calibrate_pare(model, people.X, *levels, **given)
            return plain.bound, [plain.certificate]
        column = str(terms.groups)
        grouped = calibrate_pare_by_group(
            model, people.X, people.groups, *levels, column=column, **given
        )
    except CalibrationError as refusal:
        # Somebody may be too far away for this promise and not for the one that is chosen.
        claim = pare_certificate(len(people.X), *levels[1:])
        return None, [_withdrawn(claim, str(refusal))]
    return grouped.bound, list(grouped.certificates.values())


def _pare_certificates(
    bound: float | None, claims: list[Certificate], threshold: float
) -> list[Certificate]:
    """Return PARE's certificates at the chosen threshold, not applicable above its bound."""
    if bound is None or threshold <= bound:
        return claims
    reason = (
        f"the threshold {threshold:.4g} was chosen by another promise; this one holds up to "
        f"{bound:.4g}"
    )
    return [_withdrawn(claim, reason) for claim in claims]


def _withdrawn(claim: Certificate, reason: str) -> Certificate:
    return replace(claim, value=None, reason=reason, words="")


def _refused_certificates(
    model: PublishedModel,
    people: ChoiceRows,
    chosen_on: Floats,
    joint: JointChoice,
    terms: PromiseTerms,
    reach: ReachFunction,
) -> list[Certificate]:
    """Return what is promised to the refused, where they stand, at the chosen threshold."""
    grid, alpha = joint.promise.thresholds, terms.failure_probability
    start = refused_grid(model, chosen_on, grid, terms.miss_rate, reach=reach)
    given: dict[str, Any] = {"reach": reach, "ids": people.ids, "clusters": people.clusters}
    sequence = certify_refused(
        model,
        people.X,
        start,
        miss_rate=terms.miss_rate,
        failure_probability=alpha,
        **given,
    )
    tested = joint.threshold if joint.threshold in start else float(start[0])
    fixed = sequence.certificate(tested)
    if tested != joint.threshold:
        reason = (
            f"the threshold {joint.threshold:.4g} refuses too few people to test; the test starts "
            f"at {tested:.4g}"
        )
        fixed = _withdrawn(fixed, reason)
    return [fixed, refused_certificate(model, people.X, grid, joint.threshold, alpha, **given)]


def _approval_certificates(
    model: PublishedModel,
    people: ChoiceRows,
    response: Response,
    joint: JointChoice,
    terms: PromiseTerms,
) -> list[Certificate]:
    """Return what is promised of people who differ: how many will be approved, not only could."""
    differ = any(isinstance(member, Population) for member in members_of(response))
    if not (terms.after_response and (differ or response.confidence is not None)):
        return []
    grid, alpha = joint.promise.thresholds, terms.failure_probability
    given = {"ids": people.ids, "clusters": people.clusters}
    moving = people.answering(response)
    return [approval_certificate(model, people.X, moving, grid, joint.threshold, alpha, **given)]


def _compared(
    model: PublishedModel,
    rows: Rows,
    response: Response,
    bound: float | None,
    joint: JointChoice,
    terms: PromiseTerms,
) -> dict[str, dict[str, float]]:
    """Return each threshold (joint, of PARE alone, wanted) with its performance on other rows."""
    plain = {} if bound is None else {"plain": min(terms.threshold, bound)}
    found = {"wanted": terms.threshold, **plain, "joint": joint.threshold}
    compared, moving = {}, response.with_windows(rows.X, rows.windows)
    for name, threshold in found.items():
        at = measure_after_response(model, rows.X, rows.y, moving, [threshold], terms.loss)
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
    drawn = {name: draw_rows(splits[name], name, seed) for name in ("calibration", "validation")}
    return calibrate_model(
        model, drawn["calibration"], drawn["validation"], (), schema, response, terms
    )


def draw_rows(parts: Partitions, split: str, seed: int) -> pd.DataFrame:
    """Return as many rows of a split in parts as a calibration takes."""
    return parts.draw(MOST_ROWS, generator(seed, f"held:{split}"))
