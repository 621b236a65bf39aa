"""Samples say what they hold and refuse what they cannot."""

import numpy as np
import pytest

from countermove.errors import DataError, NotEnoughRowsError, ParameterError
from countermove.transfer.sample import Pair, Sample

SAMPLE = Sample(np.array([-1.0, 0.0, 2.0, -3.0]), np.array([1.0, 1.0, -1.0, -1.0]))


def test_a_score_of_zero_is_accepted_and_rates_follow():
    assert SAMPLE.accepted().tolist() == [False, True, True, False]
    assert SAMPLE.error() == 0.5
    assert SAMPLE.true_positive_rate() == 0.5
    assert SAMPLE.false_positive_rate() == 0.5
    assert SAMPLE.error(threshold=3.0) == 0.5


def test_weights_count():
    weighted = Sample(SAMPLE.score, SAMPLE.label, weight=np.array([3.0, 1.0, 0.0, 0.0]))
    assert weighted.error() == 0.75
    assert weighted.share(weighted.favourable) == 1.0
    with pytest.raises(NotEnoughRowsError, match="label -1"):
        weighted.false_positive_rate()


@pytest.mark.parametrize(
    ("arguments", "message", "rows"),
    [
        (([0.0, 1.0], [0.0, 1.0]), "labels must be -1 or \\+1", (0,)),
        (([0.0, np.nan], [1.0, 1.0]), "finite", (1,)),
        (([0.0, 1.0], [1.0]), "one per score", ()),
        (([], []), "at least 1", ()),
        (([0.0, 1.0], [1.0, 1.0], [1.0, 2.0]), "expected \\(2, d\\)", ()),
        (([0.0, 1.0], [1.0, 1.0], None, [1.0, -1.0]), "not negative", (1,)),
        (([0.0, 1.0], [1.0, 1.0], None, [0.0, 0.0]), "all weights are 0", ()),
    ],
)
def test_bad_samples_name_their_rows(arguments, message, rows):
    with pytest.raises(DataError, match=message) as caught:
        Sample(*arguments)
    assert caught.value.rows == rows


def test_pairs_say_how_labels_move_and_whether_people_are_the_same():
    with pytest.raises(ParameterError, match="'kept' or 'follow'"):
        Pair(SAMPLE, SAMPLE, "moved", True)
    with pytest.raises(DataError, match="4 rows before and 2 after"):
        Pair(SAMPLE, SAMPLE.of_rows(np.array([0, 1])), "kept", True)
    assert Pair(SAMPLE, SAMPLE.of_rows(np.array([0, 1])), "kept", False).n == 2
