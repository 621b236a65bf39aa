"""The published fits stop early, as published; the exact one does not."""

from __future__ import annotations

import numpy as np
import pytest

from countermove.dynamics.crowd import Crowd, mixture
from countermove.dynamics.learners import LogisticLearner
from countermove.errors import DataError, NotConvergedError, ParameterError
from countermove.experiments.lookahead.published import PublishedDescent, PublishedQuasiNewton

from ..dynamics.conftest import town


@pytest.fixture
def people() -> Crowd:
    return town()


def test_the_descent_stops_where_the_reported_loss_hardly_falls(people):
    """The published loop, written as plainly as it can be."""
    penalty, X, y = 1.0 / people.n, np.column_stack([people.X, np.ones(people.n)]), people.y

    def reported(theta):
        s = X @ theta
        return np.mean(np.log1p(np.exp(s)) - y * s) + penalty / 2 * np.linalg.norm(theta[:-1])

    theta, before, fallen = np.zeros(4), reported(np.zeros(4)), 1.0
    step = 1.0 / (np.mean((X**2).sum(axis=1)) / 4.0 + penalty)
    while fallen > 1e-7:
        slope = X.T @ (1.0 / (1.0 + np.exp(-X @ theta)) - y) / people.n
        theta = theta - step * (slope + penalty * np.append(theta[:-1], 0.0))
        fallen, before = before - reported(theta), reported(theta)
    found = PublishedDescent(penalty).fit(people)
    assert np.allclose(found, theta, atol=1e-12)
    exact = LogisticLearner(penalty).fit(people)
    assert 1e-4 < np.linalg.norm(found - exact) < 0.1
    closer = PublishedDescent(penalty, loss_decrease=1e-12).fit(people)
    assert np.linalg.norm(closer - exact) < 0.1 * np.linalg.norm(found - exact)


def test_the_quasi_newton_fit_is_the_exact_one_once_its_tolerance_is(people):
    exact = LogisticLearner(0.01, penalise_intercept=True).fit(people)
    rough = PublishedQuasiNewton(0.01).fit(people)
    fine = PublishedQuasiNewton(0.01, fit_tolerance=1e-10).fit(people)
    assert np.linalg.norm(fine - exact) < 1e-6
    assert np.linalg.norm(rough - exact) > np.linalg.norm(fine - exact)


def test_weights_count_in_the_quasi_newton_fit(people):
    mixed = mixture([people, people.moved(people.X + 0.5)], [0.8, 0.2])
    exact = LogisticLearner(0.01, penalise_intercept=True).fit(mixed)
    assert np.allclose(PublishedQuasiNewton(0.01, fit_tolerance=1e-10).fit(mixed), exact, atol=1e-6)


def test_what_the_published_fits_cannot_do(people):
    with pytest.raises(ParameterError, match="on the bias too"):
        PublishedQuasiNewton(0.1, penalise_intercept=False)
    with pytest.raises(ParameterError, match="penalty > 0"):
        PublishedQuasiNewton()
    with pytest.raises(DataError, match="labels 0 and 1"):
        PublishedQuasiNewton(0.1).fit(people.moved(y=0.5 + 0.0 * people.y))
    with pytest.raises(NotConvergedError, match="after 3 steps"):
        PublishedDescent(0.1, max_descents=3).fit(people)
