"""Recourse: a threshold with a promise, and advice for everybody who is refused under it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pandas as pd
from kedro.pipeline import Node, Pipeline

from countermove.data.schema import Schema
from countermove.params import RecourseParameters

if TYPE_CHECKING:
    from countermove.response import Response
    from countermove.scores.storage import PublishedModel
else:  # Kedro resolves annotations at start-up, and torch is slow to import.
    PublishedModel = Response = Any


def calibrate(
    model: PublishedModel,
    calibration: pd.DataFrame,
    validation: pd.DataFrame,
    train: pd.DataFrame,
    schema: Schema,
    people: Response,
    recourse: RecourseParameters,
) -> tuple[PublishedModel, dict[str, Any], pd.DataFrame]:
    """Choose the threshold by promise and performance together."""
    from countermove.data.rows import clusters_of
    from countermove.recourse.advise import with_approved
    from countermove.recourse.calibrate import calibrate_model

    terms, trained_on = recourse.build(), train["row_id"].tolist()
    given = (calibration, validation, trained_on, schema, people, terms, clusters_of(train, schema))
    rule = calibrate_model(model, *given)
    return with_approved(rule.model, train, schema), rule.facts, rule.frontier


def advise(
    blind: PublishedModel,
    uncalibrated: PublishedModel,
    model: PublishedModel,
    rows: pd.DataFrame,
    train: pd.DataFrame,
    schema: Schema,
    people: Response,
    recourse: RecourseParameters,
    seed: int,
) -> tuple[pd.DataFrame, pd.DataFrame, pd.DataFrame, dict[str, Any]]:
    """Decide about every test person, look for recourse for the refused, and audit it."""
    from countermove.learning.decisions import judged_decisions
    from countermove.recourse.advise import advise as advise_people

    terms = (recourse.build(), seed, recourse.advice())
    advised = advise_people(model, rows, train, schema, people, *terms)
    judged = judged_decisions(blind, model, uncalibrated, rows, train, schema, people)
    decisions = advised.decisions.merge(judged, on="row_id", validate="one_to_one")
    return decisions, advised.advice, advised.sheet(), advised.audit


def create_pipeline(**_: object) -> Pipeline:
    """Return the recourse pipeline."""
    people = ["schema", "people", "params:recourse"]
    return Pipeline(
        [
            Node(
                calibrate,
                ["strategic_model", "calibration_rows", "validation_rows", "train_rows", *people],
                ["recourse_model", "recourse_calibration", "recourse_frontier"],
                name="calibrate",
            ),
            Node(
                advise,
                [
                    "blind_model", "strategic_model", "recourse_model", "test_rows", "train_rows",
                    *people, "params:seed",
                ],
                ["decisions", "advice", "advice_sheet", "recourse_audit"],
                name="advise",
            ),
        ],
        namespace="recourse",
        prefix_datasets_with_namespace=False,
    )  # fmt: skip
