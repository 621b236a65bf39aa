"""Score: a decision for every applicant of a batch, and advice for the refused."""

from __future__ import annotations

import logging
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kedro.pipeline import Node, Pipeline

from countermove.data.schema import Schema
from countermove.params import (
    ExecutionParameters,
    RecourseParameters,
    ScoreParameters,
    SermParameters,
)
from countermove.pipelines.people import champion_people

if TYPE_CHECKING:
    from countermove.production.registry import Registry
else:  # Kedro resolves annotations at start-up, and torch is slow to import.
    Registry = Any

logger = logging.getLogger(__name__)


def score(
    batches: Any,
    registry: Registry,
    folder: Path,
    schema: Schema,
    serm: SermParameters,
    recourse: RecourseParameters,
    score: ScoreParameters,
    execution: ExecutionParameters,
    seed: int,
) -> dict[str, Any]:
    """Score a batch by the champion and advise the refused; once, and only once."""
    from countermove.production.scoring import ScoringSettings, score_batch

    batch, people = score.named(), partial(champion_people, schema=schema, serm=serm)
    applicants = batches(batch, rows_per_part=execution.rows_per_part, layout=schema.file)
    terms = (recourse.build(), score.method, seed, recourse.advice(), score.open_advice_days)
    settings = ScoringSettings(registry, schema, people, *terms, **score.tried())
    scored = score_batch(batch, applicants, settings, folder, execution.build())
    logger.info(scored.words())
    return scored.to_json()


def create_pipeline(**_: object) -> Pipeline:
    """Return the score pipeline."""
    step = Node(
        score,
        [
            "applicants", "registry", "scored_folder", "schema", "params:serm", "params:recourse",
            "params:score", "params:execution", "params:seed",
        ],
        "score_report",
        name="score_batch",
    )  # fmt: skip
    return Pipeline([step], namespace="score", prefix_datasets_with_namespace=False)
