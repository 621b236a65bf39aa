"""The nodes of retrain, from the frozen hold-out to the page."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd
from kedro.pipeline import Node, Pipeline

from countermove.data.schema import Schema
from countermove.data.standardise import Standardiser
from countermove.params import (
    EvaluationParameters,
    IngestParameters,
    RetrainParameters,
    SermParameters,
)
from countermove.pipelines.people import champion_people, make_people, people_settings
from countermove.pipelines.recourse import calibrate

if TYPE_CHECKING:
    from countermove.production.history import DecisionHistory
    from countermove.production.registry import Registry
    from countermove.production.retraining.holdout import Judging
    from countermove.production.retraining.labelled_batch import LabelledBatch
    from countermove.production.retraining.nightly import Followed
    from countermove.response import Response
    from countermove.scores.storage import PublishedModel
else:  # Kedro resolves annotations at start-up, and these are slow to import.
    PublishedModel = Registry = DecisionHistory = LabelledBatch = Response = Any
    Followed = Judging = Any


def pin_holdout(
    registry: Registry, holdout: pd.DataFrame, standardiser: Standardiser
) -> dict[str, Any]:
    """Freeze the hold-out that every challenger is evaluated on, or check that it is the same."""
    from countermove.production.retraining.holdout import pin_holdout as pin

    return pin(registry, holdout, standardiser)


def gather_batches(
    registry: Registry,
    batches: list[LabelledBatch],
    typed: pd.DataFrame,
    schema: Schema,
    retrain: RetrainParameters,
    pinned: dict[str, Any],
    intake: dict[str, Any],
) -> tuple[pd.DataFrame, dict[str, Any], pd.DataFrame, pd.DataFrame, pd.DataFrame]:
    """Check every batch, keep each labelled person once, set wrong rows aside, correct labels."""
    from countermove.production.retraining.batches import read_batches

    follows = retrain.policy.kind == "following"
    terms = (retrain.observed, retrain.window, intake["labels"], retrain.ready, not follows)
    return read_batches(registry, batches, typed, schema, *terms)


def compare_outcomes(
    registry: Registry,
    history: DecisionHistory,
    rows: pd.DataFrame,
    facts: dict[str, Any],
    schema: Schema,
    standardiser: Standardiser,
) -> list[dict[str, Any]]:
    """Compare the forecast of the champion's promotion with the error of its decisions."""
    from countermove.production.retraining.forecast import outcomes_of_batches

    return outcomes_of_batches(registry, history, rows, facts, schema, standardiser)


def compare_scored(
    registry: Registry,
    scored: Path,
    rows: pd.DataFrame,
    facts: dict[str, Any],
    schema: Schema,
    standardiser: Standardiser,
) -> tuple[dict[str, Any], pd.DataFrame]:
    """Compare the champion with challengers beside it, and look at people approved by draw."""
    from countermove.production.retraining.scored_people import compare_scored as compare

    return compare(registry, scored, rows, facts, schema, standardiser)


def compare_drift(
    registry: Registry,
    rows: pd.DataFrame,
    facts: dict[str, Any],
    calibration: pd.DataFrame,
    holdout: pd.DataFrame,
    schema: Schema,
    standardiser: Standardiser,
    assumed: Response,
    serm: SermParameters,
    retrain: RetrainParameters,
    seed: int,
) -> dict[str, Any]:
    """Say whether the new people are those the deployed rule lets us expect, and if not, why."""
    from countermove.production.retraining.batch_drift import drift_of_batches

    people = partial(champion_people, schema=schema, serm=serm)
    terms, stop = retrain.drift.build(), retrain.stop_on_investigate
    seen = (registry, rows, facts, (calibration, holdout))
    return drift_of_batches(*seen, schema, standardiser, people, assumed, terms, seed, stop)


def collect_rows(
    registry: Registry,
    train: pd.DataFrame,
    validation: pd.DataFrame,
    calibration: pd.DataFrame,
    batches: pd.DataFrame,
    facts: dict[str, Any],
    schema: Schema,
    standardiser: Standardiser,
    people: Response,
    ingest: IngestParameters,
    seed: int,
) -> tuple[pd.DataFrame, ...]:
    """Put the batches beside the base table, with responses to deployed rules undone."""
    from countermove.production.retraining.challenger import challenger_rows

    base, shares = (train, validation, calibration), ingest.split.build()
    given = (schema, standardiser, people, shares, ingest.split_seed(seed))
    return challenger_rows(registry, base, batches, facts, *given)


def follow(
    registry: Registry,
    train: pd.DataFrame,
    validation: pd.DataFrame,
    batches: pd.DataFrame,
    waiting: pd.DataFrame,
    facts: dict[str, Any],
    set_apart: pd.DataFrame,
    schema: Schema,
    standardiser: Standardiser,
    people: Response,
    drift: dict[str, Any],
    weights: pd.DataFrame,
    serm: SermParameters,
    retrain: RetrainParameters,
    seed: int,
) -> tuple[Followed, Response]:
    """Estimate how far people move, set them back, and weigh the evidence of the new labels."""
    from countermove.production.retraining import nightly

    seen = nightly.NightRows((train, validation), batches, waiting, facts, set_apart, weights)
    aims = (serm.regulariser.build(), retrain.policy.build(), seed)
    terms = nightly.NightTerms(schema, standardiser, people, *aims)
    followed = nightly.follow(registry, seen, terms, nightly.acts_of(drift))
    return followed, followed.people(people)


def train_challenger(
    registry: Registry,
    train: pd.DataFrame,
    validation: pd.DataFrame,
    followed: Followed,
    schema: Schema,
    standardiser: Standardiser,
    people: Response,
    serm: SermParameters,
    seed: int,
) -> PublishedModel:
    """Take the challenger of the policy, or train strategically from the champion's weights."""
    from countermove.production.retraining.challenger import train_challenger as train_from
    from countermove.production.retraining.nightly import published

    champion, rows = registry.champion(), {"train": train, "validation": validation}
    if followed.night is not None and champion is not None:
        return published(followed, champion.model, schema, people, train, seed)
    start = None if champion is None else champion.model.rule
    training, aim = serm.build_training(schema, standardiser, seed), serm.regulariser.build()
    return train_from(rows, schema, standardiser, people, training, start, seed, aim)


def count_open_advice(
    registry: Registry, applicants: Any, schema: Schema, challenger: PublishedModel
) -> dict[str, int]:
    """Count the advice that is open, and how much of it the challenger would break."""
    from countermove.production.open_advice.challenge import broken_advice

    return broken_advice(registry, applicants, schema, challenger)


def set_terms(
    schema: Schema,
    standardiser: Standardiser,
    people: Response,
    serm: SermParameters,
    evaluation: EvaluationParameters,
    retrain: RetrainParameters,
) -> Judging:
    """Put together what challengers are judged by: responses, gates, and the bounds' level."""
    from countermove.production.retraining.holdout import Judging

    plausible, stated = evaluation.responses(serm, schema, standardiser)
    terms = (retrain.gates.build(), evaluation.failure_probability)
    return Judging(schema, plausible, stated, people, *terms)


def judge(
    registry: Registry,
    challenger: PublishedModel,
    calibration: dict[str, Any],
    holdout: pd.DataFrame,
    judging: Judging,
    open_advice: dict[str, int],
    followed: Followed,
) -> dict[str, Any]:
    """Evaluate champion and challenger on recent people or the hold-out, and check the gates."""
    from countermove.production.retraining.holdout import evaluate_challenger

    terms = (judging, open_advice, followed)
    return evaluate_challenger(registry, challenger, calibration, holdout, *terms)


def decide(
    registry: Registry,
    history: DecisionHistory,
    challenger: PublishedModel,
    calibration: dict[str, Any],
    judgement: dict[str, Any],
    facts: dict[str, Any],
    pinned: dict[str, Any],
    outcomes: list[dict[str, Any]],
    scored: dict[str, Any],
    drift: dict[str, Any],
    train: pd.DataFrame,
    serm: SermParameters,
    followed: Followed,
) -> dict[str, Any]:
    """Record the decision, and carry it out."""
    from countermove.production.retraining.ledger import BatchLedger
    from countermove.production.retraining.promotion import decide_on_challenger

    seen = {"batches": facts, "holdout": pinned, "outcomes": outcomes, "drift": drift}
    seen |= {"scored": scored, "withdrawn": BatchLedger(registry).withdrawn()}
    about, made_for = (challenger, calibration, judgement), (people_settings(serm), followed)
    return decide_on_challenger(registry, history, *about, seen, train, *made_for)


def write_page(
    registry: Registry, decision: dict[str, Any], drift: dict[str, Any]
) -> tuple[str, dict[str, Any]]:
    """Put the decision, its gates and the drift on one page; say how the run ended."""
    from countermove.production.endings import ending_of_decision, outcome_record
    from countermove.reporting.retraining import retraining_page

    decisions = registry.decisions()
    earlier = decisions[: [each.version for each in decisions].index(decision["version"])]
    ended = outcome_record(ending_of_decision(decision, earlier), decision=decision)
    return retraining_page(decision, drift), ended


TERMS = [
    "schema", "standardiser", "people", "params:serm", "params:evaluation", "params:retrain"
]  # fmt: skip
"""Inputs of `set_terms`."""


def create_pipeline(**_: object) -> Pipeline:
    """Return the retrain pipeline; it begins where ingest ends."""
    rows = [f"challenger_{part}_rows" for part in ("train", "validation", "calibration")]
    units, calibrated = ["schema", "standardiser"], "calibrated_challenger"
    steps = [
        Node(make_people, [*units, "params:serm"], "people", name="make_people"),
        Node(
            pin_holdout,
            ["registry", "test_table", "standardiser"],
            "holdout_facts",
            name="pin_holdout",
        ),
        Node(
            gather_batches,
            [
                "registry", "labelled_batches", "typed", "schema", "params:retrain",
                "holdout_facts", "intake",
            ],
            [
                "batch_rows", "batch_facts", "batch_quarantine", "batch_waiting",
                "batch_corrections",
            ],
            name="gather_batches",
        ),
        Node(
            compare_outcomes,
            ["registry", "history", "batch_rows", "batch_facts", *units],
            "outcomes",
            name="compare_outcomes",
        ),
        Node(
            compare_scored,
            ["registry", "scored_folder", "batch_rows", "batch_facts", *units],
            ["scored_comparison", "label_weights"],
            name="compare_scored",
        ),
        Node(
            compare_drift,
            [
                "registry", "batch_rows", "batch_facts", "calibration_rows", "test_rows", *units,
                "people", "params:serm", "params:retrain", "params:seed",
            ],
            "drift",
            name="compare_drift",
        ),
        Node(
            collect_rows,
            [
                "registry", "train_rows", "validation_rows", "calibration_rows", "batch_rows",
                "batch_facts", *units, "people", "params:ingest", "params:seed",
            ],
            rows,
            name="collect_rows",
        ),
        Node(
            follow,
            [
                "registry", "train_rows", "validation_rows", "batch_rows", "batch_waiting",
                "batch_facts", rows[2], *units, "people", "drift", "label_weights", "params:serm",
                "params:retrain", "params:seed",
            ],
            ["followed", "present_people"],
            name="follow",
        ),
        Node(
            train_challenger,
            ["registry", *rows[:2], "followed", *units, "people", "params:serm", "params:seed"],
            "challenger",
            name="train_challenger",
        ),
        Node(
            calibrate,
            [
                "challenger", rows[2], rows[1], rows[0], "schema", "present_people",
                "params:recourse",
            ],
            [calibrated, "challenger_calibration", "challenger_frontier"],
            name="calibrate_challenger",
        ),
        Node(
            count_open_advice,
            ["registry", "applicants", "schema", calibrated],
            "open_advice",
            name="count_open_advice",
        ),
        Node(set_terms, TERMS, "judging", name="set_terms"),
        Node(
            judge,
            [
                "registry", calibrated, "challenger_calibration", "test_rows", "judging",
                "open_advice", "followed",
            ],
            "judgement",
            name="judge",
        ),
        Node(
            decide,
            [
                "registry", "history", calibrated, "challenger_calibration", "judgement",
                "batch_facts", "holdout_facts", "outcomes", "scored_comparison", "drift", rows[0],
                "params:serm", "followed",
            ],
            "decision",
            name="decide",
        ),
        Node(
            write_page,
            ["registry", "decision", "drift"],
            ["retraining_page", "retrain_outcome"],
            name="write_page",
        ),
    ]  # fmt: skip
    return Pipeline(steps, namespace="retrain", prefix_datasets_with_namespace=False)
