"""Whole retrainings killed at random: nothing of the champion is ever lost or corrupt."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest

from countermove.data.synthetic import fabricate
from countermove.production.history import DecisionHistory
from countermove.production.registry import Registry, recover

pytestmark = [pytest.mark.slow, pytest.mark.fault]
POINTS = 200
WHOLE_RUNS = 30
REAL_KILLS = 10
MOST_BATCHES = 3


def opened(project: Path) -> tuple[Registry, DecisionHistory]:
    models = project / "data" / "06_models"
    return Registry(str(models / "tiny")), DecisionHistory(
        f"sqlite:///{models / 'history.db'}", "tiny"
    )


def used_batches(registry: Registry) -> set[str]:
    """Every batch that a challenger was made from."""
    made = (each for each in registry.decisions() if each.outcome in ("promoted", "kept"))
    return {name for decision in made for name in decision.facts.get("batches", {})}


def all_used(project) -> bool:
    used = used_batches(opened(project.path)[0])
    return {path.stem for path in project.batches.glob("*.csv")} <= used


def check(registry: Registry, history: DecisionHistory) -> str:
    """Check what a killed run left; return in a word how far it had come."""
    first = registry.champion()
    assert first is not None
    listed = [decision.version for decision in registry.decisions()]
    found = recover(registry)
    assert recover(registry) == []
    champion = registry.champion()
    assert champion is not None
    assert champion.version in (first.version, registry.decisions()[-1].champion_after)
    history.note(registry.time(), found)
    added = history.add_decisions(registry.decisions())
    known = [decision.version for decision in registry.decisions()]
    assert known[: len(listed)] == listed
    assert history.decisions()["version"].tolist() == known
    assert len(set(known)) == len(known)
    if found:
        return "recovered"
    return "brought into the history" if added else "in order"


def bring(folder: Path, number: int) -> None:
    table = fabricate("tiny", 20, seed=number)
    table["person"] = f"{number}-" + table["person"]
    (folder / "batches").mkdir(exist_ok=True)
    table.to_csv(folder / "batches" / f"{number:04d}.csv", index=False)


def test_200_random_kills_lose_no_champion(chain_forker, tmp_path, capsys):
    rng = random.Random(11)
    seen: Counter[str] = Counter()
    place = tmp_path / "place"
    fresh = tmp_path / "fresh"
    fresh.mkdir()
    assert chain_forker.order("chain", fresh)["code"] == 0, chain_forker.log.read_text()
    shutil.copytree(fresh, place)
    bring(place, 0)
    began = time.monotonic()
    assert chain_forker.order("chain", place)["code"] == 0, chain_forker.log.read_text()
    seconds = time.monotonic() - began
    steps = int(chain_forker.log.read_text().rpartition("steps: ")[2])
    for point in range(POINTS):
        registry = Registry(str(place / "registry"))
        used = len(used_batches(registry))
        if len(list((place / "batches").glob("*.csv"))) == used:
            if used >= MOST_BATCHES:
                shutil.rmtree(place)
                shutil.copytree(fresh, place)
            bring(place, 10 + point)
        # By turns at a random moment, at any touch of the disk, and where a file gets its name:
        # one of the facts, three of the version, the decision, the pointer.
        how = (
            {"kill_after": rng.uniform(0, seconds)},
            {"kill_at": rng.randint(1, steps)},
            {"kill_at_rename": rng.randint(1, 6)},
        )[point % 3]
        ended = chain_forker.order("chain", place, **how)
        assert ended["killed"] or ended["code"] == 0, chain_forker.log.read_text()
        seen["killed" if ended["killed"] else "outlived"] += 1
        history = DecisionHistory(f"sqlite:///{place / 'history.db'}", "credit")
        seen[check(registry, history)] += 1
    bring(place, 9999)
    assert chain_forker.order("chain", place)["code"] == 0, chain_forker.log.read_text()
    with capsys.disabled():
        sys.stdout.write(f"\n{POINTS} points of {steps} steps: {dict(seen)}\n")
    assert seen["killed"] > POINTS / 2
    assert seen["recovered"] >= 10


def test_random_kills_of_whole_runs(deployed, working, warm_forker, capsys):
    rng = random.Random(11)
    seen: Counter[str] = Counter()
    place = working.path
    working.bring_batch("0000")
    assert warm_forker.order("run", place)["code"] in (0, 3)
    steps = int(warm_forker.log.read_text().rpartition("steps: ")[2])
    for point in range(WHOLE_RUNS):
        if all_used(working):
            if len(list(working.batches.glob("*.csv"))) >= MOST_BATCHES:
                shutil.rmtree(place)
                shutil.copytree(deployed.path, place)
            working.bring_batch(f"{10 + point:04d}", seed=point)
        ended = warm_forker.order("run", place, kill_at=rng.randint(1, steps))
        assert ended["killed"] or ended["code"] in (0, 3), warm_forker.log.read_text()
        seen["killed" if ended["killed"] else "outlived"] += 1
        seen[check(*opened(place))] += 1
    assert warm_forker.order("run", place)["code"] in (0, 3, 4)
    with capsys.disabled():
        sys.stdout.write(f"\n{WHOLE_RUNS} whole runs of {steps} steps: {dict(seen)}\n")
    assert seen["killed"] > WHOLE_RUNS / 2


def test_real_runs_killed_at_random(working):
    rng = random.Random(3)
    place = working.path
    command = [sys.executable, "-m", "kedro", "run", "--pipeline=retrain", "--env=test"]
    environment = os.environ | {"OMP_NUM_THREADS": "1", "DO_NOT_TRACK": "1"}
    working.bring_batch("0001")
    began = time.monotonic()
    whole = working.retrain()
    assert whole.returncode in (0, 3), whole.stderr
    seconds = time.monotonic() - began
    killed = 0
    for number in range(REAL_KILLS):
        if all_used(working):
            working.bring_batch(f"{10 + number:04d}", seed=number)
        run = subprocess.Popen(
            command,
            cwd=place,
            env=environment,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        time.sleep(rng.uniform(0.3, 1.0) * seconds)
        run.send_signal(signal.SIGKILL)
        killed += run.wait() == -signal.SIGKILL
        assert opened(place)[0].champion() is not None
        # The lock of a killed run is free at once, and the next run says what it found.
        check(*opened(place))
    assert killed > REAL_KILLS / 2
    working.bring_batch("0099", seed=99)
    last = working.retrain()
    assert last.returncode in (0, 3), last.stderr
    decision = json.loads((place / "data/08_reporting/tiny/decision.json").read_text())
    assert "0099" in decision["facts"]["batches"]
    assert opened(place)[1].decisions()["version"].iloc[-1] == decision["version"]
