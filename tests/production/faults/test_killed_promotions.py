"""Kill -9 at every step of a promotion, a rollback and a recovery: the champion always loads."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from countermove.production.history import DecisionHistory
from countermove.production.registry import Registry, recover

STEPS_OF_A_PROMOTION = 60
"""A promotion writes five files and a database: fewer steps would mean that few are counted."""


def opened(folder: Path) -> tuple[Registry, DecisionHistory]:
    return (
        Registry(str(folder / "registry")),
        DecisionHistory(f"sqlite:///{folder / 'history.db'}", "credit"),
    )


@pytest.fixture(scope="module")
def before(forker, tmp_path_factory) -> Path:
    """A registry with two promotions behind it."""
    folder = tmp_path_factory.mktemp("before")
    for _ in range(2):
        assert forker.order("promote", folder)["code"] == 0
    return folder


@pytest.fixture(scope="module")
def begun(forker, before, tmp_path_factory) -> Path:
    """A registry whose last promotion was decided and not carried out, with half a version."""
    folder = copied(before, tmp_path_factory.mktemp("begun") / "place")
    step = next(step for step in steps_of(forker, "promote", before, folder) if undone(folder))
    assert step
    half = folder / "registry" / "versions" / "000009-x"
    half.mkdir()
    (half / ".score.safetensors.a").write_bytes(b"half")
    (folder / "registry" / ".champion.json.b").write_bytes(b"{")
    return folder


def undone(folder: Path) -> bool:
    registry, _ = opened(folder)
    pointer, last = registry.pointer(), registry.decisions()[-1]
    return pointer is not None and last.sequence > 2 and pointer.decided_by != last.version


def copied(source: Path, target: Path) -> Path:
    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(source, target)
    return target


def steps_of(forker, scenario: str, source: Path, folder: Path, every: int = 1) -> Iterator[int]:
    """Kill a scenario at its first step, its second, …, until it outlives them all."""
    step = 1
    while True:
        copied(source, folder)
        if not forker.order(scenario, folder, kill_at=step)["killed"]:
            return
        yield step
        step += every


def check_and_go_on(forker, folder: Path, source: Path) -> bool:
    """Check a registry that a killed process left; return whether the champion had changed."""
    registry, history = opened(folder)
    old, _ = opened(source)
    champions = (champion_of(registry), champion_of(old))
    left = sorted((folder / "registry").rglob("*"))
    found = recover(registry)
    again = sorted((folder / "registry").rglob("*"))
    # It says what it found, if and only if it had something to do; then nothing is left to do.
    changed = champion_of(registry) != champions[0]
    assert bool(found) == (left != again or changed), found
    assert recover(registry) == []
    # The old champion or the new one; and recovery never goes back to the old.
    assert champion_of(registry) in (champions[0], registry.decisions()[-1].champion_after)
    history.note(registry.time(), found)
    history.add_decisions(registry.decisions())
    listed = [decision.version for decision in registry.decisions()]
    assert history.decisions()["version"].tolist() == listed
    assert len(set(listed)) == len(listed)
    known = [decision.version for decision in old.decisions()]
    assert listed[: len(known)] == known
    assert history.events()["words"].tolist()[-len(found) :] == found or not found
    return champion_of(registry) != champions[1]


def champion_of(registry: Registry) -> str:
    champion = registry.champion()
    assert champion is not None
    return champion.version


def promotes_again(forker, folder: Path) -> None:
    assert forker.order("promote", folder)["code"] == 0
    registry, history = opened(folder)
    assert champion_of(registry) == registry.versions()[-1]
    assert history.decisions()["version"].iloc[-1] == champion_of(registry)


def walk(forker, scenario: str, source: Path, folder: Path, every: int = 1) -> tuple[int, int]:
    """Kill at every step; return how many there were, and after how many the champion changed."""
    steps = changed = 0
    for _ in steps_of(forker, scenario, source, folder, every):
        changed += check_and_go_on(forker, folder, source)
        promotes_again(forker, folder)
        steps += 1
    return steps, changed


def test_some_steps_of_a_promotion(forker, before, tmp_path):
    steps, changed = walk(forker, "promote", before, tmp_path / "place", every=25)
    assert steps >= 3
    assert changed < steps


def test_some_steps_of_a_shifted_threshold(forker, before, tmp_path):
    """The champion before or the shifted one; a next night knows the people it is made for."""
    steps, changed = walk(forker, "shift", before, tmp_path / "place", every=25)
    assert 0 < changed < steps
    folder = copied(before, tmp_path / "whole")
    assert forker.order("shift", folder)["code"] == 0, forker.log.read_text()
    registry, _ = opened(folder)
    assert registry.champion().facts["reach"]["reach"] == 1.4
    assert registry.decisions()[-1].facts["policy"]["memory"]["days"] == [1.0]


@pytest.mark.fault
@pytest.mark.slow
@pytest.mark.parametrize(
    ("scenario", "changes"),
    [("promote", True), ("keep", False), ("rollback", True), ("block", False), ("shift", True)],
)
def test_every_step(forker, before, tmp_path, scenario, changes, capsys):
    steps, changed = walk(forker, scenario, before, tmp_path / "place")
    with capsys.disabled():
        sys.stdout.write(f"\n{scenario}: {steps} steps, champion changed after {changed}\n")
    assert steps >= (STEPS_OF_A_PROMOTION if scenario == "promote" else 20)
    # Both ends were met: a champion that had not changed yet, and one that had.
    assert (0 < changed < steps) if changes else changed == 0


@pytest.mark.fault
@pytest.mark.slow
def test_every_step_of_a_recovery(forker, begun, before, tmp_path):
    folder = tmp_path / "place"
    steps = 0
    for _ in steps_of(forker, "recover", begun, folder):
        check_and_go_on(forker, folder, before)
        registry, _ = opened(folder)
        assert champion_of(registry) == registry.decisions()[-1].champion_after
        promotes_again(forker, folder)
        steps += 1
    assert steps >= 20


@pytest.mark.fault
@pytest.mark.slow
def test_every_step_of_a_cold_start(forker, tmp_path):
    empty, folder = tmp_path / "empty", tmp_path / "place"
    empty.mkdir()
    with_champion = steps = 0
    for _ in steps_of(forker, "promote", empty, folder):
        registry, history = opened(folder)
        recover(registry)
        with_champion += registry.champion() is not None
        history.add_decisions(registry.decisions())
        promotes_again(forker, folder)
        steps += 1
    assert 0 < with_champion < steps
