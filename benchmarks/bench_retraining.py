"""Thirty months of retraining on credit while people answer every rule.

Each month people who have not been seen before arrive, answer the rule in force, and are seen
where they moved to. Countermove retrains as `kedro run --pipeline=retrain` does: people set back,
a strategic challenger from the champion's weights, a promise, a frozen hold-out, gates. Beside it
a blind rule is retrained on what it sees and always deployed. Both are measured on people who took
part in nothing, once these have answered; the benchmark is the blind rule if nobody moved.
"""

from __future__ import annotations

import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from countermove.data.cleaning import clean
from countermove.data.rows import fit_standardiser, rows_of, standardised_table
from countermove.data.schema import Schema, load_schema
from countermove.data.sources import read_raw
from countermove.data.splits import split_table
from countermove.data.standardise import Standardiser
from countermove.learning.classifier import StrategicClassifier
from countermove.learning.evaluation import accuracy_after
from countermove.params import (
    EvaluationParameters,
    IngestParameters,
    RecourseParameters,
    RetrainParameters,
    SermParameters,
)
from countermove.pipelines.recourse import calibrate
from countermove.pipelines.retrain import pipeline as nodes
from countermove.production.history import DecisionHistory
from countermove.production.registry import Registry
from countermove.production.retraining.batches import BATCH
from countermove.response import NoResponse, Response
from countermove.scores import Score

ROOT = Path(__file__).parents[1]
MONTHS, BASE, FRESH, SEED = 30, 12_000, 6_000, 0
SERM, INGEST, RETRAIN = SermParameters(), IngestParameters(), RetrainParameters()
RECOURSE, EVALUATION = RecourseParameters(), EvaluationParameters()


class World:
    """Credit's people: a base table, a stream that arrives month by month, and fresh judges."""

    def __init__(self) -> None:
        self.schema: Schema = load_schema("credit", ROOT / "conf" / "base" / "schemas")
        typed = clean(read_raw("credit", ROOT / "data" / "01_raw", self.schema), self.schema)
        typed = typed.sample(frac=1.0, random_state=SEED).reset_index(drop=True)
        base, fresh = typed[:BASE], typed[BASE : BASE + FRESH]
        self.stream = np.array_split(np.arange(BASE + FRESH, len(typed)), MONTHS)
        self.typed = typed
        self.tables = split_table(base, self.schema, INGEST.split.build(), SEED)
        self.unit: Standardiser = fit_standardiser(self.tables["train"], self.schema, False)
        self.rows = {name: self.standardised(table) for name, table in self.tables.items()}
        self.response: Response = SERM.build(self.schema, self.unit)
        judges = rows_of(self.standardised(fresh), self.schema)
        self.X, self.y = judges.X, judges.y

    def standardised(self, table: pd.DataFrame) -> pd.DataFrame:
        """Return typed rows in standardised units."""
        return standardised_table(table, self.schema, self.unit)

    def arrivals(self, month: int, score: Score) -> pd.DataFrame:
        """Return the people of a month where they stand once they have answered a rule."""
        typed = self.typed.iloc[self.stream[month]].reset_index(drop=True)
        X = rows_of(self.standardised(typed), self.schema).X
        there = self.unit.inverse(self.response.respond(score, X).x_new)
        return typed.assign(**dict(zip(self.schema.feature_names, there.T, strict=True)))

    def accuracy(self, score: Score) -> float:
        """Return the share of the judges a rule is right for once they have answered it."""
        return accuracy_after(score, self.X, self.y, self.response).accuracy


def retrain(
    world: World,
    registry: Registry,
    history: DecisionHistory,
    batches: pd.DataFrame,
    facts: dict[str, Any],
) -> dict[str, Any]:
    """Walk the nodes of the retrain pipeline behind its checks of files."""
    schema, unit, people, rows = world.schema, world.unit, world.response, world.rows
    pinned = nodes.pin_holdout(registry, world.tables["test"], unit)
    outcomes = nodes.compare_outcomes(registry, history, batches, facts, schema, unit)
    untrained = (rows["calibration"], rows["test"])
    drift = nodes.compare_drift(
        registry, batches, facts, *untrained, schema, unit, SERM, RETRAIN, SEED
    )
    base = (rows["train"], rows["validation"], rows["calibration"])
    train, validation, calibration = nodes.collect_rows(
        registry, *base, batches, facts, schema, unit, people, INGEST, SEED
    )
    challenger = nodes.train_challenger(
        registry, train, validation, schema, unit, people, SERM, SEED
    )
    calibrated, promise, _ = calibrate(
        challenger, calibration, validation, train, schema, people, RECOURSE
    )
    about = (registry, calibrated, promise)
    judged = nodes.judge(*about, rows["test"], schema, people, SERM, EVALUATION, RETRAIN)
    return nodes.decide(
        registry, history, calibrated, promise, judged, facts, pinned, outcomes, drift, train, SERM
    )


def blind_rule(world: World, seen: list[pd.DataFrame]) -> Score:
    """Train as if nobody moved, on the base table and on people as they were seen."""
    train = rows_of(pd.concat([world.rows["train"], *seen], ignore_index=True), world.schema)
    judge = rows_of(world.rows["validation"], world.schema)
    blind = StrategicClassifier(response=NoResponse(), standardise=False, random_state=SEED)
    return blind.fit(train.X, train.y, validation=(judge.X, judge.y)).score_


def simulate(folder: Path) -> pd.DataFrame:
    """Return month by month what both ways of retraining come to."""
    world = World()
    registry, history = Registry(str(folder)), DecisionHistory(f"sqlite:///{folder}/h.db", "credit")
    retrain(world, registry, history, pd.DataFrame(), {})
    blind, seen, batches = blind_rule(world, []), [], []
    facts: dict[str, Any] = {}
    months = []
    for month in range(MONTHS):
        champion = registry.champion()
        assert champion is not None
        name = f"{month:02d}"
        rows = world.arrivals(month, champion.model.rule).assign(**{BATCH: name})
        batches.append(rows)
        facts = {known: fact | {"new": False} for known, fact in facts.items()}
        facts[name] = {"sha256": name, "new": True, "rule": champion.version}
        decision = retrain(world, registry, history, pd.concat(batches), facts)
        seen.append(world.standardised(world.arrivals(month, blind)))
        blind = blind_rule(world, seen)
        present = registry.champion()
        assert present is not None
        ours, theirs = world.accuracy(present.model.rule), world.accuracy(blind)
        months.append((month + 1, decision["outcome"], ours, theirs))
    held = pd.DataFrame(months, columns=["month", "outcome", "countermove", "blind"])
    still = accuracy_after(blind_rule(world, []), world.X, world.y, NoResponse()).accuracy
    return held.assign(benchmark=still).assign(forecasts=str(history.held()))


def main() -> None:
    """Print the months, and what they add up to."""
    started = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        months = simulate(Path(folder))
    seconds = time.perf_counter() - started
    gap = (months["benchmark"] - months["countermove"]).max()
    lead = (months["countermove"] - months["blind"]).min()
    print("| month | decision | Countermove | blind retraining | benchmark |")
    print("|---|---|---|---|---|")
    for row in months.itertuples():
        if row.month % 3 == 0 or row.outcome == "promoted":
            print(
                f"| {row.month} | {row.outcome} | {row.countermove:.3f} | {row.blind:.3f} | "
                f"{row.benchmark:.3f} |"
            )
    print()
    print(
        f"{MONTHS} months in {seconds:.0f} s (limit 300); smallest lead over blind retraining "
        f"{100 * lead:+.1f} points, largest gap to the benchmark {100 * gap:.1f} points (limit 2)."
    )


if __name__ == "__main__":
    main()
