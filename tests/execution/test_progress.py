"""Bars are for people: nothing is drawn where standard error is not a terminal."""

import os
import pty
import subprocess
import sys

import pytest

PARTS = (
    "from countermove.execution._progress import part_bar\n"
    "with part_bar(3, what='splits') as advance:\n    [advance() for _ in range(3)]"
)
EPOCHS = (
    "from countermove.training.history import epoch_bar\n"
    "from types import SimpleNamespace as Record\n"
    "with epoch_bar(3) as advance:\n"
    "    [advance(Record(validation_accuracy=0.5)) for _ in range(3)]"
)
STEPS = (
    "from countermove.execution._progress import part_bar, step_bar\n"
    "with step_bar('recourse.advise, 14 of 23', 10.0, 75.0):\n"
    "    with part_bar(3, what='splits') as advance:\n        [advance() for _ in range(3)]"
)


@pytest.mark.parametrize(
    ("code", "said"),
    [
        (PARTS, ["splits", "3/3"]),
        pytest.param(EPOCHS, ["epoch", "3/3"], marks=pytest.mark.slow),
        (STEPS, ["1:05 left", "recourse.advise, 14 of 23", "splits", "3/3"]),
    ],
    ids=["parts", "epochs", "steps"],
)
def test_a_terminal_sees_the_bar_and_a_file_does_not(code, said):
    command = [sys.executable, "-c", code]
    quiet = subprocess.run(command, capture_output=True, text=True, check=True)
    assert quiet.stdout + quiet.stderr == ""
    ours, theirs = pty.openpty()
    terminal = os.environ | {"TERM": "xterm", "COLUMNS": "120", "CI": ""}
    shown = subprocess.run(
        command, stdout=subprocess.PIPE, stderr=theirs, env=terminal, text=True, check=True
    )
    os.close(theirs)
    drawn = os.read(ours, 100_000).decode()
    os.close(ours)
    assert shown.stdout == ""
    places = [drawn.find(each) for each in said]
    assert -1 not in places
    assert places == sorted(places)  # The bar of a step makes room for the one inside it.
