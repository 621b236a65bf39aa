"""Around a run: lines of a log bear the time, and a terminal sees which node is at work."""

from __future__ import annotations

import io
import json
import logging
import os
import re
from contextlib import contextmanager
from pathlib import Path

import pytest
from kedro.io import DataCatalog, MemoryDataset
from kedro.pipeline import Node, Pipeline
from kedro_datasets.text import TextDataset

from countermove import execution, hooks
from countermove.hooks import DURATIONS, ProgressHook, SummaryHook


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("stream", "line"),
    [
        (io.StringIO(), r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d[+-]\d{4} INFO hello\n"),
        (Terminal(), "INFO h"),
    ],
    ids=["file", "terminal"],
)
def test_lines_bear_the_time_but_on_a_terminal(stream, line):
    handler = logging.StreamHandler(stream)
    handler.setFormatter(logging.Formatter("%(levelname)s %(message)s"))
    for _ in range(2):  # A second context of the same process changes nothing.
        hooks._stamp(handler)
    handler.emit(logging.LogRecord("x", logging.INFO, "", 0, "hello", None, None))
    assert re.match(line, stream.getvalue())


def one() -> int:
    return 1


def two(a: int) -> int:
    return a + 1


@pytest.fixture
def shown(monkeypatch):
    """What bars were asked for, without drawing them."""
    asked: list[tuple[str, float | None]] = []

    @contextmanager
    def bar(what, before, total):
        asked.append((what, total))
        yield

    monkeypatch.setattr(execution, "step_bar", bar)
    return asked


def walk(hook: ProgressHook, folder: os.PathLike[str], runner: str = "SequentialRunner") -> None:
    pipeline = Pipeline([Node(one, None, "a", name="one"), Node(two, "a", "b", name="two")])
    catalog = DataCatalog({"parameters": MemoryDataset({"dataset": "tiny"})})
    hook.before_pipeline_run({"project_path": folder, "runner": runner}, pipeline, catalog)
    for node in pipeline.nodes:
        hook.before_node_run(node)
        hook.after_node_run(node)
    hook.after_pipeline_run()


def test_the_time_left_is_that_of_the_last_run_on_the_same_table(tmp_path, shown):
    walk(ProgressHook(), tmp_path)
    assert shown == [("one, 1 of 2", None), ("two, 2 of 2", None)]
    known = json.loads((tmp_path / DURATIONS).read_text())
    assert set(known) == {"tiny"}
    (tmp_path / DURATIONS).write_text(json.dumps({"tiny": {"one": 3.0, "two": 4.0}}))
    shown.clear()
    walk(ProgressHook(), tmp_path)
    assert shown[0] == ("one, 1 of 2", 7.0)
    assert shown[1][1] == pytest.approx(4.0, abs=0.5)


def test_nodes_that_run_at_once_have_no_bar_and_a_broken_file_does_no_harm(tmp_path, shown):
    (tmp_path / DURATIONS).parent.mkdir()
    (tmp_path / DURATIONS).write_text("not json")
    walk(ProgressHook(), tmp_path, "ThreadRunner")
    assert shown == []


def test_a_run_without_a_headline_says_where_its_page_is(tmp_path, monkeypatch, caplog):
    monkeypatch.chdir(tmp_path)
    pipeline = Pipeline([Node(one, None, "cells"), Node(two, "cells", "page")])
    catalog = DataCatalog(
        {
            "cells": TextDataset(filepath=str(tmp_path / "cells.csv")),
            "page": TextDataset(filepath=str(tmp_path / "report" / "page.html")),
        }
    )
    with caplog.at_level(logging.INFO):
        SummaryHook().after_pipeline_run(pipeline, catalog)
    assert caplog.messages == [f"page: {Path('report', 'page.html')}"]
