"""The guide's code runs as printed."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

GUIDE = Path(__file__).parents[3] / "docs" / "guides" / "estimating_people.md"


@pytest.mark.slow
def test_the_guide_runs_as_printed():
    names: dict[str, object] = {}
    for block in re.findall(r"```python\n(.*?)```", GUIDE.read_text(), re.DOTALL):
        exec(block, names)
    assert names["people"].scale_interval.contains(2.0)
