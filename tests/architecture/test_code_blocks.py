"""Every block of code in the README and the tutorials does what it says: it is executed."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from contextlib import suppress
from pathlib import Path

import pytest
import yaml

from countermove.data.fetch import PUBLISHED

ROOT = Path(__file__).parents[2]
README = ROOT / "README.md"
COST = ROOT / "docs" / "guides" / "own_cost.md"
TUTORIALS = sorted((ROOT / "docs" / "tutorials").glob("*.md"))
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```", re.DOTALL | re.MULTILINE)
MAKEFILE = (ROOT / "Makefile").read_text(encoding="utf-8")
RUN = {"python", "console"}
SHOWN = {"text", "yaml"}
"""Shown, not run: output, and configuration that a test of its own reads."""


def blocks(page: Path) -> list[tuple[str, str]]:
    return BLOCK.findall(page.read_text(encoding="utf-8"))


def commands(text: str) -> list[str]:
    """Return what a console block types, without its comments."""
    typed = [line.removeprefix("$ ") for line in text.splitlines() if line.startswith("$ ")]
    return [re.sub(r"\s+#.*", "", line) for line in typed]


def spelled_out(command: str) -> str:
    """Return the recipe of a make target; any other command as it is."""
    if not command.startswith("make "):
        return command
    recipe = re.search(rf"^{command.split()[1]}:.*\n\t(.+)", MAKEFILE, re.MULTILINE)
    assert recipe, f"{command}: no such target"
    return recipe[1].replace("$(BIN)/", "")


def environment(**more: str) -> dict[str, str]:
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    return os.environ | {"PATH": path, "OMP_NUM_THREADS": "1", "DO_NOT_TRACK": "1"} | more


def execute(command: list[str], folder: Path, **more: str) -> str:
    ran = subprocess.run(
        command, cwd=folder, env=environment(**more), capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, f"{command}\n{ran.stdout}\n{ran.stderr}"
    return ran.stdout + ran.stderr


def typed(command: str, folder: Path, **more: str) -> str:
    return execute(["bash", "-c", spelled_out(command)], folder, **more)


@pytest.mark.parametrize("page", [README, COST, *TUTORIALS], ids=lambda page: page.name)
def test_every_block_is_run_or_only_shown(page):
    found = blocks(page)
    assert found
    assert {language for language, _ in found} <= RUN | SHOWN
    for language, text in found:
        if language == "python":
            compile(text, page.name, "exec")
        if language == "console":
            assert commands(text)


@pytest.mark.slow
@pytest.mark.parametrize("page", TUTORIALS, ids=lambda page: page.name)
def test_a_tutorial_runs_from_top_to_bottom(page, project):
    """Console blocks in their order; the Python after them, as one session would have it."""
    session: list[str] = []
    for language, text in blocks(page):
        if language == "console":
            for command in commands(text):
                typed(command, project.path)
        if language == "python":
            session.append(text)
    execute([sys.executable, "-c", "\n".join(session)], project.path)


@pytest.mark.slow
def test_the_guide_to_costs_runs(project):
    code = [text for language, text in blocks(COST) if language == "python"]
    execute([sys.executable, "-c", "\n".join(code)], project.path)
    own = [yaml.safe_load(text) for language, text in blocks(COST) if language == "yaml"][-1]
    (project.path / "src" / "my_costs.py").write_text(
        next(text for text in code if "def by_hours" in text), encoding="utf-8"
    )
    own["serm"]["cost"]["arguments"]["hours"] = [2, 1, 5, 1, 1, 1]  # the tiny table has six columns
    (project.path / "conf" / "local" / "parameters.yml").write_text(yaml.safe_dump(own))
    # `local` is what a run reads unless told otherwise, so the tiny table is named instead.
    typed("kedro run --pipeline=ingest --params dataset=tiny", project.path)
    typed("kedro run --pipeline=training --params dataset=tiny", project.path)
    for language, text in blocks(COST):
        for command in commands(text) if language == "console" else ():
            (project.path / "conf" / "local" / "parameters.yml").unlink(missing_ok=True)
            typed(f"{command},dataset=tiny", project.path)


README_COMMANDS = [
    command
    for language, text in blocks(README)
    if language == "console"
    for command in commands(text)
]
LIVE = [c for c in README_COMMANDS if c.startswith("kedro viz")]
FETCHED = [c for c in README_COMMANDS if "countermove fetch" in c]
TYPED = [command for command in README_COMMANDS if command not in (*LIVE, *FETCHED)]
"""Everything else, in its order."""


def test_the_readme_s_make_targets_exist():
    made = [command for command in README_COMMANDS if command.startswith("make ")]
    assert {"make serm", "make test"} <= set(made)
    for command in made:
        assert spelled_out(command)


@pytest.fixture
def clone(project):
    """A clone in which set-up has just ended, with the environment that runs this test."""
    built = Path(sys.prefix)
    if not {".runtime", ".develop"} <= {path.name for path in built.glob(".*")}:
        pytest.skip(f"make did not build the environment {built}")
    for path in (ROOT / "Makefile", ROOT / "constraints.txt", *(ROOT / "requirements").iterdir()):
        copy = project.path / path.relative_to(ROOT)
        copy.parent.mkdir(exist_ok=True)
        shutil.copy(path, copy)
        os.utime(copy, (1, 1))  # older than the stamps: there is nothing to install
    (project.path / ".venv").symlink_to(built)
    return project.path


@pytest.mark.slow
def test_the_readme_runs_as_written_from_a_fresh_clone(clone):
    """One shell types it all; each command finds what those before it left, and nothing else.

    Only `make test` is not carried out, as it is what runs this.
    """
    shell = "\n".join(command.replace("make test", "make --dry-run test") for command in TYPED)
    bare = os.pathsep.join(["/usr/local/bin", "/usr/bin", "/bin"])
    said = execute(["bash", "-euc", shell], clone, PATH=bare, PYTHON="false")
    assert "pytest" in said
    reports = {path.parent.name for path in clone.glob("data/08_reporting/*/report.html")}
    assert reports == {"credit", "german"}
    scored = clone / "data/07_model_output/credit/scored/2026-11"
    assert list(scored.glob("part-*.parquet"))
    assert (clone / "data/08_reporting/credit/population.html").exists()


@pytest.mark.slow
@pytest.mark.parametrize("command", FETCHED)
def test_the_readme_s_fetch(command, project):
    assert shlex.split(command)[-1] in PUBLISHED
    try:
        index = os.environ.get("PIP_INDEX_URL", "https://pypi.org/simple/")
        urllib.request.urlopen(index, timeout=5).close()
    except OSError as error:
        pytest.skip(f"the package index cannot be reached: {error}")
    assert "fetched" in typed(command, project.path)


def free_port() -> int:
    """Return a port that nobody uses, below those kedro-viz refuses (from 49152 on)."""
    for port in range(20_000, 49_000, 7):
        with socket.socket() as free, suppress(OSError):
            free.bind(("127.0.0.1", port))
            return port
    raise AssertionError("no port is free")


@pytest.mark.slow
@pytest.mark.parametrize("command", LIVE)
def test_the_readme_s_kedro_viz_starts(command, project):
    port = free_port()
    quiet = [*shlex.split(command), "--no-browser", "--host", "127.0.0.1", "--port", str(port)]
    log = project.path / "viz.log"
    with log.open("w") as out:
        server = subprocess.Popen(
            quiet,
            cwd=project.path,
            env=environment(KEDRO_ENV="test"),
            start_new_session=True,  # its own child would outlive it
            stdout=out,
            stderr=subprocess.STDOUT,
        )
    try:
        answered = b""
        for _ in range(240):
            try:
                with urllib.request.urlopen(f"http://127.0.0.1:{port}/api/version") as page:
                    answered = page.read()
                break
            except OSError:
                assert server.poll() is None, log.read_text()
                time.sleep(0.5)
        assert b"12." in answered
    finally:
        with suppress(ProcessLookupError):
            os.killpg(server.pid, signal.SIGKILL)
        server.wait()
