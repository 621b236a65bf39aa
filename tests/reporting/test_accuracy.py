"""Accuracy on the page and in the stored figure is that of ``metrics.json``."""

from __future__ import annotations

import pytest

from countermove.reporting.accuracy import accuracy_figure, headline_facts
from countermove.reporting.page import report_page
from countermove.reporting.words import accuracy_rows

from .conftest import METRICS


@pytest.mark.parametrize("place", [0, 1])
def test_the_stored_figure_draws_the_table(place):
    bars = accuracy_figure(METRICS).data[place]
    assert list(bars.y) == [row[1 + place] for row in accuracy_rows(METRICS)]
    assert list(bars.x) == [row[0] for row in accuracy_rows(METRICS)]


def test_the_axis_of_accuracy_starts_at_zero():
    """Bars that start elsewhere would make a small difference look large."""
    assert tuple(accuracy_figure(METRICS).layout.yaxis.range) == (0, 1)


def test_the_verdict_is_the_difference_of_the_shares_shown(bare):
    facts = headline_facts(bare)
    assert facts["verdict"] == "38.0 points more often than"
    assert facts["changes"] == {"blind": "Loses 40.0 points", "strategic": "Gains 18.0 points"}


def test_every_response_has_a_line_with_a_mark_per_rule(bare):
    facts = headline_facts(bare)
    span, blind, strategic = facts["figure"]["data"]
    assert blind["x"] == [0.9, 0.5, 0.6]
    assert strategic["x"] == [0.7, 0.88, 0.81]
    assert span["x"] == [0.9, 0.7, None, 0.5, 0.88, None, 0.6, 0.81, None]
    assert len(blind["y"]) == len(set(blind["y"])) == len(facts["rows"]) == 3


def test_what_was_not_evaluated_is_said_with_its_reason(bare):
    metrics = METRICS | {"not_evaluated": {"conic": "needs a convex cost"}}
    assert headline_facts(type(bare)(metrics, bare.certificates))["left_out"] == [
        "conic: needs a convex cost"
    ]


def test_the_page_says_what_is_left_of_the_moves_in_whole_steps(bare):
    reach = {"accuracy": 0.84, "reach": 0.61, "reach_relaxed": 0.7}
    accuracy = METRICS["accuracy"] | {"whole_steps": {"blind": reach, "strategic": reach}}
    found = type(bare)(METRICS | {"accuracy": accuracy}, bare.certificates)
    page = report_page(found)
    assert "Where only people who can exist move, in whole steps" in page
    for key, share in (("accuracy", "84.0 %"), ("reach", "61.0 %"), ("reach_relaxed", "70.0 %")):
        assert f"accuracy.whole_steps.strategic.{key}" in page
        assert share in page.replace("\u202f", " ").replace("\u00a0", " ")
    assert "in whole steps" not in report_page(bare)
