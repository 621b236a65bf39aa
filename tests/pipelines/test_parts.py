"""The chain for tables in parts, run as a user runs it, here and on Dask workers."""

import io
import json

import pandas as pd
import pytest

from countermove.data.synthetic import fabricate
from countermove.recourse.recommend import STATUSES

REPORT = "data/08_reporting/tiny/population.json"
ANSWERED = "data/07_model_output/tiny/answered/strategic"
ADVISED = "data/07_model_output/tiny/advised"
DASK = "execution.engine=dask,execution.workers=2"


def bring_parts(project):
    """Bring the fabricated table, cut into files."""
    raw = project.path / "data" / "01_raw" / "tiny"
    raw.mkdir(parents=True)
    table = fabricate("tiny")
    for number, first in enumerate(range(0, len(table), 60)):
        table.iloc[first : first + 60].to_csv(raw / f"{number}.csv", index=False)


@pytest.fixture
def with_table(project):
    bring_parts(project)
    return project


def run(project, *arguments):
    done = project.run("--env=test", *arguments)
    assert done.returncode == 0, done.stderr
    return done


def facts(report):
    return {
        rule: {name: value for name, value in report[rule].items() if name != "run"}
        for rule in ("blind", "strategic")
    }


@pytest.mark.slow
def test_parts_are_walked_from_raw_files_to_advice_on_any_engine(with_table):
    run(with_table, "--pipeline=serm_parts")
    here = json.loads((with_table.path / REPORT).read_text())
    answered = pd.read_parquet(with_table.path / ANSWERED)
    advised = pd.read_parquet(with_table.path / ADVISED)
    assert here["strategic"]["rows"] == len(answered) == len(advised) > 0
    assert here["strategic"]["accuracy_after_response"] > here["blind"]["accuracy_after_response"]
    assert set(advised["status"]) <= set(STATUSES)
    assert here["certificate"]["n"] > 0
    assert sum(part["rows"] for part in here["blind"]["run"]["times"]) == len(answered)
    page = (with_table.path / REPORT).with_suffix(".html").read_text()
    assert "slowest part" in page
    assert "part 0" in page
    run(with_table, "--pipeline=population", "--params", DASK)
    there = json.loads((with_table.path / REPORT).read_text())
    assert facts(there) == facts(here)
    assert pd.read_parquet(with_table.path / ANSWERED).equals(answered)
    assert pd.read_parquet(with_table.path / ADVISED).equals(advised)


@pytest.mark.slow
def test_a_scheduler_out_of_reach_stops_the_run_and_leaves_what_was_there(with_table):
    run(with_table, "--pipeline=serm_parts")
    before = (with_table.path / REPORT).read_bytes()
    away = "execution.engine=dask,execution.scheduler=tcp://127.0.0.1:9,execution.timeout=2"
    done = with_table.run("--env=test", "--pipeline=population", "--params", away)
    assert done.returncode != 0
    assert "no Dask scheduler answers at tcp://127.0.0.1:9" in done.stderr
    assert (with_table.path / REPORT).read_bytes() == before


@pytest.mark.slow
def test_a_sweep_on_dask_keeps_its_cells(project):
    config = project.path / "small.yml"
    config.write_text(
        "run:\n  pipelines: sweep\n  env: test\n  params:\n"
        "    sweep:\n      {datasets: [tiny], splits: 2,\n"
        "       training: {optimiser: adam, selection: none, max_epochs: 2}}\n"
        "    execution: {engine: dask, workers: 2}\n"
    )
    done = project.kedro("run", "--config", str(config))
    assert done.returncode == 0, done.stderr
    cells = sorted((project.path / "data/07_model_output/sweep/cells").iterdir())
    assert len(cells) == 2
    table = project.path / "data/08_reporting/sweep/sweep.csv"
    first = table.read_bytes()
    cells[0].unlink()
    assert project.kedro("run", "--config", str(config)).returncode == 0
    again = pd.read_csv(table)
    known = pd.read_csv(io.BytesIO(first))
    assert again.drop(columns="seconds").equals(known.drop(columns="seconds"))
