"""A trade-off curve: trained from one strength to the next, judged and chosen by validation."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from countermove.errors import ParameterError
from countermove.learning import SocialBurden, StrategicClassifier, trade_off
from countermove.learning.comparison import Split
from countermove.learning.tradeoff import choice_of, mark, pareto_front
from countermove.people import QuadraticCost

SETTINGS = {"selection": "none"}


@pytest.fixture(scope="module")
def split(crowd) -> Split:
    X, y = crowd
    return Split((X[:120], y[:120]), (X[120:180], y[120:180]), (X[180:], y[180:]))


@pytest.fixture(scope="module")
def curve(split) -> pd.DataFrame:
    cost = QuadraticCost(1.0)
    return trade_off(split, SocialBurden(), [2.0, 0.05], "best", cost, **SETTINGS)


def test_the_unregularised_rule_comes_first_and_is_what_a_classifier_fits(curve, split):
    assert curve["strength"].tolist() == [0.0, 0.05, 2.0]
    plain = StrategicClassifier(cost=QuadraticCost(1.0), **SETTINGS)
    plain.fit(*split.train, validation=split.validation)
    assert curve["test_accuracy"][0] == plain.score_after_response(*split.test)


def test_more_strength_less_burden(curve):
    for part in ("validation", "test"):
        burden = curve[f"{part}_burden"].to_numpy()
        assert burden[-1] < 0.5 * burden[0]


def test_every_strength_has_a_rule_of_its_own(split):
    """If validation rows chose the epoch, the neighbour's rule would often be kept again."""
    published = {"temperature": 1.0, "loss": "hinge", "max_epochs": 5}
    strengths = np.geomspace(0.1, 0.2, 5)
    curve = trade_off(
        split, SocialBurden(), strengths, "published", QuadraticCost(1.0), epochs=2, **published
    )
    assert curve["validation_burden"].is_unique


def test_smoothed_and_hard_measures_of_both_parts_are_there(curve):
    for part in ("validation", "test"):
        for name in ("accuracy", "smoothed", "utility", "burden", "burden_unscaled"):
            assert curve[f"{part}_{name}"].notna().all()
    # Nothing about the burden is smoothed; rational people are the stated ones here.
    np.testing.assert_allclose(curve["test_smoothed"], curve["test_burden"], atol=1e-6)
    assert (curve["test_rational_accuracy"] == curve["test_accuracy"]).all()


def test_the_front_by_hand():
    accuracy = np.array([0.70, 0.70, 0.69, 0.68, 0.60])
    good = np.array([1.0, 2.0, 3.0, 2.5, 4.0])
    assert pareto_front(accuracy, good).tolist() == [False, True, True, False, True]


def toy(accuracy, burden) -> pd.DataFrame:
    columns = {"strength": range(len(accuracy))}
    for part, shift in (("validation", 0.0), ("test", 0.1)):
        columns |= {f"{part}_accuracy": np.array(accuracy) - shift, f"{part}_burden": burden}
    return pd.DataFrame(columns)


def test_validation_chooses_within_the_tolerance_and_test_reports():
    marked = mark(toy([0.700, 0.695, 0.690, 0.650], [2.0, 1.5, 1.0, 0.1]), "burden", 0.01)
    assert marked["chosen"].tolist() == [False, False, True, False]
    found = choice_of(marked, "burden")
    assert found["strength"] == 2
    assert found["relative_change"] == pytest.approx(-0.5)
    assert found["test_accuracy_plain"] == pytest.approx(0.6)
    assert found["test_accuracy"] == pytest.approx(0.59)


def test_without_a_better_point_the_unregularised_rule_is_chosen():
    marked = mark(toy([0.70, 0.60, 0.65], [2.0, 1.0, 1.5]), "burden", 0.01)
    assert marked["chosen"].tolist() == [True, False, False]


def test_of_equal_points_the_weakest_strength_is_chosen():
    marked = mark(toy([0.70, 0.70, 0.70], [2.0, 1.0, 1.0]), "burden", 0.01)
    assert marked["chosen"].tolist() == [False, True, False]


def test_a_point_where_nobody_counts_is_never_chosen():
    marked = mark(toy([0.70, 0.70], [2.0, np.nan]), "burden", 0.01)
    assert marked["chosen"].tolist() == [True, False]


def test_no_strength_is_refused(split):
    with pytest.raises(ParameterError, match="at least one strength"):
        trade_off(split, SocialBurden(), [], "best")
