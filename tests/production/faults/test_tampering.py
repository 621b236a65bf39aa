"""What was altered is refused with advice, and a rollback by name brings a champion back."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from countermove.errors import ModelFileError
from countermove.production.history import DecisionHistory
from countermove.production.registry import Registry, recover
from countermove.production.retraining.promotion import roll_back


def alter(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(bytes(content))


@pytest.fixture
def place(forker, tmp_path) -> tuple[Registry, DecisionHistory]:
    """A registry with two promotions, and its history."""
    for _ in range(2):
        assert forker.order("promote", tmp_path)["code"] == 0
    return (
        Registry(str(tmp_path / "registry")),
        DecisionHistory(f"sqlite:///{tmp_path / 'history.db'}", "credit"),
    )


@pytest.mark.parametrize("name", ["score.safetensors", "model.json", "version.json"])
def test_an_altered_model_is_refused_and_the_one_before_takes_over(place, tmp_path, name):
    registry, history = place
    first, second = registry.versions()
    alter(tmp_path / "registry" / "versions" / second / name)
    with pytest.raises(ModelFileError, match="restore"):
        registry.champion()
    with pytest.raises(ModelFileError):
        roll_back(registry, history, registry.versions()[-1] + "x")
    assert recover(registry) == []
    decision = roll_back(registry, history)
    assert decision.champion_after == first
    champion = registry.champion()
    assert champion is not None
    assert champion.version == first
    # Nor does anything bring the altered one back.
    with pytest.raises(ModelFileError, match="restore"):
        roll_back(registry, history, second)
    assert recover(registry) == []
    assert registry.champion() is not None


def test_an_altered_pointer_is_refused_and_the_champion_chosen_by_name(place, tmp_path):
    registry, history = place
    alter(tmp_path / "registry" / "champion.json")
    for use in (registry.champion, lambda: recover(registry), lambda: roll_back(*place)):
        with pytest.raises(ModelFileError, match="kedro countermove rollback VERSION"):
            use()
    second = registry.versions()[1]
    assert roll_back(registry, history, second).champion_after == second
    champion = registry.champion()
    assert champion is not None
    assert champion.version == second
    assert recover(registry) == []


def test_an_altered_decision_is_refused_and_the_champion_can_still_be_chosen(place, tmp_path):
    registry, history = place
    first, second = registry.versions()
    path = tmp_path / "registry" / "decisions" / f"{second}.json"
    content = json.loads(path.read_bytes())
    path.write_text(json.dumps(content | {"outcome": "kept"}))
    with pytest.raises(ModelFileError, match=r"was altered.*backup"):
        recover(registry)
    assert registry.champion() is not None
    assert roll_back(registry, history, first).champion_after == first
    path.write_text(json.dumps(content))
    assert recover(registry) == []


@pytest.mark.slow
@pytest.mark.fault
def test_a_run_refuses_an_altered_champion_and_a_rollback_mends_it(working):
    working.bring_batch("one")
    assert working.retrain("--params=retrain.gates.improvement=null").returncode in (0, 3)
    models = working.path / "data" / "06_models" / "tiny"
    registry = Registry(str(models))
    pointer = registry.pointer()
    assert pointer is not None
    working.bring_batch("two", seed=2)
    alter(models / "versions" / pointer.version / "score.safetensors")
    refused = working.retrain()
    assert refused.returncode == 1
    assert "ModelFileError" in refused.stderr
    assert "Traceback" not in refused.stderr
    other = next(version for version in registry.versions() if version != pointer.version)
    back = working.kedro("countermove", "rollback", other, "--env=test")
    assert back.returncode == 0, back.stderr
    assert f"{other} is the champion" in back.stdout
    again = working.retrain()
    assert again.returncode in (0, 1, 3), again.stderr
    champion = registry.champion()
    assert champion is not None
