"""A retraining without Kedro, small enough to be run hundreds of times: gather, train, settle."""

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
from countermove.production.history import History
from countermove.production.lock import held
from countermove.production.registry import Registry, recover
from countermove.production.retraining.deciding import settle
from countermove.production.retraining.stock import rules_answered, take_stock
from countermove.production.retraining.training import challenger_rows, train_challenger
from countermove.response import BestResponse

SCHEMA = load_schema("tiny", Path(__file__).parents[3] / "conf" / "base" / "schemas")
SHARES = {"train": 0.4, "validation": 0.1, "calibration": 0.3, "test": 0.2}
TYPED = clean(fabricate("tiny"), SCHEMA)
PARTS = split_table(TYPED, SCHEMA, SHARES, 0)
UNIT = fit_standardiser(PARTS["train"], SCHEMA, False)
BASE = {name: standardised_table(rows, SCHEMA, UNIT) for name, rows in PARTS.items()}
PEOPLE = BestResponse(QuadraticCost(1.0))
FACTS = {"metrics": {}, "data_hash": "d", "forecast": {"bounds": []}}


def retrain(registry: Registry, history: History, folder: Path) -> None:
    """Make a challenger of the batches in a folder, and promote it."""
    with held(folder / ".lock"):
        history.note(registry.time(), recover(registry))
        history.add_decisions(registry.decisions())
        batches = LabelledBatchesDataset({"path": str(folder / "batches")}).load()
        rows, facts = take_stock(registry, batches, TYPED, SCHEMA)
        AtomicJSONDataset(filepath=str(folder / "batch_facts.json")).save(facts)
        answered = rules_answered(registry, facts)
        parts = challenger_rows(BASE, rows, answered, SCHEMA, UNIT, PEOPLE, SHARES, 0)
        champion = registry.champion()
        start = None if champion is None else champion.model.rule
        challenger = train_challenger(parts, SCHEMA, UNIT, PEOPLE, {"max_epochs": 1}, start, 0)
        gate = GateResult("improvement", True, 0.0, 0.05, "words")
        settle(registry, history, challenger, FACTS, [gate], {"batches": facts})
