"""Histories of one's own become one array, or it is said which are too short."""

import numpy as np
import pytest

from countermove.data.series import stacked_histories
from countermove.errors import DataError, ParameterError

LONG, SHORT = np.arange(6.0).reshape(3, 2), np.array([[7.0, 8.0]])


def test_unequal_lengths_need_a_rule():
    with pytest.raises(DataError, match="fewer than 3 steps") as caught:
        stacked_histories([LONG, SHORT, LONG, SHORT])
    assert caught.value.rows == (1, 3)


@pytest.mark.parametrize(("rule", "first"), [("zeros", [0.0, 0.0]), ("repeat_first", [7.0, 8.0])])
def test_the_last_step_stays_the_last(rule, first):
    stacked = stacked_histories([LONG, SHORT], shorter=rule)
    assert np.array_equal(stacked[0], LONG)
    assert stacked[1].tolist() == [first, first, [7.0, 8.0]]


def test_fewer_steps_keep_the_latest():
    assert np.array_equal(stacked_histories([LONG, SHORT], steps=1)[:, 0], [[4.0, 5.0], [7.0, 8.0]])


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ([], "no histories"),
        ([LONG, np.zeros(3)], r"shape \(steps, features\)"),
        ([LONG, np.zeros((0, 2))], "at least one step"),
        ([LONG, np.zeros((2, 3))], "2 features per step"),
    ],
)
def test_what_is_no_history_is_refused(given, words):
    with pytest.raises(DataError, match=words):
        stacked_histories(given)


def test_no_steps_are_refused():
    with pytest.raises(ParameterError, match="whole number"):
        stacked_histories([LONG], steps=0)
