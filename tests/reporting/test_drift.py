"""The drift figure and section show what the report found, and nothing unescaped."""

from functools import cache

from tests.production.drift.known_answers import known_case

from countermove.production.drift import DriftTerms, drift_report
from countermove.reporting.drift import AGAINST, ALARM, drift_figure, drift_section


@cache
def facts(name):
    case = known_case(name, 1_200, 1_200, 1)
    terms = DriftTerms(permutations=199, bootstrap=50)
    tables = case.reference, case.observed
    return drift_report(*tables, case.model, case.response, terms, 1).to_json()


def test_figure_holds_every_column_as_seen_and_as_predicted():
    report = facts("savings grow by 0.2")
    named = {trace.name: trace for trace in drift_figure(report).data if trace.name}
    seen, predicted = named["observed (two standard errors)"], named["predicted by our response"]
    columns = {column["name"]: column for column in report["features"]}
    assert set(seen.y) == set(predicted.y) == set(columns)
    for name, value, colour in zip(seen.y, seen.x, seen.marker.color, strict=True):
        assert value == columns[name]["observed"]
        assert (colour == ALARM) == columns[name]["unexpected"]
    assert ALARM in seen.marker.color
    assert set(predicted.x) == {0.0}


def test_section_says_what_to_do_and_why():
    report = facts("savings grow by 0.2")
    page = drift_section(report)
    assert "Retrain: something changed" in page
    for column in report["features"]:
        assert f'<th scope="row">{column["name"]}</th>' in page
    assert report["reasons"][0] in page


def test_oddities_and_names_are_shown_escaped():
    report = facts("debts are no longer recorded")
    assert "What no drift explains" in drift_section(report)
    sly = report | {"reasons": ["<script>"]}
    assert "<script>alert" not in drift_section(sly)
    assert "<li>&lt;script&gt;</li>" in drift_section(sly)


def test_the_share_that_our_response_explains_has_its_interval_or_a_reason():
    report = facts("savings grow by 0.2")
    known = {"value": 0.8, "low": 0.7, "high": 0.9, "reason": ""}
    page = " ".join(drift_section(report | {"share_explained": known}).split())
    assert "80%" in page
    assert "70%" in page
    assert "90%" in page
    unknown = {"value": None, "low": None, "high": None, "reason": "nothing <moved>"}
    assert "nothing &lt;moved&gt;" in drift_section(report | {"share_explained": unknown})


def test_a_comparison_that_was_not_made_has_no_line():
    report = facts("savings grow by 0.2")
    assert drift_section(report).count('<th scope="row">differs from') == sum(
        report[key] is not None for key in AGAINST
    )
    fewer = report | {"against_estimate": None}
    assert AGAINST["against_estimate"] not in drift_section(fewer)
    assert AGAINST["against_reference"] in drift_section(fewer)
