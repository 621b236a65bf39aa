"""`kedro run --pipeline=score` as a scheduler runs it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest

from countermove.data.synthetic import fabricate
from countermove.production.lock import held

from ..production.tiny_champion import PEOPLE, promote

SCORED = Path("data", "07_model_output", "tiny", "scored")


@pytest.fixture
def office(project):
    """A project with a champion and a batch of applicants."""
    promote(project.path / "data" / "06_models" / "tiny")
    batches = project.path / "data" / "01_raw" / "applicants" / "tiny"
    batches.mkdir(parents=True)
    PEOPLE.to_csv(batches / "b1.csv", index=False)
    PEOPLE.assign(income=-1.0).to_csv(batches / "bad.csv", index=False)
    return project


def run(project, batch, **execution):
    said = [f"score.batch={batch}", *(f"execution.{k}={v}" for k, v in execution.items())]
    return project.run("--pipeline=score", "--env=test", "--params", ",".join(said))


def read(folder):
    parts = sorted(folder.glob("part-*.parquet"))
    return pd.concat([pd.read_parquet(path) for path in parts], ignore_index=True)


def files_of(folder):
    return {p.name: (p.read_bytes(), p.stat().st_mtime_ns) for p in sorted(folder.iterdir())}


def scored(office) -> tuple[Path, dict]:
    """Score the batch; return its folder and manifest."""
    done = run(office, "b1", rows_per_part=50)
    assert done.returncode == 0, done.stderr
    folder = office.path / SCORED / "b1"
    return folder, json.loads((folder / "manifest.json").read_text())


def test_everybody_of_a_batch_is_scored(office):
    folder, manifest = scored(office)
    assert manifest["rows"] == len(PEOPLE)
    assert read(folder)["row_id"].tolist() == PEOPLE["person"].tolist()


@pytest.mark.slow
def test_a_batch_is_scored_once(office):
    folder, manifest = scored(office)
    before = files_of(folder)
    promote(office.path / "data" / "06_models" / "tiny", shift=1.0)
    again = run(office, "b1", rows_per_part=7)
    assert again.returncode == 0, again.stderr
    assert f"already scored by version {manifest['version']}" in again.stderr
    assert files_of(folder) == before
    report = json.loads((office.path / "data/08_reporting/tiny/score.json").read_text())
    assert report["already"]


@pytest.mark.slow
def test_299_of_300_applicants_are_scored_and_one_is_listed(office):
    people = fabricate("tiny", 300, seed=4).drop(columns="repaid")
    people["person"] = [f"p{k}" for k in range(300)]
    cells = people.astype({"income": object})
    cells.loc[123, "income"] = '=HYPERLINK("http://bad")'
    cells.to_csv(office.path / "data/01_raw/applicants/tiny/300.csv", index=False)
    done = run(office, "300", rows_per_part=70)
    assert done.returncode == 0, done.stderr
    assert "1 of 300 rows set aside (0.3%)" in done.stderr
    folder = office.path / SCORED / "300"
    assert read(folder)["row_id"].tolist() == people["person"].drop(index=123).tolist()
    (line,) = pd.read_csv(folder / "quarantine.csv").to_dict("records")
    assert line == {
        "row": 123, "column": "income", "found": "'=HYPERLINK(\"http://bad\")",
        "expected": "a number", "row_id": "p123",
    }  # fmt: skip


@pytest.mark.slow
def test_too_many_bad_rows_stop_a_batch(office):
    bad = run(office, "bad")
    assert bad.returncode != 0
    assert "'bad' is not scored, nobody in it" in bad.stderr
    assert "120 × column 'income': expected at least 0" in bad.stderr
    assert not (office.path / SCORED / "bad").exists()


@pytest.mark.slow
def test_what_is_missing_is_said(office):
    nameless = office.run("--pipeline=score", "--env=test")
    assert nameless.returncode != 0
    assert "--params score.batch=<batch id>" in nameless.stderr
    outside = run(office, "../../b1")
    assert outside.returncode != 0
    assert "score.batch must be letters, digits" in outside.stderr
    absent = run(office, "b2")
    assert "missing table: 'b2'" in absent.stderr
    with held(office.path / SCORED / ".b1.lock"):
        locked = run(office, "b1")
    assert locked.returncode == 75
    assert f"process {os.getpid()} on " in locked.stderr
    assert "is at work here" in locked.stderr


@pytest.mark.slow
def test_dask_workers_tell_people_the_same(office):
    done = run(office, "b1", rows_per_part=50)
    assert done.returncode == 0, done.stderr
    here = read(office.path / SCORED / "b1")
    batches = office.path / "data" / "01_raw" / "applicants" / "tiny"
    (batches / "b1.csv").rename(batches / "b2.csv")
    dask = {"engine": "dask", "workers": 2, "rows_per_part": 30}
    there = run(office, "b2", **dask)
    assert there.returncode == 0, there.stderr
    pd.testing.assert_frame_equal(read(office.path / SCORED / "b2"), here)
    bad = run(office, "bad", **dask)
    assert bad.returncode != 0
    assert "120 × column 'income': expected at least 0" in bad.stderr
    assert not (office.path / SCORED / "bad").exists()


@pytest.mark.slow
def test_what_retrain_promotes_scores(project):
    batches = project.path / "data" / "01_raw" / "applicants" / "tiny"
    batches.mkdir(parents=True)
    PEOPLE.to_parquet(batches / "b1.parquet", index=False)
    nobody = run(project, "b1")
    assert nobody.returncode != 0
    assert "there is no champion" in nobody.stderr
    for pipeline in ("ingest", "retrain"):
        done = project.run(f"--pipeline={pipeline}", "--env=test")
        assert done.returncode == 0, done.stderr
    done = run(project, "b1")
    assert done.returncode == 0, done.stderr
    manifest = json.loads((project.path / SCORED / "b1" / "manifest.json").read_text())
    champion = json.loads((project.path / "data/06_models/tiny/champion.json").read_text())
    assert manifest["version"] == champion["version"]
    assert manifest["certificate"] in {claim["id"] for claim in manifest["certificates"]}
    assert manifest["outside_training_range"] is not None


def start(project: object, *said: str) -> subprocess.Popen[str]:
    """Start the pipeline in a process of its own."""
    return subprocess.Popen(
        [
            sys.executable, "-m", "kedro", "run", "--pipeline=score", "--env=test",
            "--params", ",".join(("score.batch=b1", "execution.rows_per_part=2", *said)),
        ],
        cwd=project.path,  # type: ignore[attr-defined]
        env=os.environ | {"OMP_NUM_THREADS": "1", "DO_NOT_TRACK": "1"},
        stderr=subprocess.PIPE,
        text=True,
    )  # fmt: skip


def killed_when(project: object, ready: Callable[[], bool]) -> None:
    """Start the pipeline and kill it, without a word, once something is so."""
    process = start(project)
    while not ready():
        assert process.poll() is None, process.stderr.read()  # type: ignore[union-attr]
        time.sleep(0.005)
    process.send_signal(signal.SIGKILL)
    process.wait()
    process.stderr.close()  # type: ignore[union-attr]


@pytest.mark.slow
@pytest.mark.fault
def test_killed_at_any_step_the_next_run_finishes_with_the_champion_it_began_with(office):
    work, folder = office.path / SCORED / ".b1.partial", office.path / SCORED / "b1"
    models = office.path / "data" / "06_models" / "tiny"
    reading = lambda: len(list(work.glob(".read.partial/part-*"))) > 5  # noqa: E731
    begun = (work / "started.json").exists
    some = lambda: len(list(work.glob(".scored.partial/part-*"))) >= 10  # noqa: E731
    more = lambda: len(list(work.glob(".scored.partial/part-*"))) >= 30  # noqa: E731
    killed_when(office, reading)
    assert not (work / "started.json").exists()
    killed_when(office, begun)
    first = json.loads((work / "started.json").read_text())["version"]
    second = promote(models, shift=1.0)
    killed_when(office, some)
    killed_when(office, more)
    assert not folder.exists()
    done = run(office, "b1", rows_per_part=2)
    assert done.returncode == 0, done.stderr
    manifest = json.loads((folder / "manifest.json").read_text())
    assert manifest["version"] == first != second
    assert manifest["kept_parts"] >= 30
    told = read(folder)
    assert told["row_id"].tolist() == PEOPLE["person"].tolist()
    assert set(told["version"]) == {first}
    assert not work.exists()
    listed = {"manifest.json", *(part["file"] for part in manifest["parts"])}
    assert {path.name for path in folder.iterdir()} == listed


@pytest.mark.slow
@pytest.mark.fault
def test_of_two_runs_at_once_one_works_and_the_other_leaves(office):
    runs = [start(office), start(office)]
    said = [process.communicate()[1] for process in runs]
    codes = sorted(process.returncode for process in runs)
    assert codes[0] == 0
    left = "is at work here" in said[0] + said[1] or "already scored" in said[0] + said[1]
    assert left, said
    folder = office.path / SCORED / "b1"
    assert json.loads((folder / "manifest.json").read_text())["rows"] == len(PEOPLE)
    assert len(list(folder.glob("part-*.parquet"))) == len(PEOPLE) / 2
