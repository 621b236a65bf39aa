"""Advice given by real runs is kept by real retrainings, also by those that are killed."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from countermove.data.synthetic import fabricate

from ..tiny_champion import PEOPLE

pytestmark = [pytest.mark.slow, pytest.mark.fault]
KILLS = 6
MOVED = ("income", "savings", "open_loans")
LENIENT = ",".join(
    (
        "retrain.gates.improvement=null",
        "retrain.gates.flip_rate=null",
        "retrain.gates.group_disparity=null",
        "retrain.gates.recourse_certificate=null",
        "retrain.gates.minimum_accuracy=null",
        "retrain.gates.transfer_bound=null",
    )
)
"""Only the gate of open advice is left: what it alone refuses, and what it lets through."""


def score(project, batch):
    """Score a batch of applicants; return its decisions by id."""
    done = project.run("--pipeline=score", "--env=test", "--params", f"score.batch={batch}")
    assert done.returncode == 0, done.stderr
    folder = project.path / "data" / "07_model_output" / "tiny" / "scored" / batch
    parts = [pd.read_parquet(path) for path in sorted(folder.glob("part-*.parquet"))]
    return pd.concat(parts).set_index("row_id")


def apply_for_credit(project, batch, people):
    """Bring a batch of applicants."""
    folder = project.path / "data" / "01_raw" / "applicants" / "tiny"
    folder.mkdir(parents=True, exist_ok=True)
    people.to_csv(folder / f"{batch}.csv", index=False)


def followers(scored):
    """Return the advised applicants after they did what they were told, by numbers alone."""
    given = scored[scored["status"] == "FOUND"]
    others = [c for c in given if c.startswith("change:") and c[7:] not in MOVED]
    given = given[(given[others] == 0.0).all(axis=1)]
    rows = PEOPLE[PEOPLE["person"].isin(given.index)].copy()
    for column in MOVED:
        rows[column] = rows[column] + given.loc[rows["person"], f"change:{column}"].to_numpy()
    return rows.assign(open_loans=rows["open_loans"].round().astype(int))


def bad_year(project, name, rows=600):
    """Bring a batch of a year in which hardly anybody repaid: a challenger of it is stricter."""
    table = fabricate("tiny", rows, seed=5)
    table["person"] = f"{name}-" + table["person"]
    poor = table["income"] < table["income"].quantile(0.9)
    table.loc[poor, "repaid"] = "no"
    table.to_csv(project.batches / f"{name}.csv", index=False)


def register_of(project):
    folder = project.path / "data" / "06_models" / "tiny" / "open_advice"
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


def decision(project):
    path = project.path / "data" / "08_reporting" / "tiny" / "decision.json"
    return json.loads(path.read_text())


def test_a_retraining_keeps_its_word_also_where_it_is_killed(working, tmp_path):
    apply_for_credit(working, "may", PEOPLE)
    may = score(working, "may")
    rows = followers(may)
    assert len(rows) > 5
    given = register_of(working)
    assert list(given) == ["may.json"]
    bad_year(working, "2026")
    shutil.copytree(working.path, tmp_path / "whole")
    began = time.monotonic()
    replace(working, path=tmp_path / "whole").retrain("--params", LENIENT)
    whole = time.monotonic() - began

    # Killed anywhere, a retraining leaves the register as it was, and what is open is honoured.
    rng = random.Random(4)
    command = [sys.executable, "-m", "kedro", "run", "--pipeline=retrain", "--env=test"]
    environment = os.environ | {"OMP_NUM_THREADS": "1", "DO_NOT_TRACK": "1"}
    killed = 0
    for _ in range(KILLS):
        run = subprocess.Popen(
            [*command, "--params", LENIENT],
            cwd=working.path, env=environment,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        time.sleep(rng.uniform(0.1, 0.7) * whole)
        run.send_signal(signal.SIGKILL)
        killed += run.wait() == -signal.SIGKILL
        assert register_of(working) == given
    assert killed > KILLS / 2
    apply_for_credit(working, "june", rows)
    assert (score(working, "june")["decision"] == 1).all()

    # The gate of open advice alone refuses the challenger of a bad year, ...
    refused = working.retrain("--params", LENIENT)
    assert refused.returncode == 3, refused.stderr
    gates = {gate["name"]: gate for gate in decision(working)["facts"]["gates"]}
    assert gates["open_advice"]["passed"] is False
    assert "who follow it" in gates["open_advice"]["words"]
    champion = decision(working)["champion_after"]

    # ... and whom a promoted one refuses is approved for what they were told, until it expires.
    bad_year(working, "2027")
    loose = f"{LENIENT},retrain.gates.open_advice.largest_share=1"
    promoted = working.retrain("--params", loose)
    assert promoted.returncode == 0, promoted.stderr
    assert decision(working)["champion_after"] != champion
    apply_for_credit(working, "july", rows)
    july = score(working, "july")
    honoured = july["honoured"] == champion
    assert (july["decision"] == 1).all()
    assert honoured.any()
    assert july.loc[honoured, "words"].str.contains("was followed").all()
    strangers = rows.assign(person=[f"other-{k}" for k in range(len(rows))])
    apply_for_credit(working, "strangers", strangers)
    alike = score(working, "strangers")
    np.testing.assert_array_equal(alike["decision"] == -1, honoured.to_numpy())

    # Whoever asks to be forgotten is no longer recognised.
    person = str(july.index[honoured][0])
    gone = working.kedro("countermove", "forget", person, "--env=test")
    assert gone.returncode == 0, gone.stderr
    assert "open advice of batch may: deleted" in gone.stdout
    apply_for_credit(working, "august", rows[rows["person"] == person])
    assert (score(working, "august")["decision"] == -1).all()
