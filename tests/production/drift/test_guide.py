"""The guide to drift runs as printed."""

import re
from pathlib import Path

GUIDE = Path(__file__).parents[3] / "docs" / "guides" / "drift.md"


def test_the_guide_runs_as_printed(capsys):
    names = {}
    for block in re.findall(r"```python\n(.*?)```", GUIDE.read_text(), re.DOTALL):
        exec(block, names)
    said = re.search(r"print\(report\.recommendation\) +# (.+)", GUIDE.read_text()).group(1)
    assert capsys.readouterr().out.startswith(f"{said}\n")
    assert names["report"].findings.people.estimate.scale_interval.contains(4.0)
