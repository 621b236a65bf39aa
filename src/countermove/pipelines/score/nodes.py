"""A batch of applicants: a decision for everybody, a way back for the refused."""

from __future__ import annotations

import logging
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from countermove.data.schema import Schema
from countermove.params import (
    ExecutionParameters,
    RecourseParameters,
    ScoreParameters,
    SermParameters,
)

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
    """Judge a batch by the champion and tell the refused what to do; once, and only once."""
    from countermove.production.scoring import Rules, score_batch

    batch, people = score.named(), partial(serm.build, schema)
    applicants = batches(batch, rows_per_part=execution.rows_per_part)
    rules = Rules(registry, schema, people, recourse.build(), score.method, seed)
    scored = score_batch(batch, applicants, rules, folder, execution.build())
    logger.info(scored.words())
    return scored.to_json()
