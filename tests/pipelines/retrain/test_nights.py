"""Nights walked node by node in one process: what the policy proposes reaches registry and page."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from tests.production.retraining.known_worlds import FEATURES, MOVABLE, DriftingWorld

from countermove.data.cleaning import clean
from countermove.data.rows import fit_standardiser, standardised_table
from countermove.data.schema import load_schema
from countermove.data.splits import split_table
from countermove.params import (
    EvaluationParameters,
    IngestParameters,
    RecourseParameters,
    RetrainParameters,
    SermParameters,
)
from countermove.pipelines.people import champion_people
from countermove.pipelines.recourse import calibrate
from countermove.pipelines.retrain import pipeline as nodes
from countermove.production.history import DecisionHistory
from countermove.production.registry import Registry
from countermove.production.retraining.labelled_batch import LabelledBatch

NAMES = [f"f{place}" for place in range(FEATURES)]
INGEST, EVALUATION, RECOURSE = IngestParameters(), EvaluationParameters(), RecourseParameters()
RETRAIN = RetrainParameters.model_validate({"drift": {"permutations": 199, "bootstrap": 50}})


def raw_rows(X: np.ndarray, y: np.ndarray, name: str) -> pd.DataFrame:
    table = pd.DataFrame(X, columns=NAMES).assign(repaid=np.where(y > 0, "yes", "no"))
    return table.assign(person=[f"{name}-{place}" for place in range(len(table))])


class Office:
    """A world, its base table, and a registry in a folder."""

    def __init__(self, world: DriftingWorld, folder: Path) -> None:
        self.world = world
        described = "".join(
            f"  {name}: {{kind: numeric, change: {'both' if place < MOVABLE else 'immutable'}}}\n"
            for place, name in enumerate(NAMES)
        )
        (folder / "drifting.yml").write_text(
            "description: a world\nsource: fabricated\nid: person\n"
            'label: {column: repaid, favourable: "yes", unfavourable: "no"}\n'
            f"features:\n{described}"
        )
        self.schema = load_schema("drifting", folder)
        self.typed = clean(raw_rows(*world.base(), "base"), self.schema)
        self.tables = split_table(self.typed, self.schema, INGEST.split.build(), 0)
        self.unit = fit_standardiser(self.tables["train"], self.schema, False)
        self.rows = {
            name: standardised_table(table, self.schema, self.unit)
            for name, table in self.tables.items()
        }
        cost = {"kind": "quadratic", "scale": world.scale}
        self.serm = SermParameters.model_validate({"cost": cost})
        self.people = self.serm.build(self.schema, self.unit)
        self.registry = Registry(str(folder / "models"), self.schema)
        self.history = DecisionHistory(f"sqlite:///{folder}/history.db", "drifting")
        self.batches: list[LabelledBatch] = []
        self.drift: dict[str, Any] = {}
        self.page, self.ended = "", dict[str, Any]()
        self.scored = folder / "scored"

    def rule(self) -> tuple[np.ndarray, float]:
        champion = self.registry.champion()
        assert champion is not None
        score = champion.model.rule
        weight = score.weight.detach().numpy() / self.unit.scale
        return weight, float(score.bias.detach()) - float(weight @ self.unit.mean)

    def bring(self, month: int, labelled: bool = True) -> None:
        came = self.world.arrivals(month, *self.rule())
        table = raw_rows(came.X, came.y, f"m{month}")
        if not labelled:
            table["repaid"] = None
        self.batches.append(LabelledBatch(f"2026-{month:02d}", table))

    def night(self) -> dict[str, Any]:
        """Walk the nodes as the pipeline does."""
        registry, schema, unit, rows = self.registry, self.schema, self.unit, self.rows
        pinned = nodes.pin_holdout(registry, self.tables["test"], unit)
        intake = {"labels": ["yes", "no"]}
        given = (self.batches, self.typed, schema, RETRAIN, pinned, intake)
        seen, facts, _, waiting, _ = nodes.gather_batches(registry, *given)
        outcomes = nodes.compare_outcomes(registry, self.history, seen, facts, schema, unit)
        scored, weights = nodes.compare_scored(registry, self.scored, seen, facts, schema, unit)
        untrained = (rows["calibration"], rows["test"])
        about = (schema, unit, self.people, self.serm, RETRAIN, 0)
        self.drift = nodes.compare_drift(registry, seen, facts, *untrained, *about)
        base = (rows["train"], rows["validation"])
        train, validation, apart = nodes.collect_rows(
            registry, *base, rows["calibration"], seen, facts, schema, unit, self.people, INGEST, 0
        )
        followed, present = nodes.follow(
            registry, *base, seen, waiting, facts, apart, schema, unit, self.people, self.drift,
            weights, self.serm, RETRAIN, 0,
        )  # fmt: skip
        made = (schema, unit, self.people, self.serm, 0)
        challenger = nodes.train_challenger(registry, train, validation, followed, *made)
        calibrated, promise, _ = calibrate(
            challenger, apart, validation, train, schema, present, RECOURSE
        )
        judging = nodes.set_terms(schema, unit, self.people, self.serm, EVALUATION, RETRAIN)
        judged = nodes.judge(
            registry, calibrated, promise, rows["test"], judging,
            {"open": 0, "judged": 0, "broken": 0}, followed,
        )  # fmt: skip
        decision = nodes.decide(
            registry, self.history, calibrated, promise, judged, facts, pinned, outcomes, scored,
            self.drift, train, self.serm, followed,
        )  # fmt: skip
        self.page, self.ended = nodes.write_page(registry, decision, self.drift)
        return decision


@pytest.mark.slow
def test_a_turned_world_is_followed_and_is_then_no_drift(tmp_path):
    office = Office(DriftingWorld("abrupt", 41), tmp_path)
    assert office.night()["facts"]["policy"]["kind"] == "first_holdout"
    office.bring(6)
    quiet = office.night()
    assert quiet["outcome"] == "kept"
    office.bring(7)
    turned = office.night()
    assert turned["outcome"] == "promoted", turned["reasons"]
    assert turned["facts"]["policy"]["proposal"] == "rule"
    assert office.drift["recommendation"] == "retrain"
    assert turned["facts"]["policy"]["acts"]["forget"]
    assert "labels given the score changed" in office.page
    best = office.world.oracle(8)
    assert best - office.world.accuracy(8, *office.rule()) < 0.012
    # Drift is measured from the people who made the champion: it has not changed since.
    office.bring(8)
    after = office.night()
    assert office.drift["recommendation"] != "retrain", office.drift["words"]
    assert not after["facts"]["policy"]["acts"]["forget"]
    # Less is asked in the months after a promotion: another rule may follow, but no worse one.
    assert best - office.world.accuracy(8, *office.rule()) < 0.012


@pytest.mark.slow
def test_a_halved_price_shifts_the_threshold_and_the_people(tmp_path):
    office = Office(DriftingWorld("price", 42), tmp_path)
    office.night()
    office.bring(7, labelled=False)
    shifted = office.night()
    assert shifted["outcome"] == "promoted", shifted["reasons"]
    assert shifted["facts"]["policy"]["proposal"] == "shift"
    gates = {gate["name"] for gate in shifted["facts"]["gates"]}
    assert {"reach", "recourse_certificate", "group_disparity", "open_advice"} == gates
    champion = office.registry.champion()
    assert champion is not None
    assert champion.facts["certificate"]["name"]
    people = champion_people(champion, office.schema, office.serm)
    price = people.cost.describe()["scale"] / office.people.cost.describe()["scale"]
    assert price == pytest.approx(0.5, abs=0.06)
    best = office.world.oracle(8)
    assert best - office.world.accuracy(8, *office.rule()) < 0.006
    assert "the threshold is shifted" in office.page
    # The labels come late: they keep the date and the rule of their first batch.
    late = office.batches[0].raw.assign(
        repaid=np.where(office.world.arrivals(7, *office.rule()).y > 0, "yes", "no")
    )
    office.batches.append(LabelledBatch("2026-08", late))
    decision = office.night()
    assert decision["outcome"] in ("kept", "promoted")
    assert (
        decision["facts"]["policy"]["newest_label_day"]
        == shifted["facts"]["batches"]["2026-07"]["day"]
    )
