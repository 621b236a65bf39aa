"""The three doors of the start page: each is three commands, and they work in their order."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import pytest
from tests.architecture.test_code_blocks import blocks, commands, execute, typed
from tests.conftest import bring_examples

from countermove.production.endings import ENDINGS

DOCS = Path(__file__).parents[2] / "docs"
START = DOCS / "index.md"
DOORS = [commands(text) for language, text in blocks(START) if language == "console"]
MODEL = """
import lightgbm, pandas
seen = pandas.read_parquet("data/03_primary/my/train.parquet")
fitted = lightgbm.LGBMClassifier(n_estimators=10, verbose=-1)
fitted.fit(seen[["income", "savings"]], seen.label).booster_.save_model("models/my.txt")
"""


def test_there_are_three_doors_of_three_commands():
    assert [len(door) for door in DOORS] == [3, 3, 3]
    said = START.read_text(encoding="utf-8")
    assert re.findall(r"^## (I .*)", said, re.MULTILINE) == [
        "I have a table",
        "I have a model",
        "I run it every night",
    ]


def test_the_caption_says_what_the_picture_shows():
    measured = json.loads((DOCS / "pictures" / "move_map.json").read_text("utf-8"))
    blind, strategic = measured["blind"], measured["strategic"]
    shown = [blind["nobody_moves"], blind["after_response"], strategic["after_response"]]
    said = re.findall(r"([\d.]+) %", START.read_text("utf-8").split("The same people, twice.")[1])
    assert said[:3] == [f"{100 * share:.1f}" for share in shown]


def test_the_page_of_exit_codes_has_them_all():
    text = (DOCS / "installation.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| ([\d to]+) \|", text, re.MULTILINE)
    told = set()
    for row in rows:
        first, *last = (int(each) for each in row.split(" to "))
        told |= set(range(first, (last or [first])[0] + 1))
    assert {ending.code for ending in ENDINGS} <= told


@pytest.mark.slow
def test_the_doors_open_one_after_the_other(project):
    """The table is the example; its schema is confirmed as the guide does."""
    table, model, night = DOORS
    bring_examples(project)
    typed(table[0], project.path)
    guide = (DOCS / "guides" / "your_own_table.md").read_text(encoding="utf-8")
    for confirmed in re.findall(r"^\$ (sed .*)", guide, re.MULTILINE):
        typed(confirmed, project.path)
    for command in table[1:]:
        typed(command, project.path)
    assert (project.path / "data/08_reporting/my/report.html").exists()
    (project.path / "models").mkdir()
    execute([sys.executable, "-c", MODEL], project.path)
    for command in model:
        typed(command, project.path)
    assert (project.path / "data/08_reporting/my/audit/report.html").exists()
    typed(f"{night[0]} || test $? -eq 3", project.path)  # 3: the model is kept as the champion
    said = [typed(command, project.path) for command in night[1:]]
    assert "champion: " in said[-1]
    assert list((project.path / "data/07_model_output/my/scored/2026-11").glob("part-*.parquet"))
