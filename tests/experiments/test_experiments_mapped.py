"""Experiments give their cells to workers and get the table that one process alone gets."""

from __future__ import annotations

import pandas as pd
import pytest

from countermove.execution import Execution
from countermove.experiments.recourse.grid import run_recourse_experiment
from countermove.experiments.serm.stylised import Stylised, run_stylised
from countermove.experiments.serm.tradeoff import run_tradeoff
from countermove.params import (
    RecourseExperimentsParameters,
    TradeoffParameters,
    TransferExperimentsParameters,
)

from .test_sweep import tables

CASE = {"train": 100, "selection": 40, "calibration": 60, "test": 40, "actions": {"income": "up"}}
TRAINING = {"hidden": [4], "max_epochs": 1, "batch_size": 64}


def recourse(mapper):
    said = {"cases": {"tiny": CASE}, "splits": [0, 1], "training": TRAINING}
    said |= {"methods": ["gradient"], "promised_by": "gradient"}
    plan = RecourseExperimentsParameters.model_validate(said).build()
    return run_recourse_experiment(plan, tables, mapper).cells


def trade_off(mapper):
    curve = {"strengths": [0.1], "training": {"max_epochs": 2}}
    said = {"datasets": ["tiny"], "splits": 2, "curves": [curve]}
    return run_tradeoff(TradeoffParameters.model_validate(said).build(), tables, 0, mapper)


def stylised(mapper):
    return run_stylised(Stylised("unknown", repetitions=2, rows=60), 0, mapper)[0]


def transfer(**said):
    def cells(mapper):
        plan = TransferExperimentsParameters.model_validate({"experiment": said}).build()
        return plan.cells(tables, 3, mapper)

    return cells


EXPERIMENTS = {
    "recourse": recourse,
    "trade-off": trade_off,
    "stylised": stylised,
    "dag": transfer(kind="dag", cases=["CS1", "TS1"], seeds=[0, 1], candidates=5, large=2000),
    "lemma": transfer(kind="lemma", draws=1000, thresholds=[0.5, 0.2]),
    "bandit": transfer(kind="bandit", deployments=50, runs=2),
    "replicator": transfer(kind="replicator", shares=[0.4, 0.5]),
    "tightness": transfer(kind="tightness", populations=3),
}


SLOW = ("stylised", "recourse")


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=pytest.mark.slow if name in SLOW else ()) for name in EXPERIMENTS],
)
def test_the_same_table_bit_for_bit_whoever_works(name):
    alone = EXPERIMENTS[name](None)
    with Execution("threads", workers=2).open() as mapper:
        together = EXPERIMENTS[name](mapper)
    times = [column for column in alone if "seconds" in column]
    pd.testing.assert_frame_equal(
        alone.drop(columns=times), together.drop(columns=times), check_exact=True
    )
    assert len(alone) > 1
