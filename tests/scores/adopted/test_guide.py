"""The guide "I have a model" runs as it is written."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

GUIDE = Path(__file__).parents[3] / "docs" / "guides" / "your_model.md"


def test_the_guide_runs(capsys: pytest.CaptureFixture[str]) -> None:
    (code,) = re.findall(r"```python\n(.*?)```", GUIDE.read_text("utf-8"), re.DOTALL)
    exec(compile(code, str(GUIDE), "exec"), {})
    assert "FOUND" in capsys.readouterr().out
