"""The trained direction replaces the blind one where, and only where, it earned it."""

from __future__ import annotations

import threading

import numba
import numpy as np
import pytest
import torch

from countermove import StrategicClassifier
from countermove.errors import DataError, UnknownNameError
from countermove.learning import SocialBurden, selection
from countermove.learning.baselines import bias_search
from countermove.learning.comparison import Split, compare
from countermove.learning.evaluation import accuracy_after
from countermove.learning.selection import (
    Held,
    RuleRecord,
    all_reach_alike,
    cluster_folds,
    enough_to_compare,
    expected_gain,
    record_of,
    row_hashes,
)
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
    blind = StrategicClassifier(response="none", standardise=False).fit(*crowd)
    strategic = StrategicClassifier(response=response, standardise=False).fit(*crowd)
    assert strategic.choice_.kept == "logistic"
    assert strategic.choice_.alike
    assert "cannot matter" in strategic.choice_.sentence()
    np.testing.assert_allclose(strategic.coef_, blind.coef_, rtol=1e-6)
    people = {"best": BestResponse(), "smooth": ScalarResponse()}[response]
    searched = bias_search(blind.score_, people, *crowd)
    np.testing.assert_allclose(strategic.intercept_[0], searched.bias.item(), rtol=1e-6)


def test_a_trained_rule_is_kept_where_a_gain_is_to_be_expected(crowd):
    X, y = np.minimum(crowd[0], 1.0), crowd[1]
    choice = StrategicClassifier(actions=UNDER_A_CEILING, standardise=False).fit(X, y).choice_
    record, simple = choice.rules["trained"], choice.scores[choice.best_simple]
    expected = expected_gain(record, choice.scores["trained"], simple, X, y)
    assert choice.trained == (expected > 0.0)
    half = 196 * record.standard_error
    shown = f"{100 * record.gain - half:+.2f} to {100 * record.gain + half:+.2f})"
    assert choice.sentence().endswith(f"points (95 % interval {shown}.")


def line(bias: float) -> LinearScore:
    score = LinearScore(1)
    with torch.no_grad():
        score.weight.fill_(1.0)
        score.bias.fill_(bias)
    return score


@pytest.mark.parametrize(
    ("gain", "error", "staying", "kept"),
    [
        (0.004, 0.005, 0.0, True),  # a small gain, well measured
        (0.004, 0.010, 0.0, False),  # the same, badly measured
        (0.000, 0.001, 0.0, False),
        (0.002, 0.001, -0.3, False),  # bent to one response, wrong where people stand
        (0.050, 0.005, -0.3, True),
    ],
)
def test_the_expected_gain_is_shrunk_and_counts_on_people_who_stay(gain, error, staying, kept):
    X = np.linspace(-1.0, 1.0, 2_001)[:, None]
    y = np.where(X[:, 0] >= 0.0, 1.0, -1.0)
    simple = line(0.0)
    trained = line(2.0 * staying)  # wrong for that share of people
    record = RuleRecord(0.8, gain, error, deployable=True)
    assert (expected_gain(record, trained, simple, X, y) > 0.0) == kept


def test_an_annealed_rule_that_does_not_lead_where_it_was_fitted_is_not_cross_validated(crowd):
    X, y = np.minimum(crowd[0], 1.0), crowd[1]
    settings = {"actions": UNDER_A_CEILING, "standardise": False}
    choice = StrategicClassifier(**settings).fit(X, y).choice_
    assert "annealed" in choice.scores
    assert "annealed" not in choice.rules
    annealed, logistic = (
        accuracy_after(choice.scores[name], X, y, BestResponse(None, UNDER_A_CEILING)).accuracy
        for name in ("annealed", "logistic")
    )
    assert annealed <= logistic


def test_a_direction_that_no_intercept_can_replace_is_kept():
    people = CeilingPopulation()
    X, y = people.sample(1500, seed=5)
    rule = StrategicClassifier(
        cost=QuadraticCost(0.5),
        actions=ActionSet(max_value=people.ceiling),
        standardise=False,
    ).fit(X, y)
    choice = rule.choice_
    assert choice.trained
    assert choice.rules[choice.kept].gain > 0.1
    assert choice.rules[choice.kept].value > people.best_accuracy - 0.05
    assert f"The {choice.kept} rule is published: its gain" in choice.sentence()


def test_every_simple_rule_is_recorded_and_rules_without_recourse_are_not_deployed():
    """What can be moved is noise, so the rule on what cannot is best."""
    rng = np.random.default_rng(0)
    y = np.where(rng.random(600) < 0.5, 1.0, -1.0)
    X = np.column_stack([y + 0.5 * rng.normal(size=600), 0.3 * y + rng.normal(size=600)])
    people = {
        "cost": QuadraticCost(0.05),
        "actions": ActionSet(immutable=[0], max_value=[9.0, 1.0]),
        "standardise": False,
    }
    careful = StrategicClassifier(**people).fit(X, y).choice_
    names = {"majority", "logistic", "class_means", "immutables", "reach_penalty"}
    assert names <= set(careful.rules)
    assert careful.kept not in ("majority", "immutables")
    assert not careful.rules["immutables"].deployable
    free = StrategicClassifier(allow_no_recourse=True, **people).fit(X, y).choice_
    assert free.rules["immutables"].deployable
    assert free.rules["immutables"].gain >= careful.rules["immutables"].gain - 1e-12


def test_a_regulariser_is_judged_by_the_stated_objective(crowd):
    """Burden so heavy that approving everybody is best: no accuracy makes up for it."""
    X = np.minimum(crowd[0], 1.0)
    heavy = SocialBurden(strength=20.0)
    rule = StrategicClassifier(actions=UNDER_A_CEILING, regulariser=heavy, standardise=False)
    rule.fit(X, crowd[1])
    record = rule.choice_.rules[rule.choice_.kept]
    assert record.value > rule.choice_.rules["logistic"].value - 1e-12
    assert "annealed" not in rule.choice_.rules


def test_folds_that_are_judged_at_once_are_judged_alike(crowd, monkeypatch):
    """Every thread has responses of its own: what they keep of people is not shared."""
    people = {"actions": UNDER_A_CEILING, "standardise": False}
    X, y = np.minimum(np.tile(crowd[0], (6, 1)), 1.0), np.tile(crowd[1], 6)
    said, threads = [], []

    def noted(recipe, *rows):
        threads.append(threading.current_thread().name)
        return fitted(recipe, *rows)

    fitted = selection._fitted
    monkeypatch.setattr(selection, "_fitted", noted)
    for cores in (1, 2):
        monkeypatch.setattr(numba.config, "NUMBA_NUM_THREADS", cores)
        said.append(StrategicClassifier(**people).fit(X, y).choice_.to_json())
    assert said[0] == said[1]
    assert len({name for name in threads if name != threading.main_thread().name}) == 2


def test_folds_depend_on_the_rows_and_not_on_their_order(crowd):
    X, y = crowd
    order = np.random.default_rng(0).permutation(len(y))
    hashes = row_hashes(X, y, "repeat 0")
    np.testing.assert_array_equal(row_hashes(X[order], y[order], "repeat 0"), hashes[order])
    assert len(np.unique(hashes)) == len(np.unique(np.column_stack([X, y]), axis=0))
    assert not np.array_equal(hashes, row_hashes(X, y, "repeat 1"))


@pytest.mark.parametrize(
    "settings",
    [
        {"response": "none"},
        {"response": "published"},
        {"calibrate": False},
        {"selection": "none"},
    ],
)
def test_nothing_is_chosen_where_there_is_nothing_to_choose(crowd, settings):
    assert StrategicClassifier(**settings).fit(*crowd).choice_ is None


def test_an_unknown_selection_is_refused(crowd):
    with pytest.raises(UnknownNameError, match="guarded"):
        StrategicClassifier(selection="gaurded").fit(*crowd)


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


def test_folds_keep_households_whole():
    rng = np.random.default_rng(0)
    house = rng.permutation(np.repeat(np.arange(60), 5))
    y = np.where(rng.random(300) < 0.5, 1.0, -1.0)
    total = np.zeros((2, 300))
    for repeat, _, kept, out in cluster_folds(y, 2, house):
        total[repeat] += out
        assert not set(house[kept != 0.0]) & set(house[out != 0.0])
        assert 95 <= np.count_nonzero(out) <= 105
    np.testing.assert_array_equal(total, np.stack([y, y]))


def test_households_of_one_class_each_are_too_few_for_three_folds():
    y = np.repeat([1.0, 1.0, 1.0, -1.0, -1.0], 20)
    house = np.repeat(np.arange(5), 20)
    assert enough_to_compare(y)
    assert not enough_to_compare(y, house)
    assert enough_to_compare(np.tile([1.0, -1.0], 50), house)


def test_the_error_of_a_gain_counts_households():
    """Households that are right or wrong as one: five times the variance of their rows."""
    rng, house = np.random.default_rng(0), np.repeat(np.arange(200), 5)
    gains, by_rows, by_house = [], [], []
    for _ in range(200):
        ours = (rng.random((1, 200)) < 0.7).astype(float)[:, house]
        other = np.zeros((1, 1000))
        size = np.ones((1, 1000))
        gains.append(ours.mean())
        by_rows.append(record_of(Held(ours, 3, size), Held(other, 3, size), True).standard_error)
        held = Held(ours, 3, size, house)
        by_house.append(record_of(held, Held(other, 3, size), True).standard_error)
    ratio = np.mean(by_house) / np.mean(by_rows)
    assert ratio == pytest.approx(np.sqrt(5.0), rel=0.02)


def test_a_fit_with_clusters_learns_nothing_from_the_household_it_judges(crowd, monkeypatch):
    X, y = crowd
    house, seen = np.arange(len(y)) // 5, []

    def watched(labels, repeats, clusters):
        seen.append(np.array(clusters))
        return cluster_folds(labels, repeats, clusters)

    monkeypatch.setattr(selection, "cluster_folds", watched)
    actions = ActionSet(max_value=[1.0, np.inf, np.inf, np.inf])
    StrategicClassifier(actions=actions).fit(X, y, clusters=house)
    assert len(seen) == 2  # is it enough to compare, and the comparison
    np.testing.assert_array_equal(np.sort(seen[1]), house)
    with pytest.raises(DataError, match="one per row"):
        StrategicClassifier(actions=actions).fit(X, y, clusters=house[1:])
