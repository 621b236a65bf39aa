"""The guide to bent scores runs as printed."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

GUIDE = Path(__file__).parents[2] / "docs" / "guides" / "nonlinear.md"


@pytest.mark.slow
def test_the_guide_runs_as_printed(capsys):
    names: dict[str, object] = {}
    for block in re.findall(r"```python\n(.*?)```", GUIDE.read_text(), re.DOTALL):
        exec(block, names)
    accuracy, verdict = capsys.readouterr().out.splitlines()
    assert 0.5 < float(accuracy) <= 1.0
    assert verdict.startswith("The trained rule is published: its gain")
    assert names["answers"].converged.all()
    assert names["gap"].against == "grid"
