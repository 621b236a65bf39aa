"""Kill -9 while a batch is scored beside a challenger, with approvals by draw: nothing is lost.

The batch is published whole or not at all, its advice is in the register before, and the next run
decides the same about everybody, whichever step the last one died at.
"""

from __future__ import annotations

import sys
from pathlib import Path

import pandas as pd
import pytest

from countermove.production.open_advice import AdviceRegister
from countermove.production.registry import Registry

from .test_killed_promotions import champion_of, copied

POINTS = 60
"""Kill points over a batch with a challenger beside and exploration."""


@pytest.fixture(scope="module")
def office(scoring_forker, tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("office")
    done = scoring_forker.order("open_office", folder)
    assert done["code"] == 0, scoring_forker.log.read_text()
    return folder


@pytest.fixture(scope="module")
def unhurt(scoring_forker, office, tmp_path_factory) -> tuple[pd.DataFrame, int]:
    """What a run decides that nobody kills, and how many steps it has."""
    folder = copied(office, tmp_path_factory.mktemp("unhurt") / "place")
    assert scoring_forker.order("try_beside", folder)["code"] == 0, scoring_forker.log.read_text()
    (line,) = [x for x in scoring_forker.log.read_text().splitlines() if x.startswith("steps: ")]
    return read(folder), int(line.removeprefix("steps: "))


def read(folder: Path) -> pd.DataFrame:
    parts = sorted((folder / "scored" / "may").glob("part-*.parquet"))
    return pd.concat(map(pd.read_parquet, parts), ignore_index=True)


def advised(folder: Path) -> dict[str, dict[str, str]]:
    """Return, by batch, who is advised by which version."""
    kept = AdviceRegister(Registry(str(folder / "models"))).open()
    return {batch.batch: dict.fromkeys(batch.people, batch.version) for batch in kept}


def check(forker, folder: Path, source: Path, told: pd.DataFrame) -> bool:
    """Check what a killed run left, and finish it; return whether it had published."""
    registry = Registry(str(folder / "models"))
    assert champion_of(registry) == champion_of(Registry(str(source / "models")))
    assert advised(folder)["april"] == advised(source)["april"]
    published = (folder / "scored" / "may").exists()
    if published:
        pd.testing.assert_frame_equal(read(folder), told)
        assert "may" in advised(folder)
    assert forker.order("try_beside", folder)["code"] == 0, forker.log.read_text()
    pd.testing.assert_frame_equal(read(folder), told)
    assert advised(folder)["april"] == advised(source)["april"]
    found = told[told["status"] == "FOUND"]
    assert sorted(advised(folder)["may"].values()) == sorted(found["version"])
    assert not list((folder / "scored").glob(".*.partial"))
    return published


def walk(forker, office: Path, unhurt: tuple[pd.DataFrame, int], folder: Path, points: int) -> int:
    told, steps = unhurt
    published = 0
    for point in range(points):
        copied(office, folder)
        step = 1 + round(point * (steps - 2) / (points - 1))
        assert forker.order("try_beside", folder, kill_at=step)["killed"]
        published += check(forker, folder, office, told)
    return published


@pytest.mark.slow
def test_some_steps(scoring_forker, office, unhurt, tmp_path):
    told, _ = unhurt
    assert told["explored"].sum() > 3
    assert len(set(told["challenger"])) == 1
    assert walk(scoring_forker, office, unhurt, tmp_path / "place", points=8) < 8


@pytest.mark.fault
@pytest.mark.slow
def test_kill_points_over_all_steps(scoring_forker, office, unhurt, tmp_path, capsys):
    published = walk(scoring_forker, office, unhurt, tmp_path / "place", points=POINTS)
    assert 0 < published < POINTS
    with capsys.disabled():
        sys.stdout.write(f"\n{POINTS} of {unhurt[1]} steps, published after {published}")
