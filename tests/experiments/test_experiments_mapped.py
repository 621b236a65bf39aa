"""Experiments give their cells to workers and get the table that one process alone gets."""

from __future__ import annotations

import pandas as pd
import pytest

from countermove.execution import Execution
from countermove.experiments import Sources
from countermove.params import PaperParameters

from .test_sweep import tables

CASE = {"train": 100, "selection": 40, "calibration": 60, "test": 40, "actions": {"income": "up"}}
TRAINING = {"hidden": [4], "max_epochs": 1, "batch_size": 64}


def paper(**settings):
    def cells(mapper):
        plan = PaperParameters.model_validate({"experiment": settings}).build()
        return plan.cells(Sources(tables), 3, mapper)

    return cells


EXPERIMENTS = {
    "recourse": paper(
        kind="recourse",
        cases={"tiny": CASE},
        splits=[0, 1],
        training=TRAINING,
        methods=["gradient"],
        promised_by="gradient",
    ),
    "trade-off": paper(
        kind="tradeoff",
        datasets=["tiny"],
        splits=2,
        curves=[{"strengths": [0.1], "training": {"optimiser": "adam", "max_epochs": 2}}],
    ),
    "stylised": paper(kind="stylised", picture="unknown", repetitions=2, rows=60),
    "dag": paper(kind="dag", cases=["CS1", "TS1"], seeds=[0, 1], candidates=5, large=2000),
    "lemma": paper(kind="lemma", draws=1000, thresholds=[0.5, 0.2]),
    "bandit": paper(kind="bandit", deployments=50, runs=2),
    "replicator": paper(kind="replicator", shares=[0.4, 0.5]),
    "tightness": paper(kind="tightness", populations=3),
}


SLOW = ("stylised", "recourse", "trade-off")


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
