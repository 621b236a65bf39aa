"""Whatever decides can be saved without code, and decides as before once it is loaded."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from countermove import (
    ActionSet,
    Population,
    RecourseClassifier,
    StrategicClassifier,
    adopt,
    load,
    recommend,
    save,
)
from countermove.data.standardise import Standardiser
from countermove.errors import ModelFileError, ParameterError, StorageError
from countermove.learning import L2, FlexibleCost, SocialBurden, TreeTraining, UnknownCost
from countermove.people import MixtureCost, QuadraticCost, WeightedQuadraticCost
from countermove.people.cost_boxes import CostBox
from countermove.persistence import PublishedRule
from countermove.production.registry import Decision, Registry
from countermove.response import BestResponse
from countermove.scores import LinearScore, MLPScore, PartlyLinearScore
from countermove.scores.storage import PublishedModel, save_model

MOVES = ActionSet(only_increase=[0], immutable=[3], lower=[-1.0] * 4, upper=[2.0] * 4)
PRICES = WeightedQuadraticCost([1.0, 2.0, 0.5, 1.0])
KINDS = {
    "default": {},
    "blind": {"response": "none", "favourable": "bad"},
    "raw": {"standardise": False, "selection": "none", "loss": "hinge", "max_epochs": 2},
    "actions": {"actions": MOVES, "cost": PRICES, "regulariser": L2(0.01)},
    "original": {"actions": ActionSet(upper=[1.0] * 4, units="original"), "selection": "none"},
    "people": {"response": Population([BestResponse(PRICES, MOVES)], never=0.2)},
    "robust": {"response": {"kind": "robust", "members": ["best", BestResponse()]}},
    "network": {"score": MLPScore(4, (5,)), "response": "none", "max_epochs": 2},
    "partly": {
        "score": PartlyLinearScore(4, (0, 1), (3,)),
        "actions": ActionSet(immutable=[2, 3]),
        "max_epochs": 2,
        "selection": "none",
    },
    "trees": {"score": TreeTraining(n_trees=4), "actions": MOVES, "selection": "none"},
    "flexible": {
        "cost": FlexibleCost(CostBox.around(PRICES, "weights", 0.2)),
        "max_epochs": 2,
    },
    "unknown": {"cost": UnknownCost([QuadraticCost(1.0), QuadraticCost(2.0)]), "start": "means"},
    "burden": {"regulariser": SocialBurden(0.1), "selection": "none"},
    "mixed": {"cost": MixtureCost([1.0, 0.0, 0.0, 0.0], 0.5)},
}


@pytest.fixture(scope="module")
def people() -> tuple[pd.DataFrame, np.ndarray]:
    rng = np.random.default_rng(3)
    X = rng.normal(size=(90, 4)) * [1.0, 200.0, 0.01, 3.0] + [0.0, 5_000.0, 1.0, -4.0]
    signal = X[:, 0] + X[:, 1] / 200.0 - 25.0 + rng.normal(size=90)
    frame = pd.DataFrame(X, columns=["age", "income", "share", "region"])
    return frame, np.where(signal > 0.0, "good", "bad")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.filterwarnings("ignore:.*set how epochs are taken")
def test_a_strategic_classifier_decides_as_before(people, tmp_path, kind):
    X, y = people
    fitted = StrategicClassifier(**KINDS[kind]).fit(X, y)
    digest = save(fitted, tmp_path / "rule")
    found = load(tmp_path / "rule")
    assert isinstance(found, StrategicClassifier)
    for method in ("decision_function", "predict", "predict_proba"):
        before, after = getattr(fitted, method)(X), getattr(found, method)(X)
        np.testing.assert_array_equal(before, after)
    judged = [rule.score_after_response(X, y) for rule in (fitted, found)]
    assert judged[0] == judged[1]
    assert list(found.feature_names_in_) == list(X.columns)
    assert found.classes_.dtype == fitted.classes_.dtype
    assert found.favourable_ == fitted.favourable_
    assert found.history_ == fitted.history_
    assert (found.choice_ is None) == (fitted.choice_ is None)
    if fitted.choice_ is not None:
        assert found.choice_.to_json() == fitted.choice_.to_json()
    # Nothing was lost on the way: what is saved again is the same.
    assert save(found, tmp_path / "again") == digest


@pytest.mark.parametrize("own", [{}, {"score": LinearScore(4), "actions": MOVES}])
def test_a_recourse_classifier_gives_the_same_advice(people, tmp_path, own):
    X, y = people
    fitted = RecourseClassifier(max_epochs=1, class_weight={"good": 1.0, "bad": 2.0}, **own)
    fitted.fit(X, y, ids=np.arange(90))
    save(fitted, tmp_path / "rule")
    found = load(tmp_path / "rule")
    np.testing.assert_array_equal(found.predict_proba(X), fitted.predict_proba(X))
    np.testing.assert_array_equal(found.train_ids_, fitted.train_ids_)
    assert found.class_weight == fitted.class_weight
    before, after = (recommend(rule, X[:20], method="gradient") for rule in (fitted, found))
    np.testing.assert_array_equal(before.action, after.action)


def test_a_pipeline_is_adopted_and_then_saved(people, tmp_path):
    X, y = people
    pipeline = make_pipeline(StandardScaler(), LogisticRegression()).fit(X, y)
    with pytest.raises(ParameterError, match=r"adopt\(model, background=X\)"):
        save(pipeline, tmp_path / "rule")
    rule = adopt(pipeline, background=X)
    save(rule, tmp_path / "rule")
    np.testing.assert_array_equal(load(tmp_path / "rule").predict(X), rule.predict(X))


def chain_model(threshold: float = 0.3) -> PublishedModel:
    score = LinearScore(2)
    score.weight.data[:] = score.weight.data.new_tensor([1.0, -2.0])
    unit = Standardiser(np.array([10.0, 0.0]), np.array([5.0, 0.1]), ("income", "debt"))
    return PublishedModel(score, unit, "digest", {"probability_slope": 2.0}, threshold)


def test_a_model_of_a_run_decides_on_original_units_at_its_own_threshold(tmp_path):
    save_model(chain_model(), tmp_path / "strategic")
    rule = load(tmp_path / "strategic")
    assert isinstance(rule, PublishedRule)
    X = pd.DataFrame({"debt": [0.0, 0.0, 0.1], "income": [10.0, 5.0, 10.0]})
    odds = 2.0 * np.array([0.0, -1.0, -2.0])
    np.testing.assert_allclose(rule.predict_proba(X)[:, 1], 1.0 / (1.0 + np.exp(-odds)))
    assert rule.predict(X).tolist() == [1, -1, -1]
    np.testing.assert_array_equal(rule.decision_function(X) >= 0.0, rule.predict(X) > 0)
    save(rule, tmp_path / "copy")
    assert load(tmp_path / "copy").threshold == 0.3


def test_a_registry_gives_its_champion(tmp_path):
    with pytest.raises(ModelFileError, match="holds no model"):
        load(tmp_path)
    registry = Registry(str(tmp_path))
    version = registry.next_version()
    registry.add(version, chain_model(), {"metrics": {}, "data_hash": "x"})
    promoted = Decision(version, "retrain", "promoted", "2026-01-01", None, version, [], {})
    registry.carry_out(promoted)
    rule = load(tmp_path)
    assert version in repr(rule)
    assert rule.predict([[20.0, 0.0]]).tolist() == [1]
    assert load(tmp_path / "versions" / version).threshold == 0.3


def test_nothing_is_overwritten_and_no_half_is_left(people, tmp_path, monkeypatch):
    X, y = people
    fitted = StrategicClassifier(selection="none").fit(X, y)
    save(fitted, tmp_path / "rule")
    with pytest.raises(ModelFileError, match="never overwritten"):
        save(fitted, tmp_path / "rule")

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("countermove.data.storage.write_through", full)
    with pytest.raises(StorageError, match="No space left"):
        save(fitted, tmp_path / "other")
    assert [path.name for path in tmp_path.iterdir()] == ["rule"]


def test_an_altered_or_foreign_folder_is_refused(people, tmp_path):
    X, y = people
    save(StrategicClassifier(selection="none").fit(X, y), tmp_path / "rule")
    text = (tmp_path / "rule" / "model.json").read_text()
    weights = (tmp_path / "rule" / "score.safetensors").read_bytes()
    (tmp_path / "rule" / "model.json").write_text(text.replace('"good"', '"best"'))
    with pytest.raises(ModelFileError, match="altered"):
        load(tmp_path / "rule")
    (tmp_path / "rule" / "model.json").write_text(text)
    (tmp_path / "rule" / "score.safetensors").write_bytes(weights[:-1])
    with pytest.raises(ModelFileError, match="truncated or was altered"):
        load(tmp_path / "rule")
    (tmp_path / "rule" / "model.json").write_text("{}")
    with pytest.raises(ModelFileError):
        load(tmp_path / "rule")
    with pytest.raises(ModelFileError, match="holds no model"):
        load(tmp_path / "nowhere")


@pytest.mark.parametrize(
    "change",
    [
        {"class": "Bomb"},
        {"parameters": {"cost": {"is": "os.system"}}},
        {"parameters": {"no_such": 1}},
        {"fitted": {}},
        {"parameters": {"cost": {"is": "cost", "said": {"kind": "own"}}}},
    ],
    ids=str,
)
def test_a_description_rewritten_with_its_digest_names_no_code(people, tmp_path, change):
    from countermove.data.storage import canonical_digest

    X, y = people
    save(StrategicClassifier(selection="none").fit(X, y), tmp_path / "rule")
    place = tmp_path / "rule" / "model.json"
    said = json.loads(place.read_text())
    said.pop("sha256")
    said["about"]["estimator"] |= change
    place.write_text(json.dumps(said | {"sha256": canonical_digest(said)}))
    with pytest.raises(ModelFileError):
        load(tmp_path / "rule")


def test_what_is_code_is_refused_by_name(people, tmp_path):
    X, y = people

    class Mine:
        strength = 1.0

        def penalty(self, score, X, y, response):
            return score(X).sum() * 0.0

    fitted = StrategicClassifier(selection="none", response="none", regulariser=Mine()).fit(X, y)
    with pytest.raises(ParameterError, match="regulariser="):
        save(fitted, tmp_path / "rule")
    assert not list(Path(tmp_path).iterdir())


def test_only_what_is_fitted_is_saved(tmp_path):
    from sklearn.exceptions import NotFittedError

    with pytest.raises(NotFittedError):
        save(StrategicClassifier(), tmp_path / "rule")
