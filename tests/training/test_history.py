"""The history says which epoch was kept and why."""

from __future__ import annotations

import json

from countermove.training import EpochRecord, History


def record(epoch: int, accuracy: float, loss: float) -> EpochRecord:
    return EpochRecord(epoch, 0.5, loss, accuracy, 0.01)


HISTORY = History((record(0, 0.5, 1.0), record(1, 0.8, 0.4), record(2, 0.7, 0.3)), 1, True)


def test_accuracy_decides_before_the_loss():
    assert record(1, 0.8, 0.9).better_than(record(0, 0.7, 0.1))
    assert not record(1, 0.7, 0.1).better_than(record(0, 0.8, 0.9))


def test_a_tie_in_accuracy_goes_to_the_lower_loss():
    assert record(1, 0.8, 0.3).better_than(record(0, 0.8, 0.4))
    assert not record(1, 0.8, 0.4).better_than(record(0, 0.8, 0.4))


def test_the_loss_alone_may_decide():
    assert record(1, 0.7, 0.1).better_than(record(0, 0.8, 0.9), by="loss")
    assert not record(1, 0.8, 0.9).better_than(record(0, 0.7, 0.1), by="loss")


def test_a_merit_decides_before_accuracy_where_there_is_one():
    good = EpochRecord(1, 0.5, 0.9, 0.6, 0.01, validation_merit=0.7)
    other = EpochRecord(2, 0.5, 0.1, 0.9, 0.01, validation_merit=0.65)
    assert good.better_than(other)
    assert record(1, 0.8, 0.9).merit == 0.8


def test_the_table_marks_the_epoch_kept():
    frame = HISTORY.to_frame()
    assert frame["kept"].tolist() == [False, True, False]
    assert frame["validation_accuracy"].tolist() == [0.5, 0.8, 0.7]


def test_json_and_back_changes_nothing():
    assert History.from_json(json.loads(json.dumps(HISTORY.to_json()))) == HISTORY
