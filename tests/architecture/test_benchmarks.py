"""Benchmarks can be run, and the page shows what they measured and nothing else."""

from __future__ import annotations

import importlib
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "benchmarks.md"
MODULES = {path.stem for path in (ROOT / "benchmarks").glob("*.py")} - {"__init__", "__main__"}
ELSEWHERE = {"counterfactual_side", "treecf_side"}
"""Run by the Python of another library."""


@pytest.mark.parametrize("name", sorted(MODULES - ELSEWHERE))
def test_a_benchmark_is_there_to_be_run(name, monkeypatch):
    monkeypatch.syspath_prepend(ROOT)
    module = importlib.import_module(f"benchmarks.{name}")
    if name.startswith(("bench_", "table_")):
        assert callable(module.main)


def test_every_measurement_that_is_kept_is_of_a_benchmark_and_on_the_page():
    said = PAGE.read_text("utf-8")
    kept = {path.stem for path in (ROOT / "docs" / "benchmarks").glob("*.txt")}
    assert kept <= MODULES
    assert kept <= set(re.findall(r"`python -m benchmarks\.(\w+)", said))


def test_the_page_names_benchmarks_that_exist():
    named = set(re.findall(r"benchmarks[./](\w+)(?:\.txt)?[` )]", PAGE.read_text("utf-8")))
    assert named <= MODULES
