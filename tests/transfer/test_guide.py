"""The guide's code runs as printed, and the package loads what is heavy on first use only."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

import countermove.transfer

GUIDE = Path(__file__).parents[2] / "docs" / "guides" / "transfer.md"


def test_the_guide_runs_as_printed():
    names: dict[str, object] = {}
    for block in re.findall(r"```python\n(.*?)```", GUIDE.read_text(), re.DOTALL):
        exec(block, names)
    assert {entry["model"] for entry in names["report"].bounds} == {"mine"}


def test_every_public_name_can_be_had():
    for name in countermove.transfer.__all__:
        assert getattr(countermove.transfer, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'indice'"):
        countermove.transfer.indice  # noqa: B018


def test_importing_transfer_loads_neither_torch_nor_scikit_learn():
    code = (
        "import sys, countermove.transfer; sys.exit(bool({'torch', 'sklearn'} & set(sys.modules)))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
