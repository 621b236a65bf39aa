"""The commands of the guide to one's own table run, and print what the guide shows."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest
import yaml

from countermove.data.schema import Schema

from ..conftest import bring_examples

GUIDE = Path(__file__).parents[2] / "docs" / "guides" / "your_own_table.md"
BLOCKS = re.compile(r"```(\w+)\n(.*?)```", re.DOTALL)


def commands() -> list[tuple[str, str]]:
    """Return the commands of the guide in their order, each with the output shown under it."""
    found = []
    for language, text in BLOCKS.findall(GUIDE.read_text(encoding="utf-8")):
        if language == "console":
            for part in text.removeprefix("$ ").split("\n$ "):
                command, _, output = part.partition("\n")
                found.append((command, output.strip()))
    return found


@pytest.mark.slow
def test_the_guide_does_what_it_shows(project):
    bring_examples(project)
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = os.environ | {"PATH": path, "OMP_NUM_THREADS": "1", "DO_NOT_TRACK": "1"}
    for command, shown in commands():
        ran = subprocess.run(
            ["bash", "-c", command],
            cwd=project.path,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
        assert ran.returncode == 0, f"{command}\n{ran.stdout}{ran.stderr}"
        assert shown in ran.stdout
    drafted = (project.path / "conf/base/schemas/my.yml").read_text()
    assert "description: 'my: drafted from my.csv'" in drafted
    shown = [line for line in excerpt().splitlines() if line.startswith(("file:", "label:"))]
    assert all(line in drafted for line in shown)
    assert (project.path / "data/08_reporting/my/report.html").exists()
    scored = project.path / "data/07_model_output/my/scored/2026-11"
    assert sum(len(pd.read_parquet(part)) for part in scored.glob("part-*.parquet")) == 400


def schemas() -> list[str]:
    """Return the whole schemas of the guide; the first one is an excerpt of the draft."""
    blocks = [text for language, text in BLOCKS.findall(GUIDE.read_text()) if language == "yaml"]
    return [text for text in blocks if "label:" in text and "features:" in text]


def excerpt() -> str:
    return schemas()[0]


def test_the_guide_s_schemas_load():
    assert len(schemas()) == 3
    for text in schemas():
        Schema.from_mapping("guide", yaml.safe_load(text))


def test_the_guide_walks_draft_check_run_and_parts():
    kedro = [command.split()[1:3] for command, _ in commands() if command.startswith("kedro")]
    assert kedro == [
        ["countermove", "schema"],
        ["countermove", "check"],
        ["run", "--pipeline=serm"],
        ["run", "--pipeline=retrain"],
        ["run", "--pipeline=score"],
        ["run", "--pipeline=ingest_parts"],
    ]
