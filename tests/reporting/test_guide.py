"""The Python of the guide to the report runs as it stands there."""

import re
from pathlib import Path

GUIDE = Path(__file__).parents[2] / "docs" / "guides" / "report.md"


def test_the_guide_runs_and_names_every_section():
    from countermove.reporting.page import SECTIONS

    text = GUIDE.read_text(encoding="utf-8")
    (code,) = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    names: dict[str, object] = {}
    exec(code, names)
    page = str(names["page"])
    titles = re.findall(r"<h2[^>]*>([^<]*)</h2>", page.split("<footer>")[0])
    assert len(titles) == len(SECTIONS)
    for title in titles:
        assert f"| {title} |" in text
