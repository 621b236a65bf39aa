"""A retraining without Kedro, small enough to be run hundreds of times: gather, train, decide."""

from __future__ import annotations

from pathlib import Path

from countermove.catalog import AtomicJSONDataset, LabelledBatchesDataset
from countermove.data.cleaning import clean
from countermove.data.rows import fit_standardiser, standardised_table
from countermove.data.schema import load_schema
from countermove.data.splits import split_table
from countermove.data.synthetic import fabricate
from countermove.people import QuadraticCost
from countermove.production.gates import GateResult
from countermove.production.history import DecisionHistory
from countermove.production.lock import held
from countermove.production.registry import Registry, recover
from countermove.production.retraining.batches import read_batches
from countermove.production.retraining.challenger import (
    LEARNED_FROM,
    challenger_rows,
    train_challenger,
)
from countermove.production.retraining.promotion import promote_or_keep
from countermove.response import BestResponse

SCHEMA = load_schema("tiny", Path(__file__).parents[3] / "conf" / "base" / "schemas")
SHARES = {"train": 0.4, "validation": 0.1, "calibration": 0.3, "test": 0.2}
TYPED = clean(fabricate("tiny"), SCHEMA)
PARTS = split_table(TYPED, SCHEMA, SHARES, 0)
UNIT = fit_standardiser(PARTS["train"], SCHEMA, False)
BASE = [standardised_table(PARTS[name], SCHEMA, UNIT) for name in LEARNED_FROM]
PEOPLE = BestResponse(QuadraticCost(1.0))
FACTS = {"metrics": {}, "data_hash": "d", "forecast": {"bounds": []}}


def retrain(registry: Registry, history: DecisionHistory, folder: Path) -> None:
    """Make a challenger of the batches in a folder, and promote it."""
    with held(folder / ".lock"):
        history.note(registry.time(), recover(registry))
        history.add_decisions(registry.decisions())
        batches = LabelledBatchesDataset({"path": str(folder / "batches")}).load()
        rows, facts, *_ = read_batches(registry, batches, TYPED, SCHEMA)
        AtomicJSONDataset(filepath=str(folder / "batch_facts.json")).save(facts)
        given = (registry, BASE, rows, facts)
        made = challenger_rows(*given, SCHEMA, UNIT, PEOPLE, SHARES, 0)
        parts = dict(zip(LEARNED_FROM, made, strict=True))
        champion = registry.champion()
        start = None if champion is None else champion.model.rule
        challenger = train_challenger(parts, SCHEMA, UNIT, PEOPLE, {"selection": "none"}, start, 0)
        gate = GateResult("improvement", True, 0.0, 0.05, "words")
        promote_or_keep(registry, history, challenger, FACTS, [gate], {"batches": facts})
