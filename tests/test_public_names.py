"""What `import countermove` offers, and that it costs nothing until it is used."""

from __future__ import annotations

import importlib
import subprocess
import sys

import pytest

import countermove

ROOMS = (
    *("certificates", "data", "dynamics", "execution", "learning", "people"),
    *("recourse", "response", "scores", "training", "transfer"),
)
DOOR = (
    *("ActionSet", "RecourseClassifier", "StrategicClassifier", "adopt", "audit"),
    *("calibrate_pare", "estimate_people", "load", "recommend", "save", "transfer_report"),
)


def test_what_a_user_needs_comes_from_the_package_itself():
    for name in (*DOOR, *countermove.__all__):
        assert getattr(countermove, name) is not None
    assert set(DOOR) <= set(countermove.__all__)


def test_importing_loads_nothing_heavy():
    script = (
        "import sys, countermove; dir(countermove);"
        "print([name for name in ('numpy', 'torch', 'sklearn', 'pandas') if name in sys.modules])"
    )
    found = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert found.stdout.strip() == "[]", found.stderr


@pytest.mark.parametrize("room", ["", *ROOMS])
def test_completion_shows_public_names_only(room):
    module = importlib.import_module(f"countermove.{room}".rstrip("."))
    assert dir(module) == sorted(module.__all__)
    assert not [name for name in dir(module) if name.startswith("_") and name != "__version__"]
    for name in dir(module):
        getattr(module, name)
