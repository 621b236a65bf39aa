from __future__ import annotations

from pathlib import Path

import pytest
from tests.production.registry.test_registry import model

from countermove.errors import ModelFileError
from countermove.production.gates import GateResult
from countermove.production.history import DecisionHistory
from countermove.production.registry import Registry
from countermove.production.retraining.promotion import (
    challengers_evaluated,
    difference,
    promote_or_keep,
    record_blocked,
    roll_back,
)

YES = GateResult("good", True, 1.0, 0.5, "well done")
NO = GateResult("bad", False, 0.1, 0.5, "not enough")
NONE = GateResult("unasked", None, None, None, "nothing to compare with")


def facts(accuracy: float = 0.8) -> dict[str, object]:
    return {
        "metrics": {"accuracy": {"none": accuracy, "best": accuracy + 0.05}},
        "certificate": {"value": 0.05, "level": 0.95},
        "data_hash": "d",
    }


@pytest.fixture
def registry(tmp_path: Path) -> Registry:
    return Registry(str(tmp_path / "models"))


@pytest.fixture
def history(tmp_path: Path) -> DecisionHistory:
    return DecisionHistory(f"sqlite:///{tmp_path}/history.db", "tiny")


def run(registry, history, weight, gates, batches=None, accuracy=0.8):
    rule = model(weight)
    rule.about["rows"] = {"train": int(100 * weight)}
    told = {"batches": batches or {}}
    return promote_or_keep(registry, history, rule, facts(accuracy), gates, told)


def champion(registry: Registry) -> str:
    found = registry.champion()
    assert found is not None
    return found.version


def test_a_cold_start_is_promoted_by_its_gates(registry, history):
    first = run(registry, history, 1.0, [YES, NONE])
    assert (first.kind, first.outcome) == ("cold_start", "promoted")
    assert champion(registry) == first.version
    assert history.decisions()["outcome"].tolist() == ["promoted"]


def test_a_refused_challenger_is_kept_with_all_its_reasons(registry, history):
    first = run(registry, history, 1.0, [YES])
    second = run(registry, history, 2.0, [YES, NO, NO])
    assert second.outcome == "kept"
    assert second.reasons == ["bad: not enough", "bad: not enough"]
    assert champion(registry) == first.version
    assert registry.load(second.version).model.score.slope()[0] == 2.0
    assert registry.decision(second.version) == second


def test_a_refused_cold_start_leaves_no_champion(registry, history):
    run(registry, history, 1.0, [NO])
    assert registry.champion() is None


@pytest.mark.parametrize("before", [[], [1.0]], ids=["cold start", "retraining"])
def test_the_pointer_is_the_last_file_a_promotion_writes(registry, history, monkeypatch, before):
    """Nothing that could fail is left to do once another version decides."""
    for weight in before:
        run(registry, history, weight, [YES])
    written, write = [], registry.store.write

    def noted(name, content):
        written.append(name)
        write(name, content)

    monkeypatch.setattr(registry.store, "write", noted)
    version = run(registry, history, 2.0, [YES]).version
    assert written[-2:] == [f"decisions/{version}.json", "champion.json"]
    assert all(name.startswith(f"versions/{version}/") for name in written[:-2])


def test_rows_that_block_are_recorded(registry, history):
    run(registry, history, 1.0, [YES])
    record_blocked(registry, history, "the batch is empty")
    last = registry.decisions()[-1]
    assert (last.outcome, last.reasons) == ("blocked", ["the batch is empty"])
    assert last.champion_after == last.champion_before == champion(registry)


def test_rollback_goes_to_the_champion_before(registry, history):
    first, second = run(registry, history, 1.0, [YES]), run(registry, history, 2.0, [YES])
    decision = roll_back(registry, history)
    assert champion(registry) == first.version
    assert decision.champion_before == second.version
    assert history.decisions()["outcome"].tolist() == ["promoted", "promoted", "rolled_back"]


def test_rollback_goes_to_a_version_by_name(registry, history):
    versions = [run(registry, history, weight, [YES]).version for weight in (1.0, 2.0, 3.0)]
    roll_back(registry, history, versions[0])
    assert champion(registry) == versions[0]
    roll_back(registry, history)
    assert champion(registry) == versions[2]


def test_rollback_says_when_there_is_nowhere_to_go(registry, history):
    only = run(registry, history, 1.0, [YES])
    with pytest.raises(ModelFileError, match=f"name a version: {only.version}"):
        roll_back(registry, history)
    with pytest.raises(ModelFileError, match="champion already"):
        roll_back(registry, history, only.version)
    with pytest.raises(ModelFileError, match="holds no version 'x'"):
        roll_back(registry, history, "x")


def test_rollback_by_name_mends_an_unreadable_pointer(registry, history, tmp_path):
    first = run(registry, history, 1.0, [YES])
    (tmp_path / "models" / "champion.json").write_text("{}")
    with pytest.raises(ModelFileError, match="not a sealed record"):
        roll_back(registry, history)
    roll_back(registry, history, first.version)
    assert champion(registry) == first.version


def test_challengers_count_whether_promoted_or_kept(registry, history):
    run(registry, history, 1.0, [YES])
    run(registry, history, 2.0, [NO])
    assert challengers_evaluated(registry.decisions()) == 2


def test_two_versions_are_compared_in_plain_words(registry, history):
    first = run(registry, history, 1.0, [YES])
    second = run(registry, history, 2.0, [YES], accuracy=0.78)
    old, new = registry.load(first.version), registry.load(second.version)
    said = " ".join(difference(old, new))
    assert "turns by 18.4 degrees; most in a +0.45 to +0.71; b +0.89 to +0.71" in said
    assert "best 0.830, 2.0 points down; none 0.780, 2.0 points down" in said
    assert "Trained on 200 rows; before: trained on 100 rows." in said
    assert "the same: at most 0.05 without recourse" in said
    assert difference(old, old) == [f"{old.version} and {old.version} hold the same rule."]
