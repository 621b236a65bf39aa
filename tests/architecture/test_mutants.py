"""The table of mutants is about the code there is, and its tests notice what they are said to."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
TABLE = yaml.safe_load((HERE / "mutants.yml").read_text("utf-8"))


def named_in(path: Path) -> set[str]:
    return {node.name for node in ast.walk(ast.parse(path.read_text())) if hasattr(node, "name")}


@pytest.mark.parametrize("mutant", TABLE, ids=lambda mutant: mutant["file"])
def test_a_mutant_changes_one_line_that_is_there_and_names_a_test_that_is(mutant):
    text = (ROOT / "src" / "countermove" / mutant["file"]).read_text("utf-8")
    assert text.count(mutant["line"]) == 1
    assert mutant["line"] != mutant["becomes"]
    if mutant["noticed_by"]:
        path, *names = mutant["noticed_by"].split("::")
        assert {name.partition("[")[0] for name in names} <= named_in(ROOT / path)


def test_a_hundred_changes_were_tried_and_most_are_noticed():
    assert len(TABLE) >= 100
    noticed = [mutant for mutant in TABLE if mutant["noticed_by"]]
    assert 2 * len(noticed) > len(TABLE)


@pytest.mark.slow
def test_the_first_mutants_are_noticed():
    ran = subprocess.run(
        [sys.executable, str(HERE / "mutants.py"), "4"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert "4 of 4 are noticed" in ran.stdout
