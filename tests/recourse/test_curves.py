"""One row per model of the grid."""

from __future__ import annotations

import numpy as np
import pytest

from countermove.errors import ParameterError
from countermove.recourse.classifier import RecourseClassifier
from countermove.recourse.curves import curves_frame, recourse_curves

from .applicants import second_feature_only, some_applicants

SMALL = {"hidden": (8,), "dropout": 0.0, "learning_rate": 0.02, "batch_size": 64, "max_epochs": 8}


@pytest.fixture(scope="module")
def applicants():
    return some_applicants()


@pytest.fixture(scope="module")
def one_feature():
    return second_feature_only()


def test_more_room_and_more_weight_give_more_recourse(applicants, one_feature):
    X, y = applicants
    points = recourse_curves(
        RecourseClassifier(one_feature, selection="loss", **SMALL),
        (X[:400], y[:400]),
        (X[400:], y[400:]),
        weights=(0.0, 1.5),
        largest_actions=(0.2, 0.75),
    )
    frame = curves_frame(points)
    assert frame[["largest_action", "recourse_weight"]].to_numpy().tolist() == [
        [0.2, 0.0],
        [0.2, 1.5],
        [0.75, 0.0],
        [0.75, 1.5],
    ]
    share = frame["recourse_neg_value"].to_numpy()
    assert share[0] < share[2]
    assert share[2] < share[3]
    assert frame["performance_accuracy"].iloc[0] > 0.75
    assert (frame["recourse_all_low"] <= frame["recourse_all_value"]).all()


def test_any_search_may_be_used(applicants, one_feature):
    X, y = applicants

    def nothing(rule, people, actions):
        return np.full(people.shape, np.nan)

    classifier = RecourseClassifier(one_feature, **SMALL | {"max_epochs": 1})
    (point,) = recourse_curves(classifier, (X, y), (X, y), weights=(0.0,), find=nothing)
    assert point.recourse_neg.count == 0
    assert point.recourse_all.value == pytest.approx(point.performance.positive_rate)


def test_an_empty_grid_is_refused(applicants):
    with pytest.raises(ParameterError, match="at least one"):
        recourse_curves(RecourseClassifier(), applicants, applicants, weights=())
