from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest
import torch

from countermove.data.standardise import Standardiser
from countermove.errors import ModelFileError
from countermove.production.registry import Decision, Registry, recover
from countermove.scores.linear import LinearScore
from countermove.scores.storage import PublishedModel

FACTS = {"metrics": {"accuracy": 0.8}, "data_hash": "d", "certificates": []}


def model(weight: float = 1.0) -> PublishedModel:
    score = LinearScore(2)
    with torch.no_grad():
        score.weight.copy_(torch.tensor([weight, 2.0]))
    unit = Standardiser(np.zeros(2), np.ones(2), ("a", "b"))
    return PublishedModel(score, unit, "schema")


def promote(registry: Registry, weight: float = 1.0) -> str:
    version = registry.next_version()
    registry.add(version, model(weight), FACTS)
    registry.carry_out(decided(registry, version))
    return version


def decided(registry: Registry, version: str) -> Decision:
    pointer = registry.pointer()
    before = None if pointer is None else pointer.version
    decision = Decision(
        version, "retrain", "promoted", registry.time(), before, version, ["better"]
    )
    registry.record(decision)
    return decision


@pytest.fixture(params=["folder", "memory"])
def registry(request: pytest.FixtureRequest, tmp_path: Path) -> Registry:
    url = str(tmp_path) if request.param == "folder" else f"memory://{tmp_path.name}"
    return Registry(url)


def test_the_champion_is_the_version_promoted_last(registry: Registry) -> None:
    assert registry.champion() is None
    first, second = promote(registry, 1.0), promote(registry, 3.0)
    champion = registry.champion()
    assert champion is not None
    assert champion.version == second
    assert champion.pointer.previous == first
    assert champion.model.score.slope()[0] == 3.0  # type: ignore[index]
    assert registry.versions() == [first, second]
    assert [decision.version for decision in registry.decisions()] == [first, second]


def test_versions_are_numbered_whatever_the_clock_says(tmp_path: Path) -> None:
    times = iter([datetime(2030, 1, 1, tzinfo=UTC), datetime(2020, 1, 1, tzinfo=UTC)] * 9)
    registry = Registry(str(tmp_path), clock=lambda: next(times))
    first, second = promote(registry), promote(registry)
    assert registry.versions() == [first, second]
    champion = registry.champion()
    assert champion is not None
    assert champion.version == second


def test_a_version_is_never_overwritten(registry: Registry) -> None:
    version = promote(registry)
    with pytest.raises(ModelFileError, match="exists already"):
        registry.add(version, model(), FACTS)


def test_an_unknown_version_is_named_with_the_nearest(registry: Registry) -> None:
    version = promote(registry)
    with pytest.raises(ModelFileError, match=f"did you mean '{version}'"):
        registry.load(version[:-2])


@pytest.mark.parametrize(
    "name", ["score.safetensors", "model.json", "version.json", "../../champion.json"]
)
def test_an_altered_champion_is_refused(name: str, tmp_path: Path) -> None:
    registry = Registry(str(tmp_path))
    version = promote(registry)
    path = tmp_path / "versions" / version / name
    content = bytearray(path.read_bytes())
    content[-20] ^= 1
    path.write_bytes(bytes(content))
    with pytest.raises(ModelFileError):
        registry.champion()


def test_a_champion_replaced_by_another_model_is_refused(tmp_path: Path) -> None:
    registry = Registry(str(tmp_path / "one"))
    version = promote(registry)
    other = Registry(str(tmp_path / "other"))
    other.add(version, model(9.0), FACTS)
    for name in ("score.safetensors", "model.json", "version.json"):
        place = Path("versions", version, name)
        (tmp_path / "one" / place).write_bytes((tmp_path / "other" / place).read_bytes())
    with pytest.raises(ModelFileError, match="altered after its promotion"):
        registry.champion()


def test_recovery_finds_nothing_in_good_order(registry: Registry) -> None:
    promote(registry)
    assert recover(registry) == []


def test_a_decision_that_was_not_carried_out_is_carried_out(registry: Registry) -> None:
    promote(registry)
    version = registry.next_version()
    registry.add(version, model(5.0), FACTS)
    decided(registry, version)
    (said,) = recover(registry)
    assert "recorded but not carried out" in said
    champion = registry.champion()
    assert champion is not None
    assert champion.version == version
    assert recover(registry) == []


def test_an_undecided_version_is_kept_and_not_promoted(registry: Registry) -> None:
    first = promote(registry)
    version = registry.next_version()
    registry.add(version, model(5.0), FACTS)
    (said,) = recover(registry)
    assert version in said
    assert registry.decision(version).outcome == "interrupted"
    champion = registry.champion()
    assert champion is not None
    assert champion.version == first


def test_a_half_written_version_is_removed(registry: Registry) -> None:
    first = promote(registry)
    registry.store.write("versions/000002-x/score.safetensors", b"half")
    (said,) = recover(registry)
    assert "half written" in said
    assert registry.store.names("versions") == [first]


def test_half_written_files_are_removed(tmp_path: Path) -> None:
    registry = Registry(str(tmp_path))
    promote(registry)
    (tmp_path / ".champion.json.abc").write_bytes(b"{")
    (said,) = recover(registry)
    assert ".champion.json.abc" in said
    assert not (tmp_path / ".champion.json.abc").exists()


def test_the_pointer_says_what_the_design_promises(tmp_path: Path) -> None:
    registry = Registry(str(tmp_path))
    version = promote(registry)
    pointer = json.loads((tmp_path / "champion.json").read_bytes())
    assert pointer["version"] == version
    assert pointer["metrics"] == FACTS["metrics"]
    assert pointer["data_hash"] == "d"
    assert pointer["sha256"] == registry.load(version).sha256
    assert len(pointer["seal"]) == 64
