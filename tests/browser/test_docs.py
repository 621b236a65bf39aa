"""The documentation in a real browser, as files: nothing missing, nobody else asked."""

from __future__ import annotations

import importlib
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.browser

ROOT = Path(__file__).parents[2]
SIZES = {"desktop": {"width": 1280, "height": 900}, "phone": {"width": 390, "height": 844}}
PAGES = ("index", "gallery", "theory", "pipelines", "contributing", "tutorials/first_run")
ROOMS = ("people", "scores", "response", "learning", "recourse", "transfer", "dynamics")


@pytest.fixture(scope="session")
def site(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("documentation") / "site"
    built = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "-d", str(folder)],
        cwd=ROOT,
        env=os.environ | {"NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert built.returncode == 0, built.stderr
    return folder


def opened(chromium, address, size, scheme="light"):
    """Open a page; return it with what it complained about and whom else it asked."""
    context = chromium.new_context(viewport=SIZES[size], color_scheme=scheme)
    page, complaints, asked = context.new_page(), [], []
    page.on("console", lambda m: complaints.append(m.text) if m.type == "error" else None)
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on("request", lambda r: asked.append(r.url) if r.url.startswith("http") else None)
    page.goto(address)
    page.wait_for_load_state("networkidle")
    return page, complaints, asked


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("name", PAGES)
def test_a_page_loads_quietly_and_fits(site, chromium, name, size, tmp_path):
    page, complaints, asked = opened(chromium, (site / f"{name}.html").as_uri(), size)
    page.screenshot(path=tmp_path / f"{size}.png", full_page=True)
    assert complaints == []
    assert asked == []
    width = page.evaluate("document.documentElement.scrollWidth")
    assert width <= SIZES[size]["width"]
    broken = "[...document.images].filter(i => !i.complete || !i.naturalWidth).map(i => i.src)"
    assert page.evaluate(broken) == []
    page.context.close()


@pytest.mark.parametrize("name", ["index", "guides/recourse"])
def test_search_works_from_files(site, chromium, name):
    page, complaints, asked = opened(chromium, (site / f"{name}.html").as_uri(), "desktop")
    page.click("input.md-search__input")
    page.keyboard.type("quarantine")
    found = page.locator("a.md-search-result__link")
    found.first.wait_for(timeout=30_000)
    assert "your_own_table.html" in " ".join(each.get_attribute("href") for each in found.all())
    assert (complaints, asked) == ([], [])
    found.first.click()
    page.wait_for_load_state("networkidle")
    assert "quarantine" in page.inner_text("article").lower()
    page.context.close()


def test_every_page_is_two_clicks_from_the_start(site):
    """A link of the article or of the bar of pages is a click; the bar is on every page."""
    start = (site / "index.html").read_text("utf-8")
    linked = set(re.findall(r'href="([\w/.-]+\.html)"', start))
    pages = {str(path.relative_to(site)) for path in site.rglob("*.html")}
    assert pages - linked - {"index.html", "404.html"} == set()


def test_formulas_are_drawn(site, chromium):
    page, *_ = opened(chromium, (site / "theory.html").as_uri(), "desktop")
    assert page.locator("math").count() > 50
    assert all(
        box["height"] > 5 for box in (m.bounding_box() for m in page.locator("math").all()[:20])
    )
    assert "\\operatorname" not in page.inner_text("article")
    page.context.close()


def test_the_site_follows_the_reader_s_colours(site, chromium):
    shades = {}
    for scheme in ("light", "dark"):
        page, *_ = opened(chromium, (site / "index.html").as_uri(), "desktop", scheme)
        colour = page.evaluate("getComputedStyle(document.body).backgroundColor")
        shades[scheme] = sum(map(int, re.findall(r"\d+", colour)[:3]))
        page.context.close()
    assert shades["light"] > 600 > 300 > shades["dark"]


@pytest.mark.parametrize("room", ROOMS)
def test_the_reference_has_every_public_name(site, room):
    text = (site / "reference" / f"{room}.html").read_text("utf-8")
    for name in importlib.import_module(f"countermove.{room}").__all__:
        assert re.search(rf'id="countermove\.[\w.]*\b{name}"', text), name
    assert ".. math::" not in text
    assert ":math:" not in text
    assert not re.search(r"<m\w+>\\\w+", text), "a formula the converter does not know"


def test_without_kedro_viz_the_page_says_how_to_get_it(site):
    assert "make docs-viz" in (site / "pipelines.html").read_text("utf-8")
    assert not (site / "viz").exists()
