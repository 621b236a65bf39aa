"""Trees of an index decide as the trees do, and are affine in what people can change."""

from __future__ import annotations

import copy

import numpy as np
import pytest
import torch
from sklearn.ensemble import HistGradientBoostingClassifier

from countermove.data.standardise import Standardiser
from countermove.errors import ParameterError
from countermove.people import ActionSet
from countermove.response import BestResponse
from countermove.scores.adopted import boosted_ensemble
from countermove.scores.base import values
from countermove.scores.index_trees import IndexTreesScore
from countermove.scores.storage import PublishedModel, load_model, save_model, score_digest

MOVABLE, WEIGHT, LEVEL = [0, 2], np.array([1.0, -0.5]), 0.2
NAMES = ("a", "b", "c", "d")


@pytest.fixture(scope="module")
def trees() -> tuple[IndexTreesScore, HistGradientBoostingClassifier, np.ndarray]:
    """Return the score, the model whose trees it reads, and people."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 4))
    index = X[:, MOVABLE] @ WEIGHT
    y = index + 2.0 * (X[:, 1] > 0.0) + rng.logistic(size=600) > 1.0
    rows = np.column_stack([index, X[:, [1, 3]]])
    model = HistGradientBoostingClassifier(
        max_iter=20, max_leaf_nodes=6, monotonic_cst=[1, 0, 0], early_stopping=False
    ).fit(rows, y)
    seen = (float(index.min()), float(index.max()))
    score = IndexTreesScore(4, MOVABLE, WEIGHT, boosted_ensemble([model], 3), LEVEL, seen)
    return score, model, X


def test_everybody_is_decided_as_the_trees_decide(trees):
    score, model, X = trees
    rows = np.column_stack([X[:, MOVABLE] @ WEIGHT, X[:, [1, 3]]])
    said = model.decision_function(rows)
    np.testing.assert_allclose(score.log_odds(rows[:, 0], rows[:, 1:]), said, atol=1e-12)
    assert ((values(score, X) >= 0.0) == (said >= LEVEL)).all()
    assert 50 < (said >= LEVEL).sum() < 550


def test_the_threshold_is_the_least_index_that_is_approved(trees):
    score, _, X = trees
    fixed = X[:, [1, 3]]
    threshold = score.thresholds(fixed)
    assert np.isfinite(threshold).all()
    assert (score.log_odds(threshold, fixed) >= LEVEL - 1e-12).all()
    assert (score.log_odds(threshold - 1e-9, fixed) < LEVEL).all()


def test_beyond_the_indices_seen_the_log_odds_go_on_by_one_per_unit(trees):
    score, _, X = trees
    fixed, far = X[:5, [1, 3]], np.full(5, 40.0)
    np.testing.assert_allclose(score.log_odds(far + 1.0, fixed) - score.log_odds(far, fixed), 1.0)
    hopeless = copy.deepcopy(score)
    hopeless.level = 1e3
    assert np.isfinite(hopeless.thresholds(fixed)).all()


def test_people_cross_where_the_trees_approve_them(trees):
    score, model, X = trees
    people = BestResponse(actions=ActionSet(immutable=(1, 3)))
    moved = people.respond(score, X)
    rows = np.column_stack([moved.x_new[:, MOVABLE] @ WEIGHT, moved.x_new[:, [1, 3]]])
    favoured = people.decisions_after(score, X)
    assert ((model.decision_function(rows) >= LEVEL) == favoured).all()
    # The highest index that two buy, sqrt(2) |w| further, decides.
    best = X[:, MOVABLE] @ WEIGHT + np.sqrt(2.0) * np.linalg.norm(WEIGHT)
    assert (favoured == (best > score.thresholds(X[:, [1, 3]]))).all()
    assert moved.moved.sum() > 20


def test_it_is_stored_and_hashed_with_its_trees(trees, tmp_path):
    score, _, X = trees
    unit = Standardiser.fit(X, NAMES)
    save_model(PublishedModel(score, unit, "x"), tmp_path / "model")
    read = load_model(tmp_path / "model").score
    np.testing.assert_array_equal(values(read, X), values(score, X))
    assert score_digest(read) == score_digest(score)
    other = score.at_threshold(0.6)
    assert score_digest(other) != score_digest(score)
    np.testing.assert_allclose(values(score, X) - values(other, X), np.log(1.5))


def test_the_slope_is_that_of_the_index(trees):
    score, _, X = trees
    assert score.slope().tolist() == [1.0, 0.0, -0.5, 0.0]
    np.testing.assert_array_equal(score.gradient(torch.from_numpy(X[:3])), [score.slope()] * 3)


def test_trees_of_another_number_of_columns_are_refused(trees):
    score, _, _ = trees
    with pytest.raises(ParameterError, match="4 columns"):
        IndexTreesScore(5, MOVABLE, WEIGHT, score.ensemble, LEVEL, score.seen)
