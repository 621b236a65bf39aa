"""The headline of a run, where somebody watches and where nobody does."""

from __future__ import annotations

import io
import os
import pty
import re
import subprocess
import sys

import pytest
from rich.console import Console

from countermove.reporting.terminal import headline, watched

METRICS = {
    "dataset": "tiny",
    "response": {"kind": "best"},
    "accuracy": {
        "nobody_moves": {"blind": 0.9, "strategic": 0.7},
        "after_response": {"blind": 0.5, "strategic": 0.88},
        "sensitivity": {"smooth_0.5": {"blind": 0.6, "strategic": 0.81}},
    },
}
CALIBRATION = {
    "terms": {"miss_rate": 0.05, "largest_loss": 0.02, "measure": "accuracy"},
    "certificate": {"words": "at least 95 %"},
    "led_by": "promise",
}
ESCAPE = "\x1b["


def drawn(**options) -> str:
    console = Console(file=io.StringIO(), width=80, **options)
    console.print(headline(METRICS, CALIBRATION, "A shift does it.", "data/report.html"))
    return console.file.getvalue()


def test_the_headline_holds_both_rules_the_promise_and_the_page():
    text = drawn()
    assert re.search(r"nobody moves +0\.900 +0\.700", text)
    assert re.search(r"best response \(trained for\) +0\.500 +0\.880", text)
    assert "Promised: at least 95 %." in text
    assert "Report:   data/report.html" in text
    assert "0.810" not in text  # the other responses are on the page
    assert text.strip().startswith("A shift does it.")
    assert len(text.splitlines()) <= 10


def test_the_better_rule_stands_out():
    text = drawn(force_terminal=True, color_system="standard")
    bold = re.findall(r"\x1b\[1;32m *(0\.\d+)", text)
    assert bold == ["0.900", "0.880"]


@pytest.mark.parametrize(
    ("job", "seen"), [("", True), ("false", True), ("true", False), ("1", False)]
)
def test_a_ci_job_is_nobody(job, seen, monkeypatch):
    monkeypatch.setenv("CI", job)
    assert watched(Console(force_terminal=True)) is seen
    assert not watched(Console(file=io.StringIO()))


def on_a_terminal(command, cwd, environment):
    """Run a command whose standard error is a pseudo-terminal; return what it wrote there."""
    master, slave = pty.openpty()
    running = subprocess.Popen(
        command, cwd=cwd, env=environment, stderr=slave, stdout=subprocess.DEVNULL
    )
    os.close(slave)
    written = b""
    while True:
        try:
            piece = os.read(master, 4096)
        except OSError:  # the other end is closed
            break
        if not piece:
            break
        written += piece
    os.close(master)
    assert running.wait() == 0
    return written.decode()


def environment(job: str) -> dict[str, str]:
    terminal = {"TERM": "xterm-256color", "OMP_NUM_THREADS": "1", "DO_NOT_TRACK": "1", "CI": job}
    return {key: value for key, value in os.environ.items() if key != "NO_COLOR"} | terminal


def test_a_part_of_the_chain_has_no_headline(finished):
    outcome = finished.run("--pipeline=reporting", "--env=test")
    assert outcome.returncode == 0
    assert "accuracy on test rows" not in outcome.stderr


@pytest.mark.slow
@pytest.mark.parametrize(("start", "job"), [(("kedro", "run"), ""), (("countermove",), "true")])
def test_a_run_ends_with_the_headline(start, job, project):
    command = [sys.executable, "-m", *start, "--pipeline=serm", "--env=test"]
    written = on_a_terminal(command, project.path, environment(job))
    assert "data/08_reporting/tiny/report.html" in written
    assert "95 % confidence" in re.sub(r"\s+", " ", written)
    if job:
        assert ESCAPE not in written
        assert "INFO    nobody moves" in written
    else:
        assert ESCAPE in written
        assert re.search(r"nobody moves +\S*0\.\d{3}", written)
        assert "INFO    nobody moves" not in written
