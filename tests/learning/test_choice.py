"""The trained direction replaces the blind one where, and only where, it earned it."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from countermove import StrategicClassifier
from countermove.learning import L2
from countermove.learning._choice import all_reach_alike, choose
from countermove.learning._populations import population
from countermove.learning.baselines import bias_search
from countermove.learning.comparison import Split, compare
from countermove.people import ActionSet, MixtureCost, QuadraticCost
from countermove.response import BestResponse, NoResponse, ScalarResponse
from countermove.scores import LinearScore

from .ceiling_population import CeilingPopulation

UNDER_A_CEILING = ActionSet(max_value=[1.0, np.inf, np.inf, np.inf])


@pytest.fixture
def score() -> LinearScore:
    score = LinearScore(4)
    with torch.no_grad():
        score.weight.copy_(torch.tensor([1.0, 0.4, -0.3, 0.2]))
    return score


@pytest.mark.parametrize(
    ("member", "alike"),
    [
        (NoResponse(), True),
        (BestResponse(QuadraticCost(0.3)), True),
        (BestResponse(actions=ActionSet(immutable=(0, 2), only_increase=(1,))), True),
        (BestResponse(MixtureCost([1.0, 0.5, -0.5, 0.1], 0.2)), True),
        (ScalarResponse(temperature=0.2), True),
        (BestResponse(actions=UNDER_A_CEILING), False),
        (ScalarResponse(actions=UNDER_A_CEILING, temperature=0.2), False),
    ],
)
def test_only_bounds_on_values_make_people_reach_differently(score, crowd, member, alike):
    X = np.minimum(crowd[0], 1.0)
    assert all_reach_alike(score, (member,), X) is alike


def test_several_kinds_of_people_never_count_as_alike(score, crowd):
    assert not all_reach_alike(score, (NoResponse(), BestResponse()), crowd[0])


@pytest.mark.parametrize("response", ["best", "smooth"])
def test_where_all_reach_alike_the_rule_is_the_blind_one_with_its_best_intercept(crowd, response):
    settings = {"loss": "logistic", "max_epochs": 6, "validation_fraction": 0.0}
    blind = StrategicClassifier(response="none", **settings).fit(*crowd)
    strategic = StrategicClassifier(response=response, **settings).fit(*crowd)
    assert strategic.choice_.kept == "blind"
    assert strategic.choice_.alike
    np.testing.assert_array_equal(strategic.coef_, blind.coef_)
    members = population(response).members
    searched = bias_search(blind.score_, members, *crowd)
    np.testing.assert_allclose(strategic.intercept_[0], searched.bias.item(), rtol=1e-9)


def test_a_difference_within_its_noise_is_no_proof(score, crowd):
    X = np.minimum(crowd[0], 1.0)
    people = population("best", actions=UNDER_A_CEILING)
    turned = LinearScore(4)
    with torch.no_grad():
        turned.weight.copy_(score.weight + 0.01)
    rules = [bias_search(rule, people.members, X, crowd[1]) for rule in (turned, score)]
    choice = choose(*rules, people, X, crowd[1])
    assert abs(choice.trained - choice.blind) <= 2 * choice.standard_error
    assert choice.kept == "blind"


def test_a_rule_far_better_is_kept_and_never_one_that_is_worse(score, crowd):
    X = np.minimum(crowd[0], 1.0)
    people = population("best", actions=UNDER_A_CEILING)
    poor = LinearScore(4)
    with torch.no_grad():
        poor.weight.copy_(torch.tensor([0.0, 0.0, 0.0, 1.0]))
    good, poor = (bias_search(r, people.members, X, crowd[1]) for r in (score, poor))
    assert choose(good, poor, people, X, crowd[1]).kept == "trained"
    assert choose(poor, good, people, X, crowd[1]).kept == "blind"


@pytest.mark.parametrize(
    "settings",
    [
        {"response": "none"},
        {"response": "published"},
        {"start": "means"},
        {"calibrate": False},
        {"regulariser": L2(0.1)},
    ],
)
def test_nothing_is_chosen_where_there_is_no_simple_rule_or_another_aim(crowd, settings):
    assert StrategicClassifier(max_epochs=2, **settings).fit(*crowd).choice_ is None


def test_under_the_ceiling_merit_alone_distinguishes_the_classes():
    population = CeilingPopulation(separation=0.3, spread=0.5)
    X, y = population.sample(200_000, seed=0)
    hits = (X[:, 0] - X[:, 1] >= 0) == (y > 0)
    assert hits.mean() == pytest.approx(population.best_accuracy, abs=0.005)
    assert np.all(population.ceiling >= X)
    for rank in (0.0, -population.drop):
        assert (y[X[:, 1] == rank] > 0).mean() == pytest.approx(0.5, abs=0.01)


@pytest.mark.slow
def test_under_a_ceiling_training_finds_what_no_intercept_can():
    people = CeilingPopulation()
    X, y = people.sample(4000, seed=5)
    parts = (slice(0, 1200), slice(1200, 1600), slice(1600, None))
    split = Split(*((X[part], y[part]) for part in parts))
    actions = ActionSet(max_value=people.ceiling)
    found = compare(split, "best", QuadraticCost(0.5), actions, loss="logistic")
    assert found.strategic >= people.best_accuracy - 0.03
    assert max(found.shifted_blind, found.bias_search) <= people.best_accuracy - 0.15
