"""The command line imports, starts fast and shows its commands."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def test_command_line_imports():
    """Kedro hides an import error in cli.py by dropping every command of ours."""
    from countermove.cli import cli

    assert "countermove" in cli.commands


def test_commands_are_registered(project):
    assert "Look after tables" in project.kedro("countermove", "--help").stdout
    listed = project.kedro("countermove", "datasets").stdout
    assert {line.split()[0] for line in listed.splitlines()} >= {"credit", "german", "tiny"}


def test_listing_pipelines_imports_nothing_heavy():
    heavy = {"torch", "cvxpy", "sklearn", "dask", "plotly", "numba"}
    check = (
        "import sys; from countermove.pipeline_registry import register_pipelines; "
        "import countermove.settings; made = register_pipelines(); "
        f"print({heavy | {'numpy', 'pandas'}} & set(sys.modules)); "
        f"[each.nodes for each in made.values()]; print({heavy} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", check], capture_output=True, text=True, check=True)
    assert done.stdout == "set()\nset()\n"


def test_package_runs_without_project_discovery(project):
    ran = subprocess.run(
        [sys.executable, "-m", "countermove", "--help"],
        cwd=project.path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0
    assert "--pipeline" in ran.stdout


def test_readme_snippets_run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    snippets = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    assert snippets
    for snippet in snippets:
        exec(compile(snippet, "README.md", "exec"), {})


def test_readme_fits_one_screen_and_shows_the_two_commands():
    text = (ROOT / "README.md").read_text()
    assert len(text.splitlines()) <= 60
    assert "make serm" in text
    assert "make test" in text


def test_continuous_integration_runs_the_readme_command():
    assert "make test" in (ROOT / ".ci" / "run").read_text()


@pytest.mark.slow
def test_a_run_has_one_thread_unless_told_otherwise():
    """Beside other load threads would wait for each other."""
    check = (
        "import countermove.settings, torch; from threadpoolctl import threadpool_info; "
        "print({each['num_threads'] for each in threadpool_info()} | {torch.get_num_threads()})"
    )
    for chosen, said in (({}, "{1}\n"), ({"OMP_NUM_THREADS": "2"}, "{2}\n")):
        plain = {key: value for key, value in os.environ.items() if key != "OMP_NUM_THREADS"}
        command = [sys.executable, "-c", check]
        done = subprocess.run(
            command, env=plain | chosen, capture_output=True, text=True, check=True
        )
        assert done.stdout == said
