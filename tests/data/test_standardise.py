"""Standardisation: unit spread on train, exact inverses, exact storage."""

from __future__ import annotations

import json
from dataclasses import FrozenInstanceError

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from countermove.data.standardise import Standardiser
from countermove.errors import DataError, ParameterError

NAMES = ("a", "b", "c")
finite = st.floats(-1e6, 1e6, allow_nan=False)
scales = st.floats(1e-3, 1e6)


def fitted(divide_by_root_d: bool = False) -> tuple[np.ndarray, Standardiser]:
    X = np.random.default_rng(0).normal([5, -2, 100], [1, 10, 0.1], size=(200, 3))
    return X, Standardiser.fit(X, NAMES, divide_by_root_d=divide_by_root_d)


def test_training_rows_have_mean_zero_and_spread_one() -> None:
    X, standardiser = fitted()
    Z = standardiser.transform(X)
    assert np.allclose(Z.mean(axis=0), 0, atol=1e-12)
    assert np.allclose(Z.std(axis=0, ddof=0), 1)


def test_division_by_root_d_gives_rows_of_mean_squared_norm_one() -> None:
    X, standardiser = fitted(divide_by_root_d=True)
    assert (standardiser.transform(X) ** 2).sum(axis=1).mean() == pytest.approx(1)
    assert np.allclose(standardiser.scale, np.sqrt(3) * X.std(axis=0))


@settings(max_examples=100, deadline=None)
@given(
    arrays(np.float64, (4, 3), elements=finite),
    arrays(np.float64, 3, elements=finite),
    arrays(np.float64, 3, elements=scales),
)
def test_features_and_actions_come_back(X: np.ndarray, mean: np.ndarray, scale: np.ndarray) -> None:
    standardiser = Standardiser(mean, scale, NAMES)
    size = np.abs(X).max() + np.abs(mean).max() + 1
    assert np.allclose(
        standardiser.inverse(standardiser.transform(X)), X, rtol=0, atol=1e-14 * size
    )
    action = standardiser.action_to_standard(X)
    assert np.allclose(standardiser.action_to_original(action), X, rtol=1e-15, atol=1e-300)


def test_a_move_and_its_action_agree() -> None:
    X, standardiser = fitted()
    move = np.array([1.0, -2.0, 0.5])
    difference = standardiser.transform(X + move) - standardiser.transform(X)
    assert np.allclose(difference, standardiser.action_to_standard(move))


@settings(max_examples=100, deadline=None)
@given(arrays(np.float64, 3, elements=finite), arrays(np.float64, 3, elements=scales))
def test_json_keeps_every_bit(mean: np.ndarray, scale: np.ndarray) -> None:
    standardiser = Standardiser(mean, scale, NAMES)
    again = Standardiser.from_json(json.loads(json.dumps(standardiser.to_json())))
    assert again == standardiser
    assert hash(again) == hash(standardiser)
    assert again.mean.tobytes() == standardiser.mean.tobytes()
    assert again.scale.tobytes() == standardiser.scale.tobytes()


def test_one_person_may_be_transformed_alone() -> None:
    X, standardiser = fitted()
    assert np.array_equal(standardiser.transform(X[0]), standardiser.transform(X)[0])


def test_a_constant_column_is_named() -> None:
    X = np.column_stack([np.arange(5), np.full(5, 0.1), np.arange(5)])
    with pytest.raises(DataError, match=r"'b' do\(es\) not vary over the 5 training rows"):
        Standardiser.fit(X, NAMES)


def test_values_that_are_not_finite_are_refused_with_their_rows() -> None:
    X = np.arange(12.0).reshape(4, 3)
    X[2, 1] = np.nan
    X[3, 0] = np.inf
    with pytest.raises(DataError, match="rows 2, 3") as caught:
        Standardiser.fit(X, NAMES)
    assert caught.value.rows == (2, 3)


def test_values_too_large_to_square_are_refused() -> None:
    X = np.array([[1e200, 1, 2], [-1e200, 2, 1]])
    with pytest.raises(DataError, match="'a' is too large"):
        Standardiser.fit(X, NAMES)


@pytest.mark.parametrize("kept", [False, True])
def test_values_too_large_to_subtract_are_refused(kept: bool) -> None:
    with pytest.raises(DataError, match="'a' is too large"):
        Standardiser.fit([[1.7e308, 1.0], [-1.7e308, 2.0]], ["a", "b"], keep_constant=kept)


@pytest.mark.parametrize("shape", [(5, 2), (5,), (0, 3)])
def test_arrays_of_another_shape_are_refused(shape: tuple[int, ...]) -> None:
    with pytest.raises(DataError, match="shape"):
        Standardiser.fit(np.ones(shape), NAMES)
    if shape != (0, 3):
        with pytest.raises(DataError, match="expected 3 columns"):
            fitted()[1].transform(np.ones(shape))


def test_it_cannot_be_changed() -> None:
    _, standardiser = fitted()
    with pytest.raises(FrozenInstanceError):
        standardiser.mean = np.zeros(3)  # type: ignore[misc]
    with pytest.raises(ValueError, match="read-only"):
        standardiser.scale[0] = 2


def test_the_arrays_given_stay_the_callers() -> None:
    mean, scale = np.zeros(3), np.ones(3)
    standardiser = Standardiser(mean, scale, NAMES)
    mean[0] = 9
    assert standardiser.mean[0] == 0


@pytest.mark.parametrize(
    ("mean", "scale"),
    [
        ([0, 0], [1, 1, 1]),
        ([0, 0, 0], [1, 0, 1]),
        ([0, 0, 0], [1, -1, 1]),
        ([0, 0, np.nan], [1] * 3),
    ],
)
def test_scales_that_make_no_sense_are_refused(mean: list[float], scale: list[float]) -> None:
    with pytest.raises(ParameterError):
        Standardiser(np.array(mean, dtype=float), np.array(scale, dtype=float), NAMES)
