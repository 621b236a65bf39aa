"""A responding population moves whom it says, and nobody else."""

import numpy as np
import pytest

from countermove.dynamics.crowd import Crowd
from countermove.dynamics.learners import LogisticLearner
from countermove.dynamics.populations import RespondingPopulation
from countermove.errors import DataError
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


def test_who_answers_is_one_truth_value_per_person():
    with pytest.raises(DataError, match=r"shape \(4,\)"):
        RespondingPopulation(Crowd(X, Y), BestResponse(), np.array([True]))
