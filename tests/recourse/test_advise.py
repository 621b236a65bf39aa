"""Advice over parts is the advice that people get in one piece."""

import pytest

from countermove.data.partitions import Partitions
from countermove.data.rows import rows_of
from countermove.execution import Execution, map_parts
from countermove.recourse.advise import AdviceTask, decide_and_advise
from countermove.recourse.calibrate import calibrate_parts

from .test_calibrate import NARROW, RESPONSE, SCHEMA, model_of, rows


def parts_of(table, folder, size):
    folder.mkdir()
    files = []
    for number, first in enumerate(range(0, len(table), size)):
        files.append(folder / f"{number}.parquet")
        table.iloc[first : first + size].to_parquet(files[-1], index=False)
    return Partitions(tuple(files), rows_per_part=size)


@pytest.mark.parametrize("engine", ["serial", "threads"])
def test_parts_are_told_what_the_whole_is_told(engine, tmp_path):
    people, model = rows(210, 4), model_of()
    whole = decide_and_advise(model, rows_of(people, SCHEMA), SCHEMA, RESPONSE, NARROW, 0).table
    task = AdviceTask(model, SCHEMA, RESPONSE, NARROW, 0)
    with Execution(engine).open() as mapper:
        run = map_parts(task, parts_of(people, tmp_path / "in", 50), tmp_path / "out", mapper)
    found = run.result().read()
    assert found["row_id"].tolist() == whole["row_id"].tolist()
    assert found["status"].tolist() == whole["status"].tolist()
    assert found["words"].tolist() == whole["words"].tolist()


def test_other_terms_are_other_work():
    tasks = [AdviceTask(model_of(slope), SCHEMA, RESPONSE, NARROW, 0) for slope in (1.0, 2.0)]
    again = AdviceTask(model_of(1.0), SCHEMA, RESPONSE, NARROW, 0)
    other = AdviceTask(model_of(1.0), SCHEMA, RESPONSE, NARROW, 1)
    assert tasks[0].fingerprint() == again.fingerprint()
    assert len({task.fingerprint() for task in (*tasks, other)}) == 3


def test_a_threshold_is_chosen_on_rows_drawn_from_their_parts(tmp_path):
    splits = {
        "calibration": parts_of(rows(400, 0), tmp_path / "calibration", 150),
        "validation": parts_of(rows(400, 1, "s"), tmp_path / "validation", 150),
    }
    rule = calibrate_parts(model_of(), splits, SCHEMA, RESPONSE, NARROW, seed=0)
    assert rule.facts["certificate"]["n"] == 400
    assert rule.model.threshold == rule.facts["threshold"]
