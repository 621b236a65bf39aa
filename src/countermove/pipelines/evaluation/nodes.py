"""What the rule does before and after people answer it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pandas as pd

from countermove.data.schema import Schema
from countermove.params import EvaluationParameters, SermParameters

if TYPE_CHECKING:
    from countermove.scores.storage import PublishedModel
else:  # Kedro resolves annotations at start-up, and torch is slow to import.
    PublishedModel = Any


def evaluate(
    blind: PublishedModel,
    strategic: PublishedModel,
    uncalibrated: PublishedModel,
    typed: pd.DataFrame,
    rows: pd.DataFrame,
    schema: Schema,
    serm: SermParameters,
) -> dict[str, Any]:
    """Measure accuracy under every response, and what the rule asks of people."""
    from countermove.learning.measures import rule_metrics

    response = serm.build(schema, strategic.standardiser)
    return rule_metrics(blind, strategic, uncalibrated, typed, rows, schema, response)


def draw_moves(
    blind: PublishedModel,
    strategic: PublishedModel,
    rows: pd.DataFrame,
    schema: Schema,
    serm: SermParameters,
    seed: int,
) -> dict[str, Any]:
    """Let people answer both rules for cheaper and dearer moves, and place some on a map."""
    from countermove.learning.move_map import move_map

    response = serm.build(schema, strategic.standardiser)
    return move_map(blind, strategic, rows, schema, response, seed)


def report_transfer(
    blind: PublishedModel,
    strategic: PublishedModel,
    train: pd.DataFrame,
    validation: pd.DataFrame,
    test: pd.DataFrame,
    schema: Schema,
    serm: SermParameters,
    evaluation: EvaluationParameters,
    seed: int,
) -> dict[str, Any]:
    """Say what deploying either rule does to its error, with every bound."""
    from countermove.transfer.report import report_published

    rules = {"blind": blind, "strategic": strategic}
    people = evaluation.responses(serm, schema, strategic.standardiser)
    terms = evaluation.build()
    return report_published(rules, train, validation, test, schema, *people, terms, seed)


def certify(
    strategic: PublishedModel,
    rows: pd.DataFrame,
    schema: Schema,
    calibration: dict[str, Any],
    serm: SermParameters,
    evaluation: EvaluationParameters,
) -> list[dict[str, Any]]:
    """Collect every certificate of the run."""
    from countermove.transfer.bounds.holdout import certify_error

    response = serm.build(schema, strategic.standardiser)
    bound = certify_error(strategic.score, rows, schema, response, evaluation.failure_probability)
    return [*calibration["certificates"], bound.to_json()]
