"""Batches, exit codes and signatures through real runs and commands."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest

pytestmark = pytest.mark.slow


def outcome(project):
    path = project.path / "data" / "08_reporting" / "tiny" / "retrain_outcome.json"
    return json.loads(path.read_text())


def decided(project):
    return json.loads((project.path / "data/08_reporting/tiny/decision.json").read_text())


def by_hand(project, *words):
    ran = project.kedro("countermove", *words, "--env=test")
    assert "Traceback" not in ran.stderr
    return ran


def holding(project, person):
    """Return the names of tables that have a row of a person."""
    tables = {path: pd.read_parquet(path) for path in (project.path / "data").rglob("*.parquet")}
    return {path.name for path, rows in tables.items() if (rows.get("row_id") == person).any()}


def test_a_half_uploaded_batch_waits_is_corrected_and_withdrawn(working):
    path = working.bring_batch("2026-10")
    marker = path.with_name("2026-10.csv.ready")
    ready = "--params=retrain.ready=rows"
    waits = working.retrain(ready)
    assert waits.returncode == 0, waits.stderr
    assert "waits for its ready marker 2026-10.csv.ready" in waits.stderr
    assert "Error" not in waits.stderr
    marker.write_text("31")
    assert "has 30 rows, and its ready marker declares 31" in working.retrain(ready).stderr
    marker.write_text("30")
    assert working.retrain(ready).returncode in (0, 3)
    assert decided(working)["facts"]["batches"]["2026-10"]["date"] == "2026-10-01"

    # Another content blocks until somebody says that it is the corrected one.
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join(lines[:-1]))
    refused = working.retrain()
    assert refused.returncode == 4
    assert "kedro countermove supersede 2026-10" in refused.stderr
    assert outcome(working)["outcome"] == "blocked"
    marker.unlink()
    assert by_hand(working, "supersede", "2026-10", "--reason", "twice").returncode == 0
    assert working.retrain().returncode in (0, 3)
    assert decided(working)["facts"]["batches"]["2026-10"]["rows"] == 29
    assert decided(working)["facts"]["withdrawn"] == ["2026-10"]

    # A withdrawn one is left out, and named in the decision.
    assert by_hand(working, "withdraw", "2026-10").returncode == 0
    assert working.retrain().returncode in (0, 3)
    assert decided(working)["facts"]["batches"] == {}
    assert decided(working)["facts"]["withdrawn"] == ["2026-10"]
    assert outcome(working)["reasons"][-1] == "made without batch 2026-10 as it was"
    assert outcome(working)["decision"] == decided(working)["version"]
    again = working.retrain()
    assert (again.returncode, outcome(working)["outcome"]) == (0, "nothing_new")
    listed = by_hand(working, "batches").stdout
    assert "superseded" in listed or "withdrawn" in listed
    unknown = by_hand(working, "withdraw", "2026-01")
    assert unknown.returncode == 1
    assert "UnknownNameError" in unknown.stderr


def test_a_label_is_corrected_by_a_file_until_that_is_withdrawn(working):
    path = working.bring_batch("2026-09", rows=60)
    assert working.retrain().returncode in (0, 3)
    people = pd.read_csv(path)
    again = people[["person", "repaid"]].head(4)
    swapped = again.assign(repaid=np.where(again["repaid"] == "yes", "no", "yes"))
    swapped.to_csv(working.batches / "2026-10.csv", index=False)
    ran = working.retrain()
    assert ran.returncode in (0, 3), ran.stderr
    said = decided(working)["facts"]["batches"]
    assert sum(said["2026-10"]["corrected"]["2026-09"].values()) == 4
    assert (said["2026-09"]["used"], said["2026-10"]["used"]) == (56, 4)
    listed = pd.read_csv(working.path / "data/02_intermediate/tiny/batch_corrections.csv")
    assert listed["row_id"].tolist() == again["person"].tolist()
    assert (listed["label"] == -listed["label_before"]).all()
    assert "labels corrected: 4 by 2026-10" in by_hand(working, "batches").stdout
    # Withdrawing the correction brings the earlier labels back.
    assert by_hand(working, "withdraw", "2026-10").returncode == 0
    assert working.retrain().returncode in (0, 3)
    assert decided(working)["facts"]["batches"]["2026-09"]["used"] == 60


def test_people_with_and_without_a_label_are_kept_until_they_are_forgotten(working):
    path = working.bring_batch("2026-10")
    people = pd.read_csv(path)
    people.loc[:2, "repaid"] = np.nan
    people.to_csv(path, index=False)
    ran = working.retrain()
    assert ran.returncode in (0, 3), ran.stderr
    made = working.path / "data/02_intermediate/tiny"
    waiting = pd.read_parquet(made / "batch_waiting.parquet")["row_id"].tolist()
    assert waiting == people["person"].head(3).tolist()
    gone = by_hand(working, "forget", waiting[0])
    assert f"{made / 'batch_waiting.parquet'}: 1 row deleted" in gone.stdout
    assert pd.read_parquet(made / "batch_waiting.parquet")["row_id"].tolist() == waiting[1:]
    labelled = people["person"].iloc[5]
    # In the rows of the retraining, and in the part of them that falls to training or to a check.
    assert len(holding(working, labelled) - {"batch_rows.parquet"}) == 1
    assert by_hand(working, "forget", labelled).returncode == 0
    assert holding(working, labelled) == set()


def test_a_page_that_cannot_be_written_leaves_the_decision_standing(working):
    working.bring_batch("one")
    page = working.path / "data" / "08_reporting" / "tiny" / "retraining.html"
    page.unlink()
    page.mkdir()
    (page / "in_the_way").touch()
    ran = working.retrain()
    assert ran.returncode == 7, ran.stderr
    assert "AfterDecisionError: decision 000002" in ran.stderr
    assert "Traceback" not in ran.stderr
    ended = outcome(working)
    assert (ended["outcome"], ended["code"]) == ("failed_after_decision", 7)
    assert ended["decision"] == decided(working)["version"]
    (page / "in_the_way").unlink()
    page.rmdir()
    again = working.retrain("--nodes=retrain.write_page")
    assert again.returncode in (0, 3), again.stderr
    assert page.is_file()


def test_a_refused_cold_start_has_its_own_code(project):
    strict = "--params=retrain.gates.minimum_accuracy.least=0.999"
    ran = project.retrain(strict)
    assert ran.returncode == 6, ran.stderr
    assert outcome(project)["champion_after"] is None
    assert not (project.path / "data/06_models/tiny/champion.json").exists()
    # A version that failed its gates becomes the champion only by force.
    version = decided(project)["version"]
    asked = by_hand(project, "rollback", version)
    assert asked.returncode == 1
    assert "--force" in asked.stderr
    assert by_hand(project, "rollback", version, "--force").returncode == 0


def test_a_signed_registry_is_run_with_its_key_and_refused_without(working):
    key = {"COUNTERMOVE_REGISTRY_KEY": "k" * 40, "OMP_NUM_THREADS": "1"}

    def run(*arguments):
        return subprocess.run(
            [sys.executable, "-m", "kedro", *arguments, "--env=test"],
            cwd=working.path, env=os.environ | key, capture_output=True, text=True, check=False,
        )  # fmt: skip

    unsigned = run("run", "--pipeline=retrain")
    assert unsigned.returncode == 1
    assert "kedro countermove sign --unsigned" in unsigned.stderr
    assert "Traceback" not in unsigned.stderr
    signed = run("countermove", "sign", "--unsigned")
    assert signed.returncode == 0, signed.stderr
    working.bring_batch("one")
    assert run("run", "--pipeline=retrain").returncode in (0, 3)
    without = working.retrain()
    assert without.returncode == 1
    assert "is signed: set COUNTERMOVE_REGISTRY_KEY" in without.stderr
    assert "k" * 40 not in unsigned.stderr + signed.stdout + without.stderr


@pytest.mark.parametrize("seed", ["abc", "-1", "1e400", "true", "1.5"])
def test_a_seed_that_is_none_is_refused(project, seed):
    ran = project.retrain(f"--params=seed={seed}")
    assert ran.returncode == 1
    assert "seed must be a whole number of at least 0" in ran.stderr
    assert "Traceback" not in ran.stderr
