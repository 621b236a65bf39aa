"""What runs leave behind is what was frozen; a change of it is wanted, or it is a fault.

The golden set was made on commit 19d3efb8 and follows the changelog's "Changed results".
"""

from __future__ import annotations

import json
import os
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import pandas as pd
import pytest
import yaml

from countermove.data.fetch import fetch
from countermove.errors import SourceUnreachableError

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
CACHE = Path(os.environ.get("COUNTERMOVE_CACHE") or ROOT / ".cache" / "wheels")

specification = spec_from_file_location("frozen", HERE / "frozen.py")
frozen = module_from_spec(specification)
specification.loader.exec_module(frozen)

PAPERS = sorted(yaml.safe_load((HERE / "papers.yml").read_text("utf-8")))
NEEDS = dict.fromkeys(("transfer_figure_3", "transfer_figure_5", "transfer_figure_6"), "fico")


def bring(name: str, project) -> None:
    """Fetch a table into a project, or skip what needs it."""
    try:
        fetch(name, project.path / "data" / "01_raw", CACHE)
    except SourceUnreachableError as error:
        pytest.skip(f"{name} is not in {CACHE} and cannot be fetched: {error}")


def compare(project, dataset: str) -> None:
    """Hold a run against the golden set of its table."""
    before = json.loads((HERE / f"{dataset}.json").read_text("utf-8"))
    lines = frozen.differences(before, frozen.reports(project.path, dataset))
    assert not lines, f"{len(lines)} differences:\n" + "\n".join(lines[:40])
    pd.testing.assert_frame_equal(
        frozen.people(project.path, dataset),
        pd.read_parquet(HERE / f"{dataset}.parquet"),
        rtol=frozen.TOLERANCE,
        check_dtype=False,
    )


def test_the_fabricated_table_gives_what_was_frozen(finished):
    compare(finished, "tiny")


@pytest.mark.slow
def test_credit_gives_what_was_frozen(on_credit):
    compare(on_credit, "credit")


@pytest.mark.slow
def test_german_gives_what_was_frozen(project):
    outcome = project.run("--pipeline=serm", "--params", "dataset=german")
    assert outcome.returncode == 0, outcome.stderr
    compare(project, "german")


@pytest.mark.slow
def test_give_me_some_credit_gives_what_was_frozen(project):
    """Its reports only: a fetched table's people are not ours to keep."""
    name = "give-me-some-credit"
    bring(name, project)
    outcome = project.run("--pipeline=serm", "--params", f"dataset={name}")
    assert outcome.returncode == 0, outcome.stderr
    before = json.loads((HERE / f"{name}.json").read_text("utf-8"))
    lines = frozen.differences(before, frozen.reports(project.path, name))
    assert not lines, f"{len(lines)} differences:\n" + "\n".join(lines[:40])


@pytest.mark.slow
@pytest.mark.parametrize("name", PAPERS)
def test_every_paper_at_a_tiny_size_gives_what_was_frozen(name, project):
    if name in NEEDS:
        bring(NEEDS[name], project)
    frozen.small_paper(project.path / "conf" / "paper" / f"{name}.yml")
    outcome = project.run("--config", f"conf/paper/{name}.yml")
    assert outcome.returncode == 0, outcome.stderr
    before = json.loads((HERE / "papers" / f"{name}.json").read_text("utf-8"))
    lines = frozen.differences(before, frozen.tables(project.path, name))
    assert not lines, f"{len(lines)} differences:\n" + "\n".join(lines[:40])


def test_every_file_of_conf_paper_is_frozen():
    assert {path.stem for path in (ROOT / "conf" / "paper").glob("*.yml")} == {
        *PAPERS,
        "recourse_table_5",  # needs the extra text: tests/experiments/test_recourse_text.py
    }


def test_a_changed_number_is_seen():
    assert frozen.differences({"a": 1.0, "b": "x"}, {"a": 1.0 + 1e-9, "b": "x"}) == []
    assert frozen.differences({"a": 1.0}, {"a": 1.001}) == ["a: 1.0 became 1.001"]
    assert frozen.differences({"a": 1.0}, {}) == ["a: 1.0 became 'absent'"]
