"""A new batch, a challenger, one frozen hold-out, gates, a decision."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pandas as pd

from countermove.data.schema import Schema
from countermove.data.standardise import Standardiser
from countermove.params import (
    EvaluationParameters,
    IngestParameters,
    RecourseParameters,
    RetrainParameters,
    SermParameters,
)

if TYPE_CHECKING:
    from countermove.production.history import History
    from countermove.production.registry import Registry
    from countermove.production.retraining.batches import Batch
    from countermove.scores.storage import PublishedModel
else:  # Kedro resolves annotations at start-up, and these are slow to import.
    PublishedModel = Registry = History = Batch = Any


def pin_holdout(
    registry: Registry, holdout: pd.DataFrame, standardiser: dict[str, Any]
) -> dict[str, Any]:
    """Freeze the people every challenger is judged on, or insist that they are the same."""
    from countermove.production.retraining.holdout import pin_holdout as pin

    return pin(registry, holdout, standardiser)


def gather_batches(
    registry: Registry,
    batches: list[Batch],
    typed: pd.DataFrame,
    schema: Schema,
    retrain: RetrainParameters,
    pinned: dict[str, Any],
) -> tuple[pd.DataFrame, dict[str, Any]]:
    """Check every batch, keep each labelled person once, say which batches are new."""
    from countermove.production.retraining.stock import take_stock

    return take_stock(registry, batches, typed, schema, retrain.observed, retrain.window)


def compare_outcomes(
    registry: Registry,
    history: History,
    rows: pd.DataFrame,
    facts: dict[str, Any],
    schema: Schema,
    standardiser: dict[str, Any],
) -> list[dict[str, Any]]:
    """Hold what the champion's promotion foretold against what its decisions came to."""
    from countermove.production.retraining.forecast import outcomes_of_batches

    return outcomes_of_batches(
        registry, history, rows, facts, schema, Standardiser.from_json(standardiser)
    )


def compare_drift(
    registry: Registry,
    rows: pd.DataFrame,
    facts: dict[str, Any],
    calibration: pd.DataFrame,
    holdout: pd.DataFrame,
    schema: Schema,
    standardiser: dict[str, Any],
    serm: SermParameters,
    retrain: RetrainParameters,
    seed: int,
) -> dict[str, Any]:
    """Say whether the new people are those the deployed rule lets us expect, and if not, why."""
    from countermove.production.retraining.drifting import drift_of_batches

    unit, stop = Standardiser.from_json(standardiser), retrain.stop_on_investigate
    people, terms = serm.build(schema, unit), retrain.drift.build()
    seen = (registry, rows, facts, (calibration, holdout))
    return drift_of_batches(*seen, schema, unit, people, terms, seed, stop)


def collect_rows(
    registry: Registry,
    train: pd.DataFrame,
    validation: pd.DataFrame,
    calibration: pd.DataFrame,
    batches: pd.DataFrame,
    facts: dict[str, Any],
    schema: Schema,
    standardiser: dict[str, Any],
    ingest: IngestParameters,
    serm: SermParameters,
    seed: int,
) -> tuple[pd.DataFrame, ...]:
    """Put the batches beside the base table, people set back to where they stood."""
    from countermove.production.retraining.stock import collect

    unit, base = Standardiser.from_json(standardiser), (train, validation, calibration)
    people, shares = serm.build(schema, unit), ingest.split.build()
    return collect(registry, base, batches, facts, schema, unit, people, shares, seed)


def train_challenger(
    registry: Registry,
    train: pd.DataFrame,
    validation: pd.DataFrame,
    schema: Schema,
    standardiser: dict[str, Any],
    serm: SermParameters,
    seed: int,
) -> PublishedModel:
    """Train strategically, from the champion's weights."""
    from countermove.production.retraining.training import train_challenger as train_from

    unit, champion = Standardiser.from_json(standardiser), registry.champion()
    settings = serm.training.model_dump() | {"score": serm.build_score(schema, unit, seed)}
    start = None if champion is None else champion.model.score
    people, aim = serm.build(schema, unit), serm.regulariser.build()
    rows = {"train": train, "validation": validation}
    return train_from(rows, schema, unit, people, settings, start, seed, aim)


def calibrate_challenger(
    challenger: PublishedModel,
    calibration: pd.DataFrame,
    validation: pd.DataFrame,
    train: pd.DataFrame,
    schema: Schema,
    serm: SermParameters,
    recourse: RecourseParameters,
) -> tuple[PublishedModel, dict[str, Any]]:
    """Choose the threshold by promise and performance, as the chain does."""
    from countermove.recourse.calibrate import calibrate_model

    people, learned = serm.build(schema, challenger.standardiser), train["row_id"].tolist()
    terms = recourse.build()
    rule = calibrate_model(challenger, calibration, validation, learned, schema, people, terms)
    return rule.model, rule.facts


def judge(
    registry: Registry,
    challenger: PublishedModel,
    calibration: dict[str, Any],
    holdout: pd.DataFrame,
    schema: Schema,
    serm: SermParameters,
    evaluation: EvaluationParameters,
    retrain: RetrainParameters,
) -> dict[str, Any]:
    """Put champion and challenger to the hold-out, and the case to the gates."""
    from countermove.production.retraining.judging import People, weigh

    unit, gates = challenger.standardiser, retrain.gates.build()
    people = People(*evaluation.responses(serm, schema, unit), serm.build(schema, unit))
    level = evaluation.failure_probability
    return weigh(registry, challenger, calibration, holdout, schema, people, level, gates)


def decide(
    registry: Registry,
    history: History,
    challenger: PublishedModel,
    calibration: dict[str, Any],
    judged: dict[str, Any],
    facts: dict[str, Any],
    pinned: dict[str, Any],
    outcomes: list[dict[str, Any]],
    drift: dict[str, Any],
    train: pd.DataFrame,
) -> dict[str, Any]:
    """Record the decision, and carry it out."""
    from countermove.production.retraining.deciding import settle_challenger

    seen = {"batches": facts, "holdout": pinned, "outcomes": outcomes, "drift": drift}
    return settle_challenger(registry, history, challenger, calibration, judged, seen, train)


def write_page(decision: dict[str, Any], drift: dict[str, Any]) -> tuple[str, str]:
    """Put the decision, its gates and the drift on one page; say how the run ended."""
    from countermove.reporting.retraining import retraining_page

    return retraining_page(decision, drift), decision["outcome"]
