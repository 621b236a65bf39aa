"""The decision summary, counted again from the decisions by other means."""

import json
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import yaml
from scipy.stats import binomtest
from sklearn.metrics import accuracy_score, roc_auc_score

from countermove.data.rows import design_matrix
from countermove.data.schema import Schema
from countermove.errors import DataError
from countermove.reporting.summary import decision_summary


@pytest.fixture(scope="module")
def run(finished):
    """Summary, decisions and typed rows of a run on the fabricated table."""
    data = finished.path / "data"
    schema = Schema.from_mapping(
        "tiny", yaml.safe_load((finished.path / "conf/base/schemas/tiny.yml").read_text())
    )
    return SimpleNamespace(
        summary=json.loads((data / "08_reporting/tiny/summary.json").read_text()),
        decisions=pd.read_parquet(data / "07_model_output/tiny/decisions.parquet"),
        typed=pd.read_parquet(data / "02_intermediate/tiny/typed.parquet"),
        page=(data / "08_reporting/tiny/report.html").read_text(),
        schema=schema,
    )


def test_accuracies_and_their_intervals_are_those_of_the_decisions(run):
    label = run.decisions["label"] > 0
    for rule, found in run.summary["rules"].items():
        prefix = "" if rule == "published" else f"{rule}."
        for when, column in (("before", "approved"), ("after", "approved_after")):
            decided = run.decisions[prefix + column] > 0.5
            right = accuracy_score(label, decided)
            assert found[when]["value"] == pytest.approx(right)
            exact = binomtest(round(right * len(label)), len(label)).proportion_ci()
            assert (found[when]["low"], found[when]["high"]) == pytest.approx(tuple(exact))
        area = roc_auc_score(label, run.decisions[prefix + "score_after"])
        assert found["auc"]["value"] == pytest.approx(area)


def test_the_published_decision_is_the_one_handed_out(run):
    assert ((run.decisions["decision"] > 0) == (run.decisions["approved"] > 0.5)).all()


def test_gains_are_paired_differences(run):
    label = run.decisions["label"] > 0
    own = (run.decisions["approved_after"] > 0.5) == label
    for rule in ("blind", "majority", "logistic"):
        other = (run.decisions[f"{rule}.approved_after"] > 0.5) == label
        gain = run.summary["rules"][rule]["gain"]
        assert gain["value"] == pytest.approx(own.mean() - other.mean())
        assert gain["low"] <= gain["value"] <= gain["high"]


def test_groups_and_ratios_are_those_of_the_decisions(run):
    approved = run.decisions["approved_after"]
    for column, entries in run.summary["groups"].items():
        by_value = approved.groupby(run.decisions[f"group:{column}"]).mean()
        for entry in entries:
            assert entry["approval"]["value"] == pytest.approx(by_value[entry["group"]])
            if entry["ratio"] is not None:
                ratio = by_value[entry["group"]] / by_value.max()
                assert entry["ratio"]["value"] == pytest.approx(ratio)


def test_outcomes_are_rates_among_the_approved_and_the_refused(run):
    favourable = run.decisions["label"] > 0
    approved = run.decisions["approved_after"] > 0.5
    assert run.summary["outcomes"]["approved"]["value"] == pytest.approx(
        favourable[approved].mean()
    )
    assert run.summary["outcomes"]["refused"]["value"] == pytest.approx(
        favourable[~approved].mean()
    )


def test_the_scorecard_decides_as_the_rule_does(run):
    """Points times original values, added to the base, are at least 0 for the approved alone."""
    people = design_matrix(run.typed, run.schema)
    card = {entry["column"]: entry["per_unit"] for entry in run.summary["rule"]["points"]}
    weights = np.array([card[name] for name in run.schema.feature_names])
    points = pd.Series(people.X @ weights + run.summary["rule"]["base"], index=people.ids)
    decided = run.decisions.set_index("row_id")["decision"]
    assert ((points[decided.index] >= 0) == (decided > 0)).all()


def test_the_page_opens_with_the_summary_and_folds_the_rest(run):
    assert run.summary["headline"].split("(")[0].strip() in run.page.replace("&nbsp;", " ")
    assert run.page.index('id="summary"') < run.page.index('id="headline"')
    assert (
        '<section id="headline" aria-labelledby="headline-title"><details class="part">' in run.page
    )


def test_decisions_of_an_earlier_version_are_refused_with_the_way_out(run):
    old = run.decisions[["row_id", "decision", "probability", "status"]]
    with pytest.raises(DataError, match="kedro run --pipeline=recourse"):
        decision_summary(old, None, run.schema, {}, {}, [], None)
