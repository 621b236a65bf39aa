"""SERM, section 4.1: strategic training against the benchmark and the rules that need none.

Limits are those of the specification. Where everybody reaches alike "at least as good"
is tested strictly; in a box strictly against the bias search on the same rows, and with
some test rows of leave against the shifted blind rule, whose luck differs.
"""

from __future__ import annotations

import numpy as np
import pytest

from countermove import StrategicClassifier
from countermove.learning import bias_search
from countermove.learning.comparison import AS_GIVEN, Comparison, compare
from countermove.learning.evaluation import worst_accuracy
from countermove.people import ActionSet, MixtureCost, QuadraticCost
from countermove.response import BestResponse, ScalarResponse

from .parity import (
    DATASETS,
    SCALES,
    SEEDS,
    SETTINGS,
    blind_rules,
    box_binding_a_third,
    splits,
)

pytestmark = [pytest.mark.paper, pytest.mark.slow]
MEMBERS = ["best", *({"kind": "smooth", "temperature": value} for value in (0.2, 0.5, 1.0))]
ONE_ROW = 0.005
"""Half a point: one of distress's 252 test rows, and a little."""
THREE_ROWS = 0.012
"""Three of them, and a little. In the box at scale 2 the rule kept on distress is the blind
direction with the threshold of the bias search in every split; the shifted rule's threshold is
worse by ten of the 1,014 known rows and luckier by three test rows of one split
(sign test: 1/8)."""
ROUNDING = 1e-12
"""Means of the same decisions, summed in another order."""


def mean_comparison(cells: list[Comparison]) -> Comparison:
    """Return the mean of every accuracy over splits."""
    rows = np.array([list(cell.to_json().values()) for cell in cells])
    return Comparison(*rows.mean(axis=0).tolist())


def mean_cell(name, response, cost, actions=None, seed=0):
    pairs = zip(splits(name), blind_rules(name, seed), strict=True)
    return mean_comparison(
        [
            compare(split, response, cost, actions, blind, random_state=seed, **SETTINGS)
            for split, blind in pairs
        ]
    )


@pytest.mark.parametrize("seed", [0, *SEEDS])
@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("name", DATASETS)
def test_best_responders_cost_at_most_one_point(name, scale, seed):
    cell = mean_cell(name, "best", QuadraticCost(scale), seed=seed)
    assert cell.strategic >= cell.benchmark - 0.010
    assert cell.blind <= 0.67


@pytest.mark.parametrize("seed", [0, *SEEDS])
@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("name", DATASETS)
def test_smooth_responders_cost_at_most_one_and_a_half_points(name, scale, seed):
    cell = mean_cell(name, "smooth", QuadraticCost(scale), seed=seed)
    assert cell.strategic >= cell.benchmark - 0.015


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("name", DATASETS)
def test_with_half_the_features_immutable_no_simple_rule_is_better(name, scale):
    half = ActionSet(immutable=tuple(range(0, splits(name)[0].train[0].shape[1], 2)))
    cell = mean_cell(name, "best", QuadraticCost(scale), half)
    assert cell.strategic >= max(cell.shifted_blind, cell.bias_search) - ROUNDING


def blind_cells(name, build):
    """Compare on every split, cost and actions built from the blind rule."""
    cells = []
    for split, blind in zip(splits(name), blind_rules(name), strict=True):
        cost, actions = build(split, blind)
        cells.append(compare(split, "best", cost, actions, blind, **SETTINGS))
    return mean_comparison(cells)


@pytest.mark.parametrize("gamma", [0.1, 0.3])
@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("name", DATASETS)
def test_under_the_mixture_cost_no_simple_rule_is_better(name, scale, gamma):
    cell = blind_cells(
        name, lambda _, blind: (MixtureCost(np.sign(blind.coef_[0]), gamma, scale), None)
    )
    assert cell.strategic >= max(cell.shifted_blind, cell.bias_search) - ROUNDING


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("name", DATASETS)
def test_in_a_box_that_binds_no_simple_rule_is_better(name, scale):
    cost = QuadraticCost(scale)
    cell = blind_cells(
        name, lambda split, blind: (cost, box_binding_a_third(blind.score_, split, cost)[0])
    )
    assert cell.strategic >= cell.bias_search - ROUNDING
    assert cell.strategic >= cell.shifted_blind - THREE_ROWS


@pytest.mark.parametrize("name", DATASETS)
def test_the_box_takes_a_tenth_of_their_reach_from_a_third_of_the_people(name):
    for split, blind in zip(splits(name), blind_rules(name), strict=True):
        share = box_binding_a_third(blind.score_, split, QuadraticCost(1.0))[1]
        # Where many people share a corner of the box, no box binds for exactly a third.
        assert 1 / 3 <= share <= 0.6


@pytest.fixture(scope="module")
def worst_cases():
    """Return, per cell, the worst case of robust, of every single model and of the bias search."""
    return {(name, scale): worst_case(name, scale) for name in DATASETS for scale in SCALES}


def worst_case(name, scale):
    cost = QuadraticCost(scale)
    smooth = [ScalarResponse(cost, temperature=kind["temperature"]) for kind in MEMBERS[1:]]
    members = (BestResponse(cost), *smooth)

    def trained(response):
        found = []
        for split in splits(name):
            rule = StrategicClassifier(response=response, cost=cost, **(AS_GIVEN | SETTINGS))
            rule.fit(*split.train, validation=split.validation)
            found.append(rule.score_after_response(*split.test, response=MEMBERS))
        return float(np.mean(found))

    searched = [
        worst_accuracy(bias_search(blind.score_, members, *split.known), *split.test, members)
        for split, blind in zip(splits(name), blind_rules(name), strict=True)
    ]
    single = max(trained(member) for member in MEMBERS)
    return {"robust": trained(MEMBERS), "single": single, "search": float(np.mean(searched))}


def test_robust_training_is_never_half_a_point_below_the_best_single_model(worst_cases):
    gaps = {cell: found["robust"] - found["single"] for cell, found in worst_cases.items()}
    assert min(gaps.values()) >= -0.005, gaps
    assert sum(gap > 0 for gap in gaps.values()) >= 8, gaps


def test_robust_training_is_as_good_as_a_minmax_bias_search(worst_cases):
    gaps = {cell: found["robust"] - found["search"] for cell, found in worst_cases.items()}
    assert min(gaps.values()) >= -ONE_ROW, gaps
