"""What no drift explains is named; what chance brings is not."""

import numpy as np
import pytest

from countermove.production.drift._comparison import anomalous_columns, missing_values
from countermove.production.drift.terms import DriftTerms

NAMES = ("a", "b")


def people(n, seed):
    return np.random.default_rng(seed).normal(size=(n, 2))


def odd(old, new):
    return list(anomalous_columns(old, new, NAMES, DriftTerms(), 5e-4))


def test_a_plain_shift_is_no_oddity():
    assert odd(people(500, 0), people(500, 1) + np.array([0.5, 0.0])) == []


@pytest.mark.parametrize(
    ("change", "kind"), [([50.0, 1.0], "range"), ([-50.0, 1.0], "range"), ([0.0, 1.0], "constant")]
)
def test_units_and_frozen_columns_are_named(change, kind):
    found = odd(np.abs(people(500, 0)), np.abs(people(500, 1)) * change)
    assert [(item.column, item.kind) for item in found] == [("a", kind)]


def test_a_rare_yes_that_does_not_occur_is_chance():
    """One in a hundred says yes: that none of fifty does is nothing to name."""
    rng = np.random.default_rng(0)
    old = np.column_stack([rng.random(500) < 0.01, rng.normal(size=500)]).astype(float)
    new = np.column_stack([np.zeros(50), rng.normal(size=50)])
    assert odd(old, new) == []


def test_missing_values_are_named_where_they_are_new():
    old, new = people(400, 0), people(400, 1)
    new[:2, 0] = np.nan
    assert list(missing_values(old, new, NAMES, 5e-4)) == []
    new[:40, 0] = np.nan
    (found,) = missing_values(old, new, NAMES, 5e-4)
    assert (found.column, found.kind, found.share) == ("a", "missing", 0.1)
    old[:40, 0] = np.nan
    assert list(missing_values(old, new, NAMES, 5e-4)) == []
