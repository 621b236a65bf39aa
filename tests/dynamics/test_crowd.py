"""Crowds hold what they say, and mixtures count exactly."""

import numpy as np
import pytest

from countermove.dynamics.crowd import Crowd, checked_shares, mixture
from countermove.errors import DataError, NotEnoughRowsError, ParameterError

X = np.arange(6.0).reshape(3, 2)
Y = np.array([0.0, 1.0, 1.0])


def test_a_mixture_counts_each_crowd_with_its_share():
    mixed = mixture([Crowd(X, Y), Crowd(X[:1] + 10.0, Y[:1])], [0.75, 0.25])
    assert mixed.n == 4
    assert np.allclose(mixed.mass, [0.25, 0.25, 0.25, 0.25])
    assert np.allclose(mixed.mean(mixed.X), 0.75 * X.mean(axis=0) + 0.25 * (X[0] + 10.0))


def test_a_crowd_of_share_zero_is_left_out_and_a_single_one_is_itself():
    crowd = Crowd(X, Y)
    assert mixture([crowd, Crowd(X + 1.0, Y)], [1.0, 0.0]) is crowd


def test_chosen_rows_keep_their_proportions():
    crowd = Crowd(X, Y, np.array([0.2, 0.3, 0.5]))
    assert np.allclose(crowd.of_rows(np.array([0, 1])).mass, [0.4, 0.6])
    with pytest.raises(NotEnoughRowsError, match="none of the people"):
        Crowd(X, Y, np.array([0.0, 0.5, 0.5])).of_rows(np.array([0]))


def test_moving_keeps_labels_and_weights():
    crowd = Crowd(X, Y, np.array([0.2, 0.3, 0.5]))
    moved = crowd.moved(X + 1.0)
    assert np.array_equal(moved.y, Y)
    assert np.array_equal(moved.mass, crowd.mass)
    assert np.array_equal(crowd.moved(y=1.0 - Y).X, X)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ((X[:0], Y[:0]), NotEnoughRowsError, "n >= 1"),
        ((X, Y[:2]), DataError, r"y has shape \(2,\); expected \(3,\)"),
        ((X * np.nan, Y), DataError, "features must be finite, not so in rows 0, 1, 2"),
        ((X, Y + np.inf), DataError, "labels must be finite"),
        ((X, Y, np.array([0.5, -0.5, 1.0])), DataError, "not negative; not so in rows 1"),
        ((X, Y, np.array([0.5, 0.5, 0.5])), DataError, "add up to 1, got 1.5"),
    ],
)
def test_rows_that_cannot_be_are_named(arguments, error, message):
    with pytest.raises(error, match=message):
        Crowd(*arguments)


@pytest.mark.parametrize(
    ("shares", "message"),
    [
        ([0.5, 0.4], "add up to 1.*sum 0.9; divide each by 0.9"),
        ([1.5, -0.5], r"lie in \[0, 1\]"),
        ([], "at least one share"),
        ([np.nan, 1.0], r"lie in \[0, 1\]"),
    ],
)
def test_shares_that_are_none_are_refused(shares, message):
    with pytest.raises(ParameterError, match=message):
        checked_shares(shares)
