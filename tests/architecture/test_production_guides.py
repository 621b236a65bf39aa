"""The commands of the guides to production run, and print what the guides show."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from tests.production.tiny_champion import PEOPLE, keep, promote

from countermove.params import RetrainParameters

ROOT = Path(__file__).parents[2]
GUIDES = ROOT / "docs" / "guides"
BLOCKS = re.compile(r"```(\w+)\n(.*?)```", re.DOTALL)
TIMES = re.compile(r"\d{8}T\d{6}Z|\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\+00:00")


def blocks(guide: str, language: str) -> list[str]:
    found = BLOCKS.findall((GUIDES / guide).read_text(encoding="utf-8"))
    return [text for kind, text in found if kind == language]


def walk(guide: str, folder: Path) -> None:
    """Run every command of a guide; its output holds what is shown, whatever the time."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = os.environ | {"PATH": path, "OMP_NUM_THREADS": "1", "DO_NOT_TRACK": "1"}
    for text in blocks(guide, "console"):
        for part in text.removeprefix("$ ").split("\n$ "):
            command, _, shown = part.partition("\n")
            ran = subprocess.run(
                ["bash", "-c", command],
                cwd=folder,
                env=environment,
                capture_output=True,
                text=True,
                check=False,
            )
            assert ran.returncode == 0, f"{command}\n{ran.stdout}{ran.stderr}"
            assert TIMES.sub("", shown.strip()) in TIMES.sub("", ran.stdout), command


@pytest.mark.slow
def test_the_guide_to_production(project):
    walk("production.md", project.path)


@pytest.mark.slow
def test_the_guide_to_scoring(project):
    models = project.path / "data" / "06_models" / "tiny"
    promote(models)
    keep(models, shift=1.0)
    applicants = project.path / "data" / "01_raw" / "applicants" / "tiny"
    applicants.mkdir(parents=True)
    for day in ("2026-11-16", "2026-11-17", "2026-11-18"):
        PEOPLE.to_csv(applicants / f"{day}.csv", index=False)
    walk("scoring.md", project.path)


@pytest.mark.slow
def test_the_guide_to_a_gate_of_one_s_own(project):
    [code] = blocks("add_a_gate.md", "python")
    (project.path / "src" / "house_rules.py").write_text(code)
    [said] = blocks("add_a_gate.md", "yaml")
    (project.path / "conf/base/parameters_retrain.yml").write_text(said)
    walk("add_a_gate.md", project.path)


def test_the_table_of_gates_has_every_parameter_and_its_default():
    text = (GUIDES / "production.md").read_text()
    gates = RetrainParameters().gates
    for name in type(gates).model_fields:
        assert f"| `{name}` |" in text, name
        if name == "custom":
            continue
        on = getattr(gates, name)
        for key, value in on.model_dump().items():
            shown = "null" if value is None else value
            row = next(line for line in text.splitlines() if line.startswith(f"| `{name}` |"))
            assert f"`{key}` {shown}" in row, (name, key)
    for name in RetrainParameters.model_fields:
        assert f"retrain.{name}" in text


def test_the_parameters_the_guides_set_are_accepted():
    for text in [*blocks("scheduling.md", "yaml"), *blocks("add_a_gate.md", "yaml")]:
        said = yaml.safe_load(text)
        if "retrain" in said:
            RetrainParameters.model_validate(said["retrain"])


def test_the_guide_to_scheduling_shows_the_recipes_as_they_are():
    text = (GUIDES / "scheduling.md").read_text()
    crontab = (ROOT / "deploy" / "crontab").read_text().splitlines()
    for line in crontab:
        assert line.startswith("#") or line in text
    script = (ROOT / "deploy" / "retrain.sh").read_text()
    for variable in set(re.findall(r"COUNTERMOVE_[A-Z]+", script)):
        assert f"`{variable}`" in text
