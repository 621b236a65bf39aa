"""Run times: every way is timed, and finding the response is a part of the whole."""

from __future__ import annotations

import json

import pandas as pd
import pytest
from tests.conftest import set_experiment

from countermove.experiments import Measured, Sources
from countermove.experiments.serm.run_times import WAYS, Clock, RunTimes, Synthetic
from countermove.response import ScalarResponse

WAYS_TIMED = ["blind", "exact", "row", "batch", "increasing"]


SMALL = RunTimes(datasets=[], synthetic=Synthetic(rows=24, batch_sizes=(8, 24), epochs=1))


@pytest.fixture(scope="module")
def cells() -> pd.DataFrame:
    return SMALL.cells(Sources(tables=None), seed=0)


def test_every_way_is_timed_at_every_batch_size(cells):
    found = list(cells[["batch_size", "way"]].itertuples(index=False, name=None))
    assert found == [(size, way) for size in (8, 24) for way in WAYS_TIMED]


def test_finding_the_response_takes_a_part_of_the_time(cells):
    assert (cells["response_seconds"] > 0).all()
    assert (cells["share"] < 1).all()


def test_every_way_has_a_line_a_share_and_a_bar(cells):
    assert list(WAYS) == WAYS_TIMED
    assert len(SMALL.figure(Measured(cells), cells, "t").data) == 3 * len(WAYS)


def test_the_clock_lets_the_number_of_steps_grow_and_keeps_counting():
    response = ScalarResponse(start="stay", polish=False, stopping="increasing")
    clock = Clock(response)
    assert [clock.for_epoch(epoch).response.max_iterations for epoch in range(3)] == [1, 2, 3]
    assert clock.for_epoch(1).spent is clock.spent


@pytest.mark.slow
def test_the_pipeline_leaves_table_figure_and_page(project):
    synthetic = {"rows": 64, "batch_sizes": [8, 32], "epochs": 2}
    set_experiment(project, kind="run_times", synthetic=synthetic, datasets=["tiny"], epochs=2)
    outcome = project.run("--pipeline=paper", "--env=test")
    assert outcome.returncode == 0, outcome.stderr
    folder = project.path / "data" / "08_reporting" / "run_times"
    cells = pd.read_csv(folder / "run_times.csv")
    assert set(cells["dataset"]) == {"synthetic", "tiny"}
    assert json.loads((folder / "run_times.json").read_text())["data"]
    assert "<html" in (folder / "run_times.html").read_text()
