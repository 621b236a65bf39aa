"""The audit raises false alarms as seldom as it says, and sees collectives."""

import numpy as np
import pytest
from sklearn.datasets import load_iris

from countermove.dynamics.collective.recourse import together
from countermove.dynamics.collective.recourse_problem import Reach, recourse_problem
from countermove.dynamics.collective.shift_audit import audit_shift
from countermove.errors import DataError, NotEnoughRowsError, ParameterError

X, Y = load_iris(return_X_y=True)
MEANS = np.array([X[c == Y].mean(axis=0) for c in range(3)])


def moved(budget):
    problem = recourse_problem(X, Y, 0.25 * MEANS[1] + 0.75 * MEANS[2], 1)
    return X + together(problem, Reach(budget)).moves


def test_matched_people_who_moved_together_are_seen():
    noise = np.random.default_rng(0).normal(scale=0.3, size=X.shape)
    found = audit_shift(X, moved(0.2) + noise, Y)
    assert found.alarm
    assert audit_shift(X, moved(0.4) + noise, Y).p_value == pytest.approx(1e-3)
    assert np.allclose(found.shift[1], (moved(0.2) + noise - X)[Y == 1].mean(axis=0))
    assert found.mean_move > 0.2
    assert found.certificate.applicable
    assert "people moved together" in found.certificate.words
    assert not audit_shift(X, X + noise, Y).alarm


def test_two_samples_are_compared_within_classes():
    rng = np.random.default_rng(1)
    one, other = np.sort(rng.permutation(150)[:75]), None
    other = np.setdiff1d(np.arange(150), one)
    still = audit_shift(X[one], X[other], Y[one], Y[other])
    assert not still.alarm
    assert still.mean_move is None
    assert audit_shift(X[one], moved(0.8)[other], Y[one], Y[other]).alarm


def test_a_move_of_everybody_passes_the_test_that_allows_drift():
    """The opposite of the query's own move is a drift: only one null hypothesis sees it."""
    noise = np.random.default_rng(2).normal(scale=0.1, size=X.shape)
    shifted = X + 0.5 + noise
    assert audit_shift(X, shifted, Y).alarm
    assert not audit_shift(X, shifted, Y, null="same_for_all").alarm
    assert audit_shift(X, moved(0.5) + noise, Y, null="same_for_all").alarm


def test_nonsense_is_refused():
    with pytest.raises(ParameterError, match="can never raise an alarm"):
        audit_shift(X, X, Y, false_alarm=0.01, rearrangements=50)
    with pytest.raises(ParameterError, match="probability"):
        audit_shift(X, X, Y, false_alarm=0.0)
    with pytest.raises(DataError, match="matched rows"):
        audit_shift(X, X[:10], Y)
    with pytest.raises(DataError, match="one set of features"):
        audit_shift(X, X[:, :2], Y)
    with pytest.raises(DataError, match="labels are one per row"):
        audit_shift(X, X, Y[:5])
    with pytest.raises(ParameterError, match="at least two"):
        audit_shift(X, X, null="same_for_all")
    with pytest.raises(ParameterError, match="matched rows"):
        audit_shift(X, X, Y, Y, null="same_for_all")
    with pytest.raises(NotEnoughRowsError, match="one of the two samples only"):
        audit_shift(X, X, Y, Y + 1)
