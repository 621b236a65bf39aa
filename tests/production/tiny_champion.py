"""A champion for the fabricated table, made from the rule behind it: no training needed."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Literal

import numpy as np
import torch

from countermove.data.cleaning import clean
from countermove.data.partitions import raw_partitions
from countermove.data.rows import feature_matrix, standardised_table
from countermove.data.schema import Schema, load_schema
from countermove.data.standardise import Standardiser
from countermove.data.synthetic import TINY_BIAS, TINY_WEIGHTS, fabricate
from countermove.execution import Execution
from countermove.people import ActionSet, QuadraticCost
from countermove.production.registry import Decision, Registry, StoredVersion
from countermove.production.registry.records import Outcome
from countermove.production.scoring import Scored, ScoringSettings, score_batch
from countermove.recourse.advise import with_approved
from countermove.recourse.pare import PromiseTerms
from countermove.response import BestResponse
from countermove.scores.linear import LinearScore
from countermove.scores.storage import PublishedModel, schema_facts

SCHEMA = load_schema("tiny", Path(__file__).parents[2] / "conf" / "base" / "schemas")
Engine = Literal["serial", "threads", "dask"]
DAYS = {"open_advice_days": 180}
"""Scores with it keep the advice they give."""
CERTIFICATE = {"name": "pare", "applicable": True, "value": 0.05, "level": 0.95}
PEOPLE = (
    fabricate("tiny", 120, seed=9)
    .drop(columns="repaid")
    .assign(person=[f"applicant-{i}" for i in range(120)])
)


@cache
def model(shift: float = 0.0) -> PublishedModel:
    """Return the rule behind the table, the harder the larger the shift."""
    typed = clean(fabricate("tiny"), SCHEMA)
    X = feature_matrix(typed, SCHEMA)
    units = Standardiser.fit(X, SCHEMA.feature_names)
    weights = np.array([TINY_WEIGHTS[name] for name in SCHEMA.feature_names])
    score = LinearScore(len(weights))
    with torch.no_grad():
        score.weight.copy_(torch.tensor(weights * units.scale))
        score.bias.copy_(torch.tensor(TINY_BIAS - shift + weights @ units.mean))
    Z = units.transform(X)
    about = {
        "response": people(units).describe(),
        "training_range": {"low": Z.min(axis=0).tolist(), "high": Z.max(axis=0).tolist()},
    } | schema_facts(SCHEMA)
    rule = PublishedModel(score, units, SCHEMA.digest(), about)
    return with_approved(rule, standardised_table(typed, SCHEMA, units), SCHEMA)


def people(units: Standardiser, schema: Schema = SCHEMA) -> BestResponse:
    """Return rational people who may do what the schema says."""
    return BestResponse(QuadraticCost(1.0), ActionSet.from_schema(schema, units))


def people_of(stored: StoredVersion) -> BestResponse:
    """Return the people a stored version was made for."""
    return people(stored.model.standardiser)


def promote(folder: Path, shift: float = 0.0, **more: object) -> str:
    """Make another version the champion of a registry; return its name."""
    return decide(folder, shift, "promoted", **more)


def keep(folder: Path, shift: float = 0.0, **more: object) -> str:
    """Store another version that its gates refused; return its name."""
    return decide(folder, shift, "kept", **more)


def decide(folder: Path, shift: float, outcome: Outcome, **more: object) -> str:
    registry = Registry(str(folder), SCHEMA)
    version, pointer = registry.next_version(), registry.pointer()
    facts = {"metrics": {}, "data_hash": "d", "certificates": [CERTIFICATE]} | more
    registry.add(version, model(shift), facts)
    before = None if pointer is None else pointer.version
    after = version if outcome == "promoted" else before
    decision = Decision(version, "retrain", outcome, registry.time(), before, after, ["a test"])
    registry.record(decision)
    if decision.changes_champion:
        registry.carry_out(decision)
    return version


class Office:
    """A folder with a registry, batches and their output, as the pipeline has them."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.registry = folder, folder / "models"
        self.batches, self.scored = folder / "applicants", folder / "scored"
        self.batches.mkdir(exist_ok=True)

    def rules(self, **changes: object) -> ScoringSettings:
        """Return what applicants are judged by."""
        registry = Registry(str(self.registry), SCHEMA)
        said = {
            "registry": registry, "schema": SCHEMA, "people": people_of, "terms": PromiseTerms(),
            "method": "auto", "seed": 0,
        }  # fmt: skip
        return ScoringSettings(**said | changes)  # type: ignore[arg-type]

    def score(
        self,
        batch: str,
        rows: int = 50,
        engine: Engine = "serial",
        **changes: object,
    ) -> Scored:
        """Score a batch, so many rows at a time."""
        applicants = raw_partitions(batch, self.batches, rows)
        return score_batch(batch, applicants, self.rules(**changes), self.scored, Execution(engine))
