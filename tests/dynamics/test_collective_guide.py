"""The guide's code runs as printed, and its figures are those it names."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

import countermove.dynamics

GUIDE = Path(__file__).parents[2] / "docs" / "guides" / "collective_recourse.md"


def test_the_guide_runs_as_printed(capsys):
    names: dict[str, object] = {}
    for block in re.findall(r"```python\n(.*?)```", GUIDE.read_text(), re.DOTALL):
        exec(block, names)
    assert names["together"].loss < names["alone"].loss
    assert not names["some"].moves[:, 1].any()
    assert names["break_even"](names["problem"], names["reach"]) == pytest.approx(0.97, abs=5e-3)
    assert names["effects"].accuracy == pytest.approx(0.88)
    assert names["effects"].changed == pytest.approx(0.10)
    assert names["audit"].alarm
    assert "sparing" in capsys.readouterr().out


def test_every_public_name_can_be_had():
    for name in countermove.dynamics.__all__:
        assert getattr(countermove.dynamics, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'collective_recurse'"):
        countermove.dynamics.collective_recurse  # noqa: B018


def test_importing_the_room_loads_nothing_heavy():
    code = "import sys, countermove.dynamics; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
