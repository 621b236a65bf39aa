"""Months of retraining as a scheduler runs them."""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd
import pytest
from tests.conftest import Project

from countermove.data.synthetic import fabricate

RAW = fabricate("tiny")


def bring(project: Project, name: str, rows: pd.DataFrame) -> None:
    folder = project.path / "data" / "01_raw" / "batches" / "tiny"
    folder.mkdir(parents=True, exist_ok=True)
    rows.to_csv(folder / f"{name}.csv", index=False)


def newcomers(first: int, n: int = 60) -> pd.DataFrame:
    """People like those of the table, under ids nobody has had."""
    rows = RAW.sample(n, random_state=first, replace=True).reset_index(drop=True)
    return rows.assign(
        person=[f"n{first}-{place}" for place in range(n)],
        income=rows["income"].astype(float) + 0.01 * (1 + rows.index),
    )


def decision(project: Project) -> dict:
    path = project.path / "data" / "08_reporting" / "tiny" / "decision.json"
    return json.loads(path.read_text())


def outcome(project: Project) -> dict:
    path = project.path / "data" / "08_reporting" / "tiny" / "retrain_outcome.json"
    return json.loads(path.read_text())


@pytest.mark.slow
def test_months_of_retraining(project: Project, tmp_path: Path):
    first = project.run("--pipeline=retrain", "--env=test")
    assert first.returncode == 0, first.stderr
    champion = decision(project)["champion_after"]

    again = project.run("--pipeline=retrain", "--env=test")
    assert again.returncode == 0
    assert "no new batch" in again.stderr
    assert "Error" not in again.stderr
    assert outcome(project)["outcome"] == "nothing_new"
    assert decision(project)["version"] == champion

    bring(project, "2026-01", newcomers(1))
    second = project.run("--pipeline=retrain", "--env=test")
    assert second.returncode in (0, 3), second.stderr
    made = decision(project)
    assert made["outcome"] == ("promoted" if second.returncode == 0 else "kept")
    assert made["facts"]["batches"]["2026-01"]["rule"] == champion
    assert {gate["name"] for gate in made["facts"]["gates"]} >= {"likelihood", "flip_rate"}
    outcomes = made["facts"]["outcomes"]
    assert {outcome["batch"] for outcome in outcomes} == {"2026-01"}
    assert all(outcome["champion"] == champion for outcome in outcomes)

    bring(project, "2026-02", newcomers(2)[:0])
    empty = project.run("--pipeline=retrain", "--env=test")
    assert empty.returncode == 4
    assert "batch '2026-02' is empty" in empty.stderr
    assert (outcome(project)["outcome"], outcome(project)["code"]) == ("blocked", 4)

    listed = project.kedro("countermove", "history", "--env=test")
    assert listed.returncode == 0, listed.stderr
    outcomes = [line.split()[-2] for line in listed.stdout.splitlines() if "T" in line[:20]]
    assert "forecast direct_upper" in listed.stdout
    assert "blocked" in outcomes

    compared = project.kedro("countermove", "diff", champion, made["version"], "--env=test")
    assert compared.returncode == 0, compared.stderr
    assert "Trained on" in compared.stdout

    back = project.kedro("countermove", "rollback", "--env=test")
    if made["outcome"] == "promoted":
        assert f"{champion} is the champion" in back.stdout
    else:
        assert "no earlier champion" in back.stderr
