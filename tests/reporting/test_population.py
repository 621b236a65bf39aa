"""The page of a population in parts shows what was counted and how long every part took."""

from __future__ import annotations

import pytest

from countermove.reporting.population import DRAWN, population_page, times_figure

FACTS = {"rows": 7, "moved": 0.25, "mean_cost": 1.0, "favoured": 0.5,
         "accuracy_nobody_moves": 0.75, "accuracy_after_response": 0.625}  # fmt: skip
CLAIM = {"name": "recourse_miss_rate", "value": 0.05, "direction": "upper", "level": 0.95, "n": 900}


def timed(parts: int) -> dict:
    times = [
        {"part": k, "rows": 10, "reading": 0.1, "working": k, "writing": 0.2, "worker": f"w{k % 2}"}
        for k in range(parts)
    ]
    return {"rows": 10 * parts, "parts": parts, "kept": 1, "seconds": 3.5, "times": times}


@pytest.fixture
def report():
    runs = {name: {"run": timed(3)} for name in ("blind", "strategic", "advice")}
    runs["blind"] |= FACTS
    runs["strategic"] |= FACTS | {"accuracy_after_response": 0.875}
    return runs | {"execution": {"engine": "dask"}, "certificate": CLAIM}


def test_both_rules_the_promise_and_the_times_are_on_the_page(report):
    page = population_page(report, "<mine>")
    assert '<td class="number">0.625</td><td class="number">0.875</td>' in page
    assert "at most 0.050" in page
    assert "&lt;mine&gt;" in page
    assert page.count('<td class="number">2.30</td>') == 3


def test_every_part_is_drawn_with_its_steps(report):
    bars = times_figure(report).data
    assert len(bars) == 9
    assert [bar.name for bar in bars[:3]] == ["reading", "working", "writing"]
    assert list(bars[1].y) == [0, 1, 2]


def test_of_very_many_parts_the_slowest_are_drawn(report):
    report["blind"]["run"] = timed(DRAWN + 5)
    bar = times_figure(report).data[1]
    assert len(bar.y) == DRAWN
    assert list(bar.y) == list(range(5, DRAWN + 5))


def test_a_run_whose_parts_were_all_done_before_has_a_page(report):
    report["advice"]["run"] |= {"times": [], "kept": 3}
    assert "decisions and advice" in population_page(report, "mine")


def test_a_claim_that_is_not_promised_has_its_reason_escaped(report):
    report["certificate"] = CLAIM | {"value": None, "reason": "too few <rows>"}
    page = population_page(report, "mine")
    assert "not promised: too few &lt;rows&gt;" in page
    assert "at most" not in page.split("<footer>")[0].split("<body>")[1]
