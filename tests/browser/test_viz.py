"""kedro-viz in a real browser: the chain is five boxes, and what a run left can be looked at."""

from __future__ import annotations

import functools
import json
import os
import runpy
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

pytestmark = pytest.mark.browser

ROOT = Path(__file__).parents[2]
HOOK = runpy.run_path(str(ROOT / "docs" / "hooks" / "pipelines.py"))
"""How the documentation publishes kedro-viz."""
STAGES = {"ingest", "training", "recourse", "evaluation", "reporting"}
OTHERS = ("tradeoff", "lookahead", "collective", "population")
WITHOUT = {"report", *(f"{pipeline}_beside" for pipeline in OTHERS)}
"""Datasets of the chain without a preview: a page of several megabytes is opened, not previewed,
and what other pipelines leave is not there."""
NO_HINTS = "localStorage.setItem('KedroViz', JSON.stringify({showFeatureHints: false}))"


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_):
        """Say nothing."""


@pytest.fixture(scope="session")
def published(finished, tmp_path_factory) -> Path:
    """The static site of kedro-viz after a run, as ``make docs-viz`` publishes it."""
    built = subprocess.run(
        [sys.executable, "-m", "kedro", "viz", "build", "--include-previews"],
        cwd=finished.path,
        env=os.environ | {"DO_NOT_TRACK": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert built.returncode == 0, built.stderr
    assert "could not be previewed" not in built.stderr + built.stdout
    target = tmp_path_factory.mktemp("docs") / "viz"
    HOOK["publish"](finished.path / "build", target)
    return target


@pytest.fixture(scope="session")
def address(published) -> Iterator[str]:
    """It needs a server: browsers load no modules from files. In a folder, as in the site."""
    handler = functools.partial(Quiet, directory=str(published.parent))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/viz/"
        server.shutdown()


@pytest.fixture
def page(chromium, address):
    """The chain, opened; console errors and requests to other hosts fail the test."""
    context = chromium.new_context(viewport={"width": 1400, "height": 900})
    context.add_init_script(NO_HINTS)
    page, complaints = context.new_page(), []
    page.on("console", lambda m: complaints.append(m.text) if m.type == "error" else None)
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on(
        "request",
        lambda r: (
            None if r.url.startswith((address, "data:", "blob:")) else complaints.append(r.url)
        ),
    )
    page.goto(address)
    page.wait_for_selector(".pipeline-node--modularPipeline")
    yield page
    context.close()
    assert complaints == []


def test_the_chain_is_five_closed_boxes(page, tmp_path):
    page.wait_for_timeout(500)
    page.screenshot(path=tmp_path / "chain.png")
    boxes = page.locator(".pipeline-node--modularPipeline").all_text_contents()
    assert set(boxes) == STAGES
    assert page.locator(".pipeline-node--task").count() == 0


def open_box(page, name):
    """Open a box once the picture has come to rest in the window."""
    page.wait_for_timeout(2000)
    page.locator(f'.pipeline-node[data-id="{name}"]').dblclick(force=True)


def test_a_box_opens(page):
    open_box(page, "reporting")
    page.wait_for_selector(".pipeline-node--task")
    assert page.locator(".pipeline-node--task").count() >= 2


LEGIBLE = 8.5
"""Pixels of a label's height from which on it is read without zooming."""


def test_every_step_is_read_at_once(page, address, tmp_path):
    """All boxes open at 1280 x 900: inside the window, legible, none over another."""
    page.set_viewport_size({"width": 1280, "height": 900})
    page.goto(f"{address}{HOOK['OPENED']}")
    page.wait_for_selector(".pipeline-node--task")
    page.wait_for_timeout(2000)
    page.screenshot(path=tmp_path / "steps.png")
    boxes = page.evaluate(
        """() => [...document.querySelectorAll('.pipeline-node--task')].map(node => {
            const label = node.querySelector('.pipeline-node__text').getBoundingClientRect()
            const box = node.querySelector('.pipeline-node__bg').getBoundingClientRect()
            return [node.textContent, label.height, box.left, box.top, box.right, box.bottom]
        })"""
    )
    assert len(boxes) >= 20
    for i, (name, height, left, top, right, bottom) in enumerate(boxes):
        assert height >= LEGIBLE, name
        assert 480 <= left <= right <= 1280, name
        assert 0 <= top <= bottom <= 900, name
        for other, _, west, north, east, south in boxes[:i]:
            apart = right <= west or east <= left or bottom <= north or south <= top
            assert apart, (name, other)


@pytest.mark.parametrize(
    ("dataset", "kind"),
    [
        ("advice", ".preview-table"),
        ("schema", ".preview-table"),
        ("metrics", ".pipeline-metadata__preview-json"),
        ("summary", ".pipeline-metadata__preview-json"),
        ("strategic_model", ".pipeline-metadata__preview-json"),
    ],
)
def test_a_preview_opens(page, address, published, dataset, kind, tmp_path):
    nodes = json.loads((published / "api" / "main").read_text("utf-8"))["nodes"]
    chosen = next(node["id"] for node in nodes if node["name"] == dataset)
    page.goto(f"{address}?pid=__default__&sid={chosen}")
    page.wait_for_selector(kind)
    page.screenshot(path=tmp_path / f"{dataset}.png")
    assert page.locator(kind).first.inner_text().strip()


def test_a_figure_is_drawn(page, tmp_path):
    open_box(page, "reporting")
    figure = page.locator(".pipeline-node", has_text="accuracy_figure").first
    figure.wait_for()
    figure.click(force=True)
    page.wait_for_selector(".js-plotly-plot .main-svg")
    page.screenshot(path=tmp_path / "figure.png")


def test_every_dataset_of_the_chain_has_layer_and_preview(published):
    api = published / "api"
    shown = json.loads((api / "pipelines" / "serm").read_text("utf-8"))
    data = [node for node in shown["nodes"] if node["type"] == "data"]
    assert len(data) > 20
    assert [node["name"] for node in data if not node["layer"]] == []
    details = {
        node["name"]: json.loads((api / "nodes" / node["id"]).read_text("utf-8")) for node in data
    }
    missing = {name for name, detail in details.items() if not detail.get("preview")}
    assert missing == WITHOUT


def test_previews_are_of_the_dataset_that_was_run_last_and_the_summary_says_which(published):
    """No dataset was named for kedro-viz."""
    nodes = json.loads((published / "api" / "main").read_text("utf-8"))["nodes"]
    chosen = next(node["id"] for node in nodes if node["name"] == "summary")
    detail = json.loads((published / "api" / "nodes" / chosen).read_text("utf-8"))
    assert json.loads(detail["preview"])["dataset"] == "tiny"


def test_every_node_says_what_it_is_for(published):
    api = published / "api"
    shown = json.loads((api / "pipelines" / "serm").read_text("utf-8"))
    for node in (node for node in shown["nodes"] if node["type"] == "task"):
        detail = json.loads((api / "nodes" / node["id"]).read_text("utf-8"))
        assert '"""' in detail["code"], node["name"]


def test_what_is_published_names_no_place_of_this_machine(published, finished):
    for path in (path for path in published.rglob("*") if path.is_file()):
        text = path.read_bytes()
        assert str(finished.path).encode() not in text, path.name
        assert path.suffix != ".html" or b"fonts.googleapis.com" not in text
