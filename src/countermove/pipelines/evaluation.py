"""Evaluation: accuracy before and after response, social measures, bounds.

The rules are the blind one and the calibrated one: the strategic rule at its threshold.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pandas as pd
from kedro.pipeline import Node, Pipeline

from countermove.data.schema import Schema
from countermove.data.standardise import Standardiser
from countermove.params import EvaluationParameters, SermParameters

if TYPE_CHECKING:
    from countermove.response import Response
    from countermove.scores.storage import PublishedModel
else:  # Kedro resolves annotations at start-up, and torch is slow to import.
    PublishedModel = Response = Any


def evaluate(
    blind: PublishedModel,
    calibrated: PublishedModel,
    uncalibrated: PublishedModel,
    typed: pd.DataFrame,
    rows: pd.DataFrame,
    schema: Schema,
    people: Response,
    decisions: pd.DataFrame,
) -> dict[str, Any]:
    """Measure accuracy under every response, and what the rule asks of people."""
    from countermove.learning.measures import rule_metrics

    return rule_metrics(blind, calibrated, uncalibrated, typed, rows, schema, people, decisions)


def weigh_regret(
    blind: PublishedModel,
    calibrated: PublishedModel,
    train: pd.DataFrame,
    test: pd.DataFrame,
    schema: Schema,
    people: Response,
    serm: SermParameters,
) -> dict[str, Any]:
    """Say what both rules lose by not knowing how people respond."""
    from countermove.learning.least_regret import published_regret

    plausible, payoff = serm.people.plausible(people), serm.objective.build()
    told = published_regret(blind, calibrated, train, test, schema, plausible, payoff)
    return told | {"tolerated": serm.people.tolerated_regret}


def draw_moves(
    blind: PublishedModel,
    calibrated: PublishedModel,
    rows: pd.DataFrame,
    schema: Schema,
    people: Response,
    seed: int,
) -> dict[str, Any]:
    """Let people respond to both rules at lower and higher costs, and place some on a map."""
    from countermove.learning.move_map import move_map

    return move_map(blind, calibrated, rows, schema, people, seed)


def report_transfer(
    blind: PublishedModel,
    calibrated: PublishedModel,
    train: pd.DataFrame,
    validation: pd.DataFrame,
    test: pd.DataFrame,
    schema: Schema,
    standardiser: Standardiser,
    serm: SermParameters,
    evaluation: EvaluationParameters,
    seed: int,
) -> dict[str, Any]:
    """Report what deploying either rule does to its error, with every bound."""
    from countermove.transfer.report import report_published

    plausible, terms = evaluation.responses(serm, schema, standardiser), evaluation.build()
    given = (train, validation, test, schema, *plausible, terms, seed)
    return report_published(blind, calibrated, *given)


def foresee(
    calibrated: PublishedModel,
    train: pd.DataFrame,
    test: pd.DataFrame,
    schema: Schema,
    people: Response,
    seed: int,
) -> dict[str, Any]:
    """Foresee what retraining, and applicants who act together, will do to the rule."""
    from countermove.dynamics.deployed import deployed_future

    return deployed_future(calibrated, train, test, schema, people, seed)


def certify(
    calibrated: PublishedModel,
    rows: pd.DataFrame,
    schema: Schema,
    people: Response,
    calibration: dict[str, Any],
    audit: dict[str, Any],
    evaluation: EvaluationParameters,
) -> list[dict[str, Any]]:
    """Collect every certificate of the run."""
    from countermove.transfer.holdout import certify_error

    bound = certify_error(calibrated.rule, rows, schema, people, evaluation.failure_probability)
    found = [*calibration["certificates"], audit.get("cost_promise"), bound.to_json()]
    return [claim for claim in found if claim is not None]


def create_pipeline(**_: object) -> Pipeline:
    """Return the evaluation pipeline."""
    rules = ["blind_model", "recourse_model"]
    return Pipeline(
        [
            Node(
                evaluate,
                [*rules, "strategic_model", "typed", "test_rows", "schema", "people", "decisions"],
                "metrics",
                name="evaluate",
            ),
            Node(
                weigh_regret,
                [*rules, "train_rows", "test_rows", "schema", "people", "params:serm"],
                "regret",
                name="weigh_regret",
            ),
            Node(
                draw_moves,
                [*rules, "test_rows", "schema", "people", "params:seed"],
                "move_map",
                name="draw_moves",
            ),
            Node(
                report_transfer,
                [
                    *rules, "train_rows", "validation_rows", "test_rows", "schema",
                    "standardiser", "params:serm", "params:evaluation", "params:seed",
                ],
                "transfer_report",
                name="report_transfer",
            ),
            Node(
                foresee,
                ["recourse_model", "train_rows", "test_rows", "schema", "people", "params:seed"],
                "future",
                name="foresee",
            ),
            Node(
                certify,
                [
                    "recourse_model", "test_rows", "schema", "people", "recourse_calibration",
                    "recourse_audit", "params:evaluation",
                ],
                "certificates",
                name="certify",
            ),
        ],
        namespace="evaluation",
        prefix_datasets_with_namespace=False,
    )  # fmt: skip
