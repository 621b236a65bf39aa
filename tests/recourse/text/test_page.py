"""The code of the page on texts runs as it stands, on a small WordNet."""

from __future__ import annotations

import re
from pathlib import Path

PAGE = Path(__file__).parents[3] / "docs" / "papers" / "recourse_text.md"


def test_the_code_of_the_page_runs(monkeypatch, wordnet_folder: Path) -> None:
    monkeypatch.setenv("WNSEARCHDIR", str(wordnet_folder))
    (code,) = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    names: dict[str, object] = {}
    exec(compile(code, str(PAGE), "exec"), names)
    advice = names["advice"]
    assert advice.status[3] == "NOT_NEEDED"  # type: ignore[attr-defined]
    assert advice.words()[0].startswith("replace 'dull' by '")  # type: ignore[attr-defined]
