"""Rules for tables that stay in parts: training, and what people's answers do to accuracy."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from countermove.data.partitions import Partitions
from countermove.data.schema import Schema
from countermove.data.standardise import Standardiser
from countermove.execution import Mapper
from countermove.learning.classifier import StrategicClassifier
from countermove.learning.published import published_model
from countermove.learning.regularisers import Regulariser
from countermove.response import Response
from countermove.response.partitions import (
    COST,
    FAVOURED,
    FAVOURED_BEFORE,
    MOVED,
    respond_parts,
)
from countermove.scores.storage import PublishedModel
from countermove.training.streamed import PartRows


def train_parts(
    parts: Mapping[str, Partitions],
    schema: Schema,
    standardiser: Standardiser,
    response: Response,
    training: Mapping[str, Any],
    seed: int,
    regulariser: Regulariser | None = None,
    mapper: Mapper | None = None,
) -> PublishedModel:
    """Train a score on the parts of ``train``, stopped by those of ``validation``.

    Parameters
    ----------
    parts
        Standardised splits, in parts.
    schema, standardiser, response, training, seed, regulariser
        As in `train_published`.
    mapper
        Who sums full gradients, see `StrategicClassifier.fit_parts`.
    """
    names = tuple(schema.feature_names)
    rows = {name: PartRows(parts[name], names) for name in ("train", "validation")}
    classifier = StrategicClassifier(
        response=response, regulariser=regulariser, random_state=seed, **training
    )
    classifier.fit_parts(rows["train"], rows["validation"], mapper=mapper, progress=True)
    counts = {name: table.n for name, table in rows.items()}
    return published_model(classifier, schema, standardiser, training, counts, rows["train"].span())


def answer_parts(
    model: PublishedModel,
    response: Response,
    parts: Partitions,
    folder: Path,
    schema: Schema,
    mapper: Mapper,
) -> dict[str, Any]:
    """Let a population in parts answer a stored rule; return what that did and how long it took.

    Parameters
    ----------
    model
        The rule.
    response
        How people answer.
    parts
        Standardised rows.
    folder
        Where the moved rows go, see `respond_parts`.
    schema
        What the columns mean.
    mapper
        Who works.
    """
    run = respond_parts(
        response, model.rule, parts, folder, schema.feature_names, ("row_id", "label"), mapper
    )
    return population_facts(run.result()).to_json() | {"run": run.to_json()}


@dataclass(frozen=True)
class PopulationFacts:
    """What an answered rule did, counted over all rows.

    Attributes
    ----------
    rows
        How many people.
    moved
        Share who moved.
    mean_cost
        What movers paid on average; 0 if nobody moved.
    favoured
        Share with the favourable decision once everybody has answered.
    accuracy_nobody_moves, accuracy_after_response
        Shares decided as their label says.
    """

    rows: int
    moved: float
    mean_cost: float
    favoured: float
    accuracy_nobody_moves: float
    accuracy_after_response: float

    def to_json(self) -> dict[str, float]:
        """Return the facts, JSON-ready."""
        return asdict(self)


def population_facts(answered: Partitions, label: str = "label") -> PopulationFacts:
    """Count over the parts that `respond_parts` left, one part at a time."""
    totals = np.zeros(6)
    for part in answered:
        wanted = part[label].to_numpy() > 0
        moved = part[MOVED].to_numpy(dtype=bool)
        after = part[FAVOURED].to_numpy(dtype=bool)
        before = part[FAVOURED_BEFORE].to_numpy(dtype=bool)
        cost = part[COST].to_numpy()[moved].sum()
        right = (before == wanted).sum(), (after == wanted).sum()
        totals += [len(part), moved.sum(), cost, after.sum(), *right]
    n, movers, cost, *rest = totals
    shares = [float(value / n) for value in rest]
    return PopulationFacts(int(n), float(movers / n), float(cost / max(movers, 1.0)), *shares)
