"""The smaller pages as a person opens them: stored figures are drawn, and axe finds nothing."""

from __future__ import annotations

import pytest
from plotly.graph_objects import Bar, Figure, Frame

from countermove.reporting import figure_data, render
from countermove.reporting.population import population_page

pytestmark = [pytest.mark.browser, pytest.mark.slow]

SIZES = {"desktop": (1280, 900), "phone": (390, 844)}
GRAVE = ("serious", "critical")


def population():
    times = [{"part": 0, "rows": 10, "reading": 0.1, "working": 1, "writing": 0.2, "worker": "w"}]
    run = {"rows": 10, "parts": 1, "kept": 0, "seconds": 3.5, "times": times}
    facts = {"rows": 7, "moved": 0.25, "mean_cost": 1.0, "favoured": 0.5, "run": run}
    facts |= {"accuracy_nobody_moves": 0.75, "accuracy_after_response": 0.625}
    claim = {"name": "recourse_miss_rate", "direction": "upper", "level": 0.95, "n": 900}
    report = {"blind": facts, "strategic": facts, "advice": {"run": run}}
    report |= {"execution": {"engine": "serial"}, "certificate": claim | {"value": 0.05}}
    return population_page(report, "tiny")


def experiment():
    frames = [Frame(name=str(i), data=[Bar(x=["a"], y=[i])]) for i in range(2)]
    figure = Figure([Bar(x=["a"], y=[1])], {"title": "Bars"}, frames)
    drawing = {"content": figure_data(figure), "description": "one bar"}
    table = {"title": "Means", "head": ["rule", "mean"], "rows": [["blind", "0.5"]]}
    facts = {"title": "An experiment", "lead": "A sentence.", "note": "A note."}
    return render("experiment.html", figures=[drawing, drawing], tables=[table], **facts)


PAGES = {"population": population, "experiment": experiment}


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("name", PAGES)
def test_figures_are_drawn_and_axe_finds_nothing_serious(
    chromium, axe, tmp_path, name, size, scheme
):
    file = tmp_path / f"{name}.html"
    file.write_text(PAGES[name]())
    width, height = SIZES[size]
    page = chromium.new_page(viewport={"width": width, "height": height}, color_scheme=scheme)
    complaints = []
    page.on("console", lambda message: complaints.append(message.text))
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.goto(file.as_uri(), wait_until="load")
    page.wait_for_selector("html[data-drawn=all]", state="attached", timeout=60_000)
    figures = page.locator("figure").count()
    assert page.locator("figure .plot svg.main-svg").count() >= figures >= 1
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    page.evaluate(axe)
    found = page.evaluate("axe.run({resultTypes: ['violations']})")["violations"]
    page.close()
    assert [(one["impact"], one["id"]) for one in found if one["impact"] in GRAVE] == []
    assert complaints == []
