"""Experiments that would select nobody say so and stop."""

from __future__ import annotations

import numpy as np
import pytest

from countermove.dynamics.crowd import Crowd
from countermove.errors import ParameterError
from countermove.experiments.lookahead.people import LookaheadTable
from countermove.experiments.lookahead.retraining import RatesExperiment


def table(*columns: np.ndarray) -> LookaheadTable:
    X = np.column_stack(columns)
    y = (X[:, 0] + np.random.default_rng(1).logistic(size=len(X)) > 0.0).astype(float)
    names = tuple(f"column_{j}" for j in range(X.shape[1]))
    return LookaheadTable(Crowd(X, y), names, names[:1])


@pytest.fixture
def columns():
    rng = np.random.default_rng(0)
    return rng.normal(size=200), (rng.random(200) < 0.3).astype(float), rng.normal(size=200)


def test_a_binary_column_cut_at_its_median_is_passed_over(columns):
    """theorem_3 on german once picked a binary column, and nobody moved."""
    found = RatesExperiment()._population(table(*columns), 1.0, {1: 1.0})
    assert np.array_equal(found.who, columns[2] < np.median(columns[2]))


def test_a_named_column_that_divides_nobody_off_stops(columns):
    with pytest.raises(ParameterError, match="divides nobody off"):
        RatesExperiment(respond_below="column_1")._population(table(*columns), 1.0, {1: 1.0})
    with pytest.raises(ParameterError, match="every column"):
        RatesExperiment()._population(table(columns[1], columns[1]), 1.0, {1: 1.0})
