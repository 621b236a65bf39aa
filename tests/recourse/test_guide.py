"""The guide's code runs as printed, and the package loads what is heavy on first use only."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

import countermove.recourse

GUIDE = Path(__file__).parents[2] / "docs" / "guides" / "recourse_training.md"


def test_the_guide_runs_as_printed():
    names: dict[str, object] = {}
    for block in re.findall(r"```python\n(.*?)```", GUIDE.read_text(), re.DOTALL):
        exec(block, names)
    assert 0.0 <= names["report"].recourse.recourse_neg.value <= 1.0


def test_every_public_name_can_be_had():
    for name in countermove.recourse.__all__:
        assert getattr(countermove.recourse, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'recomend'"):
        countermove.recourse.recomend  # noqa: B018


def test_importing_recourse_does_not_load_scikit_learn():
    code = "import sys, countermove.recourse; sys.exit('sklearn' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
