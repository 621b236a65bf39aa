"""Populations respond to the model, or think k steps ahead as the paper says."""

from __future__ import annotations

import numpy as np
import pytest
from tests.response.test_possible import little_people
from tests.response.test_possible_programs import little_crowd

from countermove.dynamics import LevelKPopulation, retrain_until_stable
from countermove.dynamics.crowd import Crowd, mixture
from countermove.dynamics.learners import LogisticLearner
from countermove.dynamics.retraining.populations import RespondingPopulation, level_k_rate
from countermove.dynamics.retraining.stability import linearise
from countermove.errors import DataError, ParameterError
from countermove.people import ActionSet, QuadraticCost
from countermove.response import BestResponse

X = np.array([[-0.5, 0.0], [-0.4, 1.0], [-3.0, 0.0], [2.0, 0.0]])
Y = np.array([1.0, 0.0, 0.0, 1.0])
THETA = np.array([1.0, 0.0, 0.0])


def test_everybody_or_some_answer_and_labels_are_kept():
    response, learner = BestResponse(QuadraticCost(1.0)), LogisticLearner()
    everybody = RespondingPopulation(Crowd(X, Y), response).answer(THETA, learner)
    assert np.allclose(everybody.X[:, 0], [0.0, 0.0, -3.0, 2.0])
    assert np.array_equal(everybody.y, Y)
    who = np.array([True, False, True, True])
    some = RespondingPopulation(Crowd(X, Y), response, who).answer(THETA, learner)
    assert np.allclose(some.X[:, 0], [0.0, -0.4, -3.0, 2.0])


def test_bounds_of_each_person_follow_those_who_answer():
    upper = np.full((4, 2), np.inf)
    upper[1, 0] = 0.1
    response = BestResponse(QuadraticCost(1.0), ActionSet(upper=upper))
    who = np.array([False, True, False, False])
    found = RespondingPopulation(Crowd(X, Y), response, who).answer(THETA, LogisticLearner())
    assert np.array_equal(found.X, X)


@pytest.mark.parametrize(("level", "slope"), [(1, [1.0, 0.2]), (2, [0.3, 1.0]), (3, [1.0, 0.2])])
def test_people_who_think_ahead_stay_possible_at_every_level(level, slope):
    people, obeying, impossible = little_crowd(), little_people(), {}
    crowd = Crowd(people, (people @ [1.0, 0.6] > 0.2).astype(float))
    for actions in (obeying, obeying.obeyed_in_responses(False)):
        response = BestResponse(QuadraticCost(0.2), actions)
        chain = LevelKPopulation(crowd, response, {level: 1.0})
        moves = chain.answer(np.array([*slope, -1.0]), LogisticLearner(penalty=0.05)).X - people
        assert np.abs(moves).max() > 0.1
        held = obeying._copy(integer=(), steps={}).contains(people, moves, 1e-6)
        impossible[actions is obeying] = (~held).sum()
    assert impossible[True] == 0 < impossible[False]


def test_who_answers_is_one_truth_value_per_person():
    with pytest.raises(DataError, match=r"shape \(4,\)"):
        RespondingPopulation(Crowd(X, Y), BestResponse(), np.array([True]))


LEARNER = LogisticLearner(penalty=0.05, penalise_intercept=True)
MIXTURES = [{1: 1.0}, {2: 1.0}, {1: 0.9, 2: 0.1}, {1: 0.2, 2: 0.3, 3: 0.5}, [0.0, 0.5, 0.0, 0.5]]


def half(crowd):
    """Who responds: a part of the people, so that the model itself has to move."""
    return crowd.X[:, 1] < 0.0


def stable(population, learner=LEARNER):
    found = retrain_until_stable(learner, population, rounds=200, tolerance=1e-12, theory=False)
    assert found.stable
    return found.theta


def test_each_level_answers_the_model_the_level_below_would_bring(people, gaining):
    response, theta = gaining(2.0), LEARNER.fit(people)
    first = RespondingPopulation(people, response).answer(theta, LEARNER)
    second_model = LEARNER.fit(first)
    second = RespondingPopulation(people, response).answer(second_model, LEARNER)
    third = RespondingPopulation(people, response).answer(LEARNER.fit(second), LEARNER)
    expected = mixture([people, first, second, third], [0.1, 0.2, 0.3, 0.4])
    found = LevelKPopulation(people, response, [0.1, 0.2, 0.3, 0.4]).answer(theta, LEARNER)
    assert np.allclose(found.X, expected.X, atol=1e-9)
    assert np.allclose(found.mass, expected.mass)


def test_drawn_groups_are_disjoint_and_of_the_sizes_the_shares_say(people, gaining):
    population = LevelKPopulation.drawn(
        people, gaining(2.0), {0: 0.2, 1: 0.5, 3: 0.3}, np.random.default_rng(0)
    )
    assert np.bincount(population.levels).tolist() == [60, 150, 0, 90]
    theta = LEARNER.fit(people)
    answered = population.answer(theta, LEARNER)
    assert answered.n == people.n
    for level in (0, 1, 3):
        alone = LevelKPopulation(people, gaining(2.0), {level: 1.0}).answer(theta, LEARNER)
        rows = population.levels == level
        assert np.allclose(answered.X[rows], alone.X[rows])


@pytest.mark.parametrize("shares", MIXTURES, ids=str)
def test_corollary_1_one_stable_model_for_all_mixtures_from_level_1_on(people, gaining, shares):
    who = half(people)
    alone = stable(LevelKPopulation(people, gaining(1.0), {1: 1.0}, who=who))
    assert np.allclose(
        stable(LevelKPopulation(people, gaining(1.0), shares, who=who)), alone, atol=1e-10
    )


def test_corollary_1_fails_with_people_of_level_0(people, gaining):
    who = half(people)
    alone = stable(LevelKPopulation(people, gaining(1.0), {1: 1.0}, who=who))
    mixed = stable(LevelKPopulation(people, gaining(1.0), {0: 0.3, 1: 0.7}, who=who))
    assert np.linalg.norm(mixed - alone) > 1e-2


def test_retraining_contracts_by_the_sum_of_powers(people, gaining):
    """Section 3: locally the rate is |sum_k alpha_k rho^k|, rho that of level 1."""
    who = half(people)
    theta = stable(LevelKPopulation(people, gaining(1.0), {1: 1.0}, who=who))
    alone = linearise(LEARNER, LevelKPopulation(people, gaining(1.0), {1: 1.0}, who=who), theta)
    values = np.linalg.eigvals(alone.matrix)
    for shares in ({2: 1.0}, {1: 0.3, 2: 0.7}, {1: 0.2, 2: 0.3, 3: 0.5}):
        population = LevelKPopulation(people, gaining(1.0), shares, who=who)
        expected = max(
            abs(sum(share * value**k for k, share in shares.items())) for value in values
        )
        assert linearise(LEARNER, population, theta).radius == pytest.approx(expected, rel=1e-4)
        run = retrain_until_stable(LEARNER, population, rounds=60, tolerance=1e-13, theory=False)
        assert run.measured.rate == pytest.approx(expected, rel=2e-2)


def test_beyond_the_theory_deeper_people_rest_where_level_1_cycles(people, gaining):
    """Without contraction a two-cycle of level 1 is a stable model of level 2."""
    who = half(people)
    learner = LogisticLearner(penalty=0.002, penalise_intercept=True)
    first = LevelKPopulation(people, gaining(40.0), {1: 1.0}, who=who)
    cycling = retrain_until_stable(learner, first, rounds=300, theory=False)
    assert not cycling.stable
    assert np.allclose(cycling.thetas[-1], cycling.thetas[-3], atol=1e-6)
    second = LevelKPopulation(people, gaining(40.0), {2: 1.0}, who=who)
    resting = retrain_until_stable(learner, second, cycling.theta, rounds=300, theory=False)
    assert resting.stable
    assert np.allclose(resting.theta, cycling.theta, atol=1e-5)


def test_the_chain_of_hypothetical_models_is_fitted_once(people, gaining):
    class Counting(LogisticLearner):
        fits = 0

        def fit(self, crowd, start=None):
            type(self).fits += 1
            return super().fit(crowd, start)

    learner = Counting(penalty=0.05)
    theta = LEARNER.fit(people)
    population = LevelKPopulation(people, gaining(1.0), {1: 0.5, 4: 0.5})
    for _ in range(3):
        population.answer(theta, learner)
    assert learner.fits == 3
    population.answer(theta + 0.1, learner)
    assert learner.fits == 6


def test_any_response_serves_as_the_first_level(people):
    population = LevelKPopulation(people, BestResponse(QuadraticCost(2.0)), {1: 0.5, 2: 0.5})
    theta = LEARNER.fit(people)
    crowd = population.answer(theta, LEARNER)
    alone = RespondingPopulation(people, population.response).answer(theta, LEARNER)
    assert np.array_equal(crowd.X[: people.n], alone.X)
    assert not np.array_equal(crowd.X[people.n :], alone.X)


def test_beliefs_matter_from_level_2_on(people, gaining):
    who = half(people)
    believed = LogisticLearner(penalty=1.0, penalise_intercept=True)
    rows = np.arange(0, people.n, 3)
    right = stable(LevelKPopulation(people, gaining(1.0), {2: 1.0}, who=who))
    for settings in ({"believed_learner": believed}, {"believed_rows": rows}):
        wrong = LevelKPopulation(people, gaining(1.0), {2: 1.0}, who=who, **settings)
        assert np.linalg.norm(stable(wrong) - right) > 1e-3
        first = LevelKPopulation(people, gaining(1.0), {1: 1.0}, who=who, **settings)
        assert np.allclose(stable(first), right, atol=1e-9)
    everything = LevelKPopulation(
        people, gaining(1.0), {2: 1.0}, who=who, believed_rows=np.arange(people.n)
    )
    assert np.allclose(stable(everything), right, atol=1e-9)


def test_what_people_imagine_is_the_believed_learners_model(people, gaining):
    believed, rows = LogisticLearner(penalty=1.0), np.arange(100)
    population = LevelKPopulation(
        people, gaining(1.0), {2: 1.0}, believed_learner=believed, believed_rows=rows
    )
    theta = LEARNER.fit(people)
    _, imagined = population.foreseen(theta, LEARNER)
    first = RespondingPopulation(people, population.response).answer(theta, LEARNER)
    expected = believed.fit(first.of_rows(rows))
    assert np.allclose(imagined.weight.detach().numpy(), expected[:-1], atol=1e-8)


def test_the_rate_of_theorem_3():
    assert level_k_rate({1: 0.9, 2: 0.1}, 0.5) == pytest.approx(0.9 * 0.5 + 0.1 * 0.25)
    assert level_k_rate([0.5, 0.5], 0.5) == pytest.approx(0.25)
    assert level_k_rate({1: 0.5, 2: 0.5}, -1.0) == 0.0
    assert level_k_rate({1: 1.0}, np.inf) == np.inf
    assert level_k_rate({0: 1.0}, np.inf) == 0.0


@pytest.mark.parametrize(
    ("shares", "message"),
    [
        ({1: 0.5, 2: 0.4}, "add up to 1, got .* with sum 0.9"),
        ({-1: 0.5, 2: 0.5}, "whole numbers >= 0"),
        ({1.5: 1.0}, "whole numbers >= 0"),
        ({}, "whole numbers >= 0"),
        ([0.5, 0.6], "add up to 1"),
    ],
)
def test_mixtures_that_are_none_are_refused(people, gaining, shares, message):
    with pytest.raises(ParameterError, match=message):
        LevelKPopulation(people, gaining(1.0), shares)


def test_levels_nobody_can_have_are_refused(people, gaining):
    levels = np.ones(people.n, dtype=int)
    levels[[3, 5]] = 4
    with pytest.raises(DataError, match=r"from 0 to 2.*rows 3, 5") as caught:
        LevelKPopulation(people, gaining(1.0), {1: 0.5, 2: 0.5}, levels=levels)
    assert caught.value.rows == (3, 5)
    with pytest.raises(DataError, match=r"shape \(300,\)"):
        LevelKPopulation(people, gaining(1.0), {1: 1.0}, levels=levels[:5])
    with pytest.raises(DataError, match="who responds"):
        LevelKPopulation(people, gaining(1.0), {1: 1.0}, who=levels[:5] > 0)
    with pytest.raises(DataError, match="positions below 300"):
        LevelKPopulation(people, gaining(1.0), {2: 1.0}, believed_rows=[0, 300])
    with pytest.raises(DataError, match="at least one position"):
        LevelKPopulation(people, gaining(1.0), {2: 1.0}, believed_rows=np.zeros(300, dtype=bool))


def test_a_population_in_which_nobody_responds_is_refused(people, gaining):
    with pytest.raises(ParameterError, match="nobody responds"):
        RespondingPopulation(people, gaining(0.5), who=np.zeros(people.n, dtype=bool))
    with pytest.raises(ParameterError, match="nobody responds"):
        LevelKPopulation(people, gaining(0.5), {1: 1.0}, who=np.zeros(people.n, dtype=bool))
