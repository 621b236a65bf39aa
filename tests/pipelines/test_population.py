"""The whole chain with people who differ: from --params to the page."""

from __future__ import annotations

import json

import pytest

PARAMS = (
    "serm.response.kind=population,serm.response.never=0.2,serm.response.log_sd=0.4,"
    "serm.response.price_by.column=years_at_job,serm.response.price_by.log_price=0.3"
)


@pytest.mark.slow
def test_the_chain_runs_with_people_who_differ(project):
    outcome = project.run("--pipeline=serm", "--env=test", f"--params={PARAMS}")
    assert outcome.returncode == 0, outcome.stderr
    reports = project.path / "data/08_reporting/tiny"
    metrics = json.loads((reports / "metrics.json").read_text())
    assert metrics["response"]["kind"] == "population"
    assert (metrics["response"]["never"], metrics["response"]["log_sd"]) == (0.2, 0.4)
    assert metrics["response"]["log_price"][3] == pytest.approx(0.3)
    rows = metrics["rows"]["test"]
    # A mean of chances, not a count of decisions.
    accuracy = metrics["accuracy"]["after_response"]["strategic"]
    assert abs(accuracy * rows - round(accuracy * rows)) > 1e-6
    claims = {
        claim["name"]: claim for claim in json.loads((reports / "certificates.json").read_text())
    }
    will, can = (
        claims[name]
        for name in ("refusal_rate_after_response", "recourse_miss_rate_after_response")
    )
    assert will["value"] is None or will["value"] >= can["value"]
    bounds = json.loads((reports / "transfer_report.json").read_text())["stated"]
    assert bounds == ["population"]
    page = (reports / "report.html").read_text()
    assert "never move" in page
    assert "times the median price" in page
    again = project.run("--pipeline=reporting", "--env=test", f"--params={PARAMS}")
    assert again.returncode == 0, again.stderr


@pytest.mark.slow
def test_prices_by_what_people_can_change_are_refused_in_one_sentence(project):
    said = PARAMS.replace("years_at_job", "income")
    outcome = project.run("--pipeline=serm", "--env=test", f"--params={said}")
    assert outcome.returncode == 1
    assert "income, which the schema lets people change" in outcome.stderr
    assert "Traceback" not in outcome.stderr
