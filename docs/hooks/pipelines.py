"""Put kedro-viz's static site under ``viz/`` when asked, and let the page on pipelines say so.

``make docs-viz`` builds that site (10 MB, never committed) and names its folder in
COUNTERMOVE_DOCS_VIZ. Without it the page says how to look at the pipelines instead.
"""

from __future__ import annotations

import json
import os
import re
import shutil
from importlib.metadata import version
from pathlib import Path
from typing import Any

VARIABLE = "COUNTERMOVE_DOCS_VIZ"
MARK = "<!-- kedro-viz -->"
OPENED = "?pid=serm&expandAllPipelines=true&types=nodes"
"""The chain with every box open and without its datasets: all of it can be read at once."""
HERE = (
    '<p><a class="md-button" href="viz/index.html">Open the pipelines</a> '
    f'<a class="md-button" href="viz/index.html{OPENED.replace("&", "&amp;")}">'
    "Every step of serm</a></p>"
)
ELSEWHERE = (
    "<p>This copy of the documentation was built without them: <code>make docs-viz</code> adds "
    "them, <code>make viz</code> opens them live.</p>"
)
FROM_ELSEWHERE = re.compile(r"<link\s[^>]*https://fonts\.[^>]*/>\s*", re.DOTALL)
"""The page asks another host for a font; ours asks nobody for anything."""


def on_page_content(html: str, **_: Any) -> str:
    """Fill in the place of the link."""
    return html.replace(MARK, HERE if os.environ.get(VARIABLE) else ELSEWHERE)


def on_post_build(config: Any, **_: Any) -> None:
    """Copy the built site."""
    source = os.environ.get(VARIABLE)
    if source:
        publish(Path(source), Path(config["site_dir"]) / "viz")


def publish(source: Path, target: Path) -> None:
    """Copy kedro-viz's static site so that it needs no other host and reports no error."""
    if not (source / "api" / "main").is_file():
        raise FileNotFoundError(f"no kedro-viz site in {source}; run: kedro viz build")
    shutil.copytree(source, target, dirs_exist_ok=True)
    for page in target.glob("*.html"):
        page.write_text(FROM_ELSEWHERE.sub("", page.read_text("utf-8")), "utf-8")
    # Where the project lies on this machine is nobody's business: paths start at its root.
    homes = {source.resolve().parent, Path(__file__).resolve().parents[2]}
    for answer in (path for path in (target / "api").rglob("*") if path.is_file()):
        text = answer.read_text("utf-8")
        for home in homes:
            text = text.replace(f"{home}/", "")
        answer.write_text(text, "utf-8")
    # One address is written from the root of the server; this site lies in a folder of its own.
    for script in (target / "assets").glob("index-*.js"):
        code = script.read_text("utf-8")
        script.write_text(code.replace('"/api/run-status"', '"./api/run-status"'), "utf-8")
    # A static site cannot publish itself; kedro-viz asks all the same, and wants to hear of fsspec.
    about = {"package_name": "fsspec", "package_version": version("fsspec"), "is_compatible": True}
    facts = {"has_missing_dependencies": False, "package_compatibilities": [about]}
    (target / "api" / "metadata").write_text(json.dumps(facts), "utf-8")
