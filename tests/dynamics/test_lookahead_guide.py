"""The guide's code runs as printed, and the room loads what is heavy on first use only."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

import countermove.dynamics

GUIDE = Path(__file__).parents[2] / "docs" / "guides" / "lookahead.md"


def test_the_guide_runs_as_printed():
    names: dict[str, object] = {}
    blocks = re.findall(r"```python\n(.*?)```", GUIDE.read_text(), re.DOTALL)
    assert len(blocks) == 5
    for block in blocks:
        exec(block, names)
    assert names["best"].refit_gap > names["run"].refit_gap


def test_every_public_name_can_be_had():
    for name in countermove.dynamics.__all__:
        assert getattr(countermove.dynamics, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'retrain'"):
        countermove.dynamics.retrain  # noqa: B018


def test_importing_dynamics_loads_neither_torch_nor_scikit_learn():
    code = (
        "import sys, countermove.dynamics; sys.exit(bool({'torch', 'sklearn'} & set(sys.modules)))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
