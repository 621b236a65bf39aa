"""Adopt: a model that exists already becomes the champion that challengers are compared with.

The first champion is taken as it stands, since it decides already; where there is a champion,
the model is a challenger and has to pass the gates like any other.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pandas as pd
from kedro.pipeline import Node, Pipeline

from countermove.data.schema import Schema
from countermove.data.standardise import Standardiser
from countermove.params import (
    AuditParameters,
    RecourseParameters,
    SermParameters,
)
from countermove.pipelines import audit as audited
from countermove.pipelines.people import make_people, people_settings
from countermove.pipelines.retrain import pipeline as retraining

if TYPE_CHECKING:
    from countermove.production.history import DecisionHistory
    from countermove.production.registry import Registry
    from countermove.production.retraining.holdout import Judging
    from countermove.response import Response
    from countermove.scores.storage import PublishedModel
else:  # Kedro resolves annotations at start-up, and these are slow to import.
    PublishedModel = Registry = DecisionHistory = Judging = Response = Any


def read_model(
    train: pd.DataFrame,
    schema: Schema,
    standardiser: Standardiser,
    people: Response,
    audit: AuditParameters,
    seed: int,
) -> PublishedModel:
    """Read the model's file as a rule for these people."""
    model, _ = audited.read_model(train, schema, standardiser, people, audit, seed)
    return replace(model, about=model.about | {"response": people.describe()})


def certify(
    model: PublishedModel,
    calibration: pd.DataFrame,
    validation: pd.DataFrame,
    train: pd.DataFrame,
    schema: Schema,
    people: Response,
    recourse: RecourseParameters,
) -> tuple[PublishedModel, dict[str, Any]]:
    """Say what can be promised at the threshold the model has."""
    from countermove.recourse.advise import with_approved
    from countermove.recourse.calibrate import certify_model

    given = (calibration, validation, schema, people, recourse.build())
    rule = certify_model(model, *given)
    return with_approved(rule.model, train, schema), rule.facts


def judge(
    registry: Registry,
    model: PublishedModel,
    calibration: dict[str, Any],
    holdout: pd.DataFrame,
    judging: Judging,
    open_advice: dict[str, int],
) -> dict[str, Any]:
    """Evaluate the model, and a champion if there is one, on the hold-out; check the gates."""
    from countermove.production.retraining.nightly import Followed

    given = (registry, model, calibration, holdout, judging, open_advice)
    return retraining.judge(*given, Followed(reason="a model was adopted"))


def decide(
    registry: Registry,
    history: DecisionHistory,
    model: PublishedModel,
    calibration: dict[str, Any],
    judgement: dict[str, Any],
    pinned: dict[str, Any],
    train: pd.DataFrame,
    serm: SermParameters,
) -> dict[str, Any]:
    """Record that the model is the champion, or what the gates have against it."""
    from countermove.production.retraining.promotion import decide_on_challenger

    drift = {"recommendation": None, "reason": "a model was adopted; no batch was looked at"}
    seen = {"holdout": pinned, "outcomes": [], "drift": drift}
    given = (model, calibration, judgement, seen, train, people_settings(serm))
    return decide_on_challenger(registry, history, *given, adopted=True)


def write_page(registry: Registry, decision: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    """Put the decision and its gates on one page; say how the run ended."""
    return retraining.write_page(registry, decision, decision["facts"]["drift"])


def create_pipeline(**_: object) -> Pipeline:
    """Return the adopt pipeline; it begins where ingest ends."""
    units, people = ["schema", "standardiser"], ["schema", "people"]
    rows = ["calibration_rows", "validation_rows", "train_rows"]
    made = ["adopted_champion", "adopted_calibration"]
    steps = [
        Node(make_people, [*units, "params:serm"], "people", name="make_people"),
        Node(
            retraining.pin_holdout,
            ["registry", "test_table", "standardiser"],
            "holdout_facts",
            name="pin_holdout",
        ),
        Node(
            read_model,
            ["train_table", *units, "people", "params:audit", "params:seed"],
            "adopted_model",
            name="read_model",
        ),
        Node(certify, ["adopted_model", *rows, *people, "params:recourse"], made, name="certify"),
        Node(
            retraining.count_open_advice,
            ["registry", "applicants", "schema", made[0]],
            "open_advice",
            name="count_open_advice",
        ),
        Node(retraining.set_terms, retraining.TERMS, "judging", name="set_terms"),
        Node(
            judge,
            ["registry", *made, "test_rows", "judging", "open_advice"],
            "judgement",
            name="judge",
        ),
        Node(
            decide,
            ["registry", "history", *made, "judgement", "holdout_facts", rows[2], "params:serm"],
            "decision",
            name="decide",
        ),
        Node(
            write_page,
            ["registry", "decision"],
            ["retraining_page", "retrain_outcome"],
            name="write_page",
        ),
    ]  # fmt: skip
    return Pipeline(steps, namespace="adopt", prefix_datasets_with_namespace=False)
