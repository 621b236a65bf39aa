"""The picture of an estimate draws what people did beside what the model says they do."""

from __future__ import annotations

import pytest
from plotly import graph_objects

from countermove.reporting.people_estimate import people_figure, people_page

SLY = "<script>alert(1)</script>"
MATCHED = {
    "kind": "matched",
    "points": {"gap": [0.1, 0.4], "advance": [0.1, 0.0], "model": [0.1, 0.4]},
    "strips": {"gap": [0.25], "seen": [0.05], "model": [0.25], "error": [0.02]},
}
SAMPLES = {
    "kind": "samples",
    "edges": [-1.0, 0.0, 0.5],
    "before": [0.8, 0.2],
    "after": [0.5, 0.5],
    "model": [0.4, 0.6],
}


def drawn(picture, verdict="They move."):
    figure = people_figure({"picture": picture, "verdict": verdict})
    return {trace.name: trace for trace in figure.data}, figure


def test_matched_people_are_drawn_one_by_one_and_by_strip():
    traces, _ = drawn(MATCHED)
    assert list(traces["seen"].y) == MATCHED["points"]["advance"]
    assert list(traces["model, who moves"].y) == MATCHED["points"]["model"]
    means = traces["seen, mean"]
    assert list(means.y) == MATCHED["strips"]["seen"]
    assert list(means.error_y.array) == [0.04]  # two standard errors
    assert list(traces["model, mean"].y) == MATCHED["strips"]["model"]


def test_samples_are_drawn_as_densities_so_that_strips_of_any_width_compare():
    traces, figure = drawn(SAMPLES)
    assert set(traces) == {"before", "after", "after, by the model"}
    widths = (1.0, 0.5)
    for name, key in (("before", "before"), ("after", "after"), ("after, by the model", "model")):
        heights = [share / width for share, width in zip(SAMPLES[key], widths, strict=True)]
        assert list(traces[name].y) == pytest.approx(heights)
        assert list(traces[name].x) == [-0.5, 0.25]
    assert figure.layout.shapes[0].x0 == 0.0  # the boundary of approval


@pytest.mark.parametrize("picture", [MATCHED, SAMPLES], ids=lambda picture: picture["kind"])
def test_the_verdict_stands_above_the_figure_whole_and_cannot_run(picture):
    long = "word " * 60
    _, figure = drawn(picture, f"{long}\n{SLY}")
    lines = figure.layout.title.text.split("<br>")
    assert " ".join(lines[:-1]).split() == long.split()
    assert lines[-1] == "&lt;script&gt;alert(1)&lt;/script&gt;"
    assert max(map(len, lines[:-1])) <= 130


def test_the_page_has_the_verdict_in_sentences_and_the_figure_without_it():
    figure = graph_objects.Figure([graph_objects.Scatter(x=[0.0], y=[0.5])], {"title": "verdict"})
    page = people_page({"verdict": f"They climb.\n{SLY}"}, figure)
    assert "<p>They climb.</p>" in page
    assert "<script>alert" not in page
    assert '"title":{"text":""}' in page
    assert figure.layout.title.text == "verdict"
