"""A promise to every group at one threshold."""

from __future__ import annotations

import numpy as np
import pytest

from countermove.errors import CalibrationError, DataError, ParameterError
from countermove.recourse import calibrate_pare, calibrate_pare_by_group, smallest_group_size


@pytest.mark.parametrize(("n_groups", "least"), [(1, 59), (2, 72), (4, 86)])
def test_rows_each_group_needs(n_groups, least):
    assert smallest_group_size(n_groups, 0.05, 0.05) == least


def test_no_group_needs_no_promise():
    with pytest.raises(ParameterError, match="at least one group, got 0"):
        smallest_group_size(0, 0.05, 0.05)


def test_common_threshold_is_the_least_of_the_groups_own(score, half, crowd):
    X, _ = crowd
    tribe = np.where(X[:, 1] > 0.2, "elk", "hare")
    found = calibrate_pare_by_group(score, X, tribe, actions=half, column="tribe")
    for name, bound in found.bounds.items():
        alone = calibrate_pare(score, X[tribe == name], failure_probability=0.025, actions=half)
        assert bound == alone.bound
    assert found.bound == found.threshold == min(found.bounds.values())
    claim = found.certificates["hare"]
    assert claim.name == "recourse_miss_rate[tribe=hare]"
    assert claim.n == np.sum(tribe == "hare")
    assert claim.level == 0.95
    assert "in all 2 groups at once" in claim.words
    assert "tribe = hare" in claim.words


def test_small_groups_are_named_with_the_rows_they_need(score, half, crowd):
    X, _ = crowd
    tribe = np.where(np.arange(300) < 71, "elk", "hare")
    with pytest.raises(CalibrationError, match=r"at least 72 .* but 'elk' has 71:"):
        calibrate_pare_by_group(score, X, tribe, actions=half)
    tribe[71] = "elk"
    assert set(calibrate_pare_by_group(score, X, tribe, actions=half).bounds) == {"elk", "hare"}


@pytest.mark.parametrize("nobody", [None, float("nan")])
def test_people_without_a_group_are_named(score, half, crowd, nobody):
    tribe = np.full(300, "elk", dtype=object)
    tribe[7] = nobody
    with pytest.raises(DataError, match="rows 7 have no group"):
        calibrate_pare_by_group(score, crowd[0], tribe, actions=half)
    with pytest.raises(DataError, match="one group each"):
        calibrate_pare_by_group(score, crowd[0], tribe[:-1], actions=half)
