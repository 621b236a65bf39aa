"""The decision summary, counted again from the decisions by other means."""

import html
import json
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import yaml
from scipy.stats import binomtest
from sklearn.metrics import accuracy_score, roc_auc_score
from tests.conftest import copy_project

from countermove.data.rows import design_matrix
from countermove.data.schema import Schema
from countermove.data.standardise import Standardiser
from countermove.errors import DataError
from countermove.reporting.page import report_page
from countermove.reporting.summary import decision_summary, headline, verdicts, would_change
from countermove.scores import LinearScore
from countermove.scores.storage import PublishedModel

TABLES = ["tiny", *(pytest.param(name, marks=pytest.mark.slow) for name in ("german", "adult"))]


@pytest.fixture(scope="module", params=TABLES)
def run(request, finished, tmp_path_factory):
    """Summary, decisions and typed rows of a run: on the fabricated table, or on a real one."""
    name, project = request.param, finished
    if name != "tiny":
        project = copy_project(tmp_path_factory.mktemp(name))
        fetched = project.kedro("countermove", "fetch", name) if name == "adult" else None
        if fetched is not None and fetched.returncode:
            pytest.skip(f"{name} cannot be fetched here: {fetched.stderr[-300:]}")
        outcome = project.run("--pipeline=serm", f"--params=dataset={name}")
        assert outcome.returncode == 0, outcome.stderr
    data = project.path / "data"
    described = (project.path / "conf/base/schemas" / f"{name}.yml").read_text()
    return SimpleNamespace(
        summary=json.loads((data / "08_reporting" / name / "summary.json").read_text()),
        decisions=pd.read_parquet(data / "07_model_output" / name / "decisions.parquet"),
        typed=pd.read_parquet(data / "02_intermediate" / name / "typed.parquet"),
        page=(data / "08_reporting" / name / "report.html").read_text(),
        schema=Schema.from_mapping(name, yaml.safe_load(described)),
    )


def prefix(run, rule):
    """Return how the columns of a rule begin in the decisions."""
    name = run.summary["best_simple"] if rule == "best_simple" else rule
    return "" if name == "strategic" else f"{name}."


def test_accuracies_and_their_intervals_are_those_of_the_decisions(run):
    label = run.decisions["label"] > 0
    for when, column in (("nobody_moves", "approved"), ("after_response", "approved_after")):
        found = run.summary["accuracy"][when]
        assert set(found) == {"strategic", "blind", "majority", "logistic", "best_simple"}
        for rule, estimate in found.items():
            decided = run.decisions[prefix(run, rule) + column] > 0.5
            right = accuracy_score(label, decided)
            assert estimate["value"] == pytest.approx(right)
            exact = binomtest(round(right * len(label)), len(label)).proportion_ci()
            assert (estimate["low"], estimate["high"]) == pytest.approx(tuple(exact))
            assert estimate["n"] == len(label)
    for rule, estimate in run.summary["auc"].items():
        area = roc_auc_score(label, run.decisions[prefix(run, rule) + "score_after"])
        assert estimate["value"] == pytest.approx(area)


def test_approval_is_counted_before_and_after_response(run):
    for key, column in (
        ("approval_rate", "approved_after"),
        ("approval_rate_nobody_moves", "approved"),
    ):
        assert run.summary[key]["value"] == pytest.approx(run.decisions[column].mean())


def test_the_published_decision_is_the_one_handed_out(run):
    assert ((run.decisions["decision"] > 0) == (run.decisions["approved"] > 0.5)).all()


def test_gains_are_paired_differences(run):
    label = run.decisions["label"] > 0
    own = (run.decisions["approved_after"] > 0.5) == label
    for rule, found in run.summary["differences"].items():
        other = (run.decisions[prefix(run, rule) + "approved_after"] > 0.5) == label
        gain = found["accuracy"]
        assert gain["value"] == pytest.approx(own.mean() - other.mean())
        assert gain["low"] <= gain["value"] <= gain["high"]
    assert run.summary["difference"] == run.summary["differences"]["best_simple"]["accuracy"]
    before = (run.decisions["before_promise.approved_after"] > 0.5) == label
    assert run.summary["promise"]["cost"]["value"] == pytest.approx(before.mean() - own.mean())


def test_groups_and_ratios_are_those_of_the_decisions(run):
    approved = run.decisions["approved_after"]
    for column, entries in run.summary["groups"].items():
        by_group = approved.groupby(run.decisions[f"group:{column}"].astype(str))
        by_value, largest = by_group.mean(), by_group.size().idxmax()
        for entry in entries:
            assert entry["approval"]["value"] == pytest.approx(by_value[entry["group"]])
            if entry["ratio"] is not None:
                assert entry["n"] >= 30
                ratio = by_value[entry["group"]] / by_value[largest]
                assert entry["ratio"]["value"] == pytest.approx(ratio)
            price = run.decisions["price"][
                (run.decisions[f"group:{column}"].astype(str) == entry["group"])
                & (run.decisions["label"] > 0)
                & np.isfinite(run.decisions["price"])
            ]
            assert entry["burden"]["n"] == len(price)
            if len(price):
                assert entry["burden"]["value"] == pytest.approx(price.clip(upper=2.0).mean())
            assert (entry["burden"]["low"] or 0.0) >= 0.0


INCOME = {"kind": "numeric", "change": "up", "unit": "EUR", "missing": "median"}
TOY = {"label": {"column": "y", "favourable": 1}, "features": {"income": INCOME}}
RUN = {
    "accuracy": {"after_response": {"strategic": 0.8, "blind": 0.7}, "sensitivity": {}},
    "response": {"kind": "best"},
    "rows": {"test": 400},
    "data_hash": "a",
    "versions": {"countermove": "0"},
    "seed": 0,
}
CALIBRATION = {
    "certificate": {"value": 0.05, "words": "", "reason": "", "level": 0.95, "n": 100}
    | {"assumptions": []},
    "terms": {"miss_rate": 0.05, "largest_loss": 0.02},
    "led_by": "promise",
}


def summarised(table, reference=None):
    """Return the summary of decisions; rules that the table lacks decide as the published one."""
    declared = (
        {} if reference is None else {"sensitive": [{"column": "race", "reference": reference}]}
    )
    schema = Schema.from_mapping("toy", TOY | declared)
    unit = Standardiser(np.zeros(2), np.ones(2), schema.feature_names)
    model = PublishedModel(LinearScore(2), unit, schema.digest(), {"probability_slope": 1.0})
    names = ("approved", "approved_after", "score_after")
    own = {"score_after": 0.0} | {name: table[name] for name in names if name in table}
    others = {
        f"{rule}.{name}": column
        for rule in ("blind", "majority", "before_promise")
        for name, column in own.items()
        if f"{rule}.{name}" not in table
    }
    return decision_summary(
        table.assign(**own, **others), model, schema, RUN, CALIBRATION, [], None
    )


def judged_groups(sizes, reference=None):
    """Return how groups compare: of each so many people, the last approved least."""
    table = pd.concat(
        pd.DataFrame({"group:race": name, "approved_after": np.arange(n) < rate * n})
        for name, n, rate in sizes
    ).assign(label=1, approved=1.0, price=0.0)
    return {one["group"]: one for one in summarised(table, reference)["groups"]["race"]}


def test_groups_are_compared_with_the_largest_not_with_a_lucky_few():
    sizes = [("lucky", 7, 1.0), ("most", 400, 0.6), ("others", 200, 0.54), ("few", 29, 0.2)]
    found = judged_groups(sizes)
    assert [name for name, one in found.items() if one["reference"]] == ["most"]
    assert found["others"]["ratio"]["value"] == pytest.approx(0.9)
    assert [found[name]["ratio"] for name in ("lucky", "most", "few")] == [None] * 3


def test_households_count_once_in_every_interval_of_the_summary():
    """Everybody four times, as one household each: as certain as everybody once, AUC aside."""
    rng = np.random.default_rng(0)
    alone = pd.DataFrame({"label": np.where(rng.random(300) < 0.6, 1, -1)})
    for rule in ("", "blind.", "majority."):
        alone[f"{rule}score_after"] = rng.normal(size=300)
        alone[f"{rule}approved_after"] = alone[f"{rule}score_after"] > 0.0
        alone[f"{rule}approved"] = alone[f"{rule}approved_after"]
    alone = alone.assign(price=rng.random(300), **{"group:sex": rng.choice(["f", "m"], 300)})
    alone["cluster:house"] = np.arange(300).astype(str)
    four = pd.concat([alone] * 4, ignore_index=True)
    one, all_four, by_rows = (
        summarised(table) for table in (alone, four, four.drop(columns="cluster:house"))
    )
    for path in (
        ("accuracy", "after_response", "strategic"),
        ("differences", "blind", "accuracy"),
        ("groups", "sex", 0, "approval"),
        ("groups", "sex", 1, "burden"),
    ):
        ends, widths = [], []
        for found in (one, all_four, by_rows):
            for key in path:
                found = found[key]
            ends.append((found["low"], found["high"]))
            widths.append(found["high"] - found["low"])
        assert ends[0] == pytest.approx(ends[1])
        assert widths[2] < 0.7 * widths[1]
    assert one["auc"]["strategic"]["low"] is None
    assert by_rows["auc"]["strategic"]["low"] is not None
    ratio = next(entry["ratio"] for entry in one["groups"]["sex"] if entry["ratio"])
    assert ratio["low"] < ratio["value"] < ratio["high"]


def test_groups_are_compared_with_the_one_that_the_schema_names():
    sizes = [("a", 400, 0.6), ("b", 200, 0.5)]
    found = judged_groups(sizes, "b")
    assert found["a"]["ratio"]["value"] == pytest.approx(1.2)
    assert found["b"]["ratio"] is None
    assert all(one["ratio"] is None for one in judged_groups(sizes, "c").values())


def test_outcomes_are_rates_among_the_approved_and_the_refused(run):
    favourable = run.decisions["label"] > 0
    approved = run.decisions["approved_after"] > 0.5
    assert run.summary["favourable_rate"]["approved"]["value"] == pytest.approx(
        favourable[approved].mean()
    )
    assert run.summary["favourable_rate"]["refused"]["value"] == pytest.approx(
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


def test_a_cell_without_a_value_has_points_and_not_points_per_unit():
    table = pd.DataFrame({"label": [1, -1], "approved": 1.0, "approved_after": 1.0, "price": 0.0})
    points = summarised(table)["rule"]["points"]
    units = {entry["column"]: entry["unit"] for entry in points}
    assert units == {"income": "EUR", "income=missing": None}


def test_columns_that_give_a_group_away_are_counted_again(run):
    """Adult's score reads sex and race as the papers' does; the other tables' scores do not."""
    claim = "The score reads no protected column"
    (line,) = (line for line in run.summary["verdict"] if line["claim"] == claim)
    read = [name for name in ("is_male", "is_white") if name in run.schema.feature_names]
    assert (line["state"] == "does not hold") == bool(read)
    assert all(name in line["words"] for name in read)


def test_the_page_opens_with_the_summary_and_folds_the_rest(run):
    assert run.summary["headline"].split("(")[0].strip() in html.unescape(run.page)
    for line in run.summary["verdict"]:
        assert f"{line['claim']}: {line['state']}." in html.unescape(run.page)
    assert run.page.index('id="summary"') < run.page.index('id="headline"')
    assert (
        '<section id="headline" aria-labelledby="headline-title"><details class="part">' in run.page
    )


def test_decisions_of_an_earlier_version_are_refused_with_the_way_out(run):
    old = run.decisions[["row_id", "decision", "probability", "status"]]
    with pytest.raises(DataError, match="kedro run --pipeline=recourse"):
        decision_summary(old, None, run.schema, {}, {}, [], None)


GAIN = {"value": 0.02, "low": 0.01, "high": 0.03, "n": 400}
OWN = {"value": 0.8, "low": 0.76, "high": 0.84, "n": 400}
COMPARED = {
    "best_simple": "logistic",
    "accuracy": {"after_response": {"strategic": OWN}},
    "difference": GAIN,
    "differences": {name: {"accuracy": GAIN} for name in ("blind", "majority", "best_simple")},
}
PROMISE = {
    "applicable": True,
    "reason": "",
    "asked": 0.95,
    "promised": 0.95,
    "led_by": "promise",
    "largest_loss": 0.02,
    "level": 0.95,
    "n": 300,
    "cost": {"value": 0.0, "low": -0.01, "high": 0.01, "n": 400},
}
SIMPLE_KEPT = {
    "kept": "logistic",
    "best_simple": "logistic",
    "sentence": "The best simple rule (logistic) is published: why.",
}
METRICS = {"choice": SIMPLE_KEPT, "accuracy": {}}


def group(name, n, value, low, high):
    return {"group": name, "n": n, "ratio": {"value": value, "low": low, "high": high}}


def states(groups, promise=PROMISE, metrics=METRICS, sheet=None):
    lines = verdicts(COMPARED, groups, promise, metrics, [], sheet)
    return {line["claim"]: (line["state"], line["words"]) for line in lines}


def test_one_group_below_four_fifths_fails_its_column_whatever_a_small_one_leaves_open():
    small, large = group("small", 55, 0.37, 0.11, 0.95), group("large", 596, 0.32, 0.20, 0.51)
    state, words = states({"race": [small, large]})["Four-fifths rule, by race"]
    assert state == "does not hold"
    assert "race: large" in words
    assert states({"race": [small]})["Four-fifths rule, by race"][0] == "not shown"


def test_columns_that_hold_name_the_lowest_ratio():
    held = {
        "a": [group("x", 90, 0.99, 0.85, 1.1)],
        "b": [group("y", 900, 0.92, 0.90, 0.95), {"group": "z", "n": 10, "ratio": None}],
    }
    state, words = states(held)["Four-fifths rule, by a, b"]
    assert (state, words) == ("holds", "lowest ratio 0.92 (0.90 to 0.95, n = 900) for b: y")


@pytest.mark.parametrize(
    ("protected", "sensitive", "state", "words"),
    [
        (
            {"is_male": {"sex": 0.99}, "race": {}},
            ["sex"],
            "does not hold",
            "it reads is_male, race",
        ),
        ({}, ["sex"], "holds", "no feature is or stands in for a sensitive one (n = 1,200)"),
        ({}, [], "not tested", "the schema declares none, and no feature is named like one"),
    ],
)
def test_the_summary_says_whether_the_score_reads_a_protected_column(
    protected, sensitive, state, words
):
    sheet = {"protected": protected, "sensitive": sensitive, "rows": 1200}
    claim = "The score reads no protected column"
    assert states({}, sheet=sheet)[claim] == (state, words)
    assert claim not in states({})


def test_a_promise_below_what_was_asked_does_not_hold():
    less = PROMISE | {"led_by": "performance", "promised": 0.513}
    state, words = states({}, less)["Recourse is promised to 95\u202f%"]
    assert state == "does not hold"
    assert "only to 51.3" in words
    assert "more would cost over 2 points" in words
    none = PROMISE | {"applicable": False, "reason": "too few rows"}
    assert states({}, none)["Recourse is promised to 95\u202f%"] == (
        "does not hold",
        "too few rows",
    )


def test_before_a_network_the_page_says_what_it_is_and_why_no_burden_is_known(run, bare):
    unknown = {"value": None, "low": None, "high": None, "n": 0}
    groups = {
        column: [entry | {"burden": unknown} for entry in found]
        for column, found in run.summary["groups"].items()
    }
    network = {"kind": "mlp", "threshold": 0.5, "points": None, "base": None}
    page = report_page(replace(bare, summary=run.summary | {"rule": network, "groups": groups}))
    assert "A network (kind mlp), which has no points per column" in page
    assert "before this rule the least cost has no closed form" in page
    assert "A scorecard" not in page
    assert "has no closed form" not in report_page(replace(bare, summary=run.summary))


def test_prices_at_which_the_comparison_turns_are_listed():
    rules = {
        rule: [
            {"scale": scale, "accuracy": right}
            for scale, right in zip((1, 2, 4, 8), found, strict=True)
        ]
        for rule, found in {"strategic": (0.9, 0.7, 0.7, 0.7), "blind": (0.8,) * 4}.items()
    }
    said = would_change(RUN, {"rules": rules, "rows": {"measured": 48}})[1]
    assert (
        "the comparison with the blind rule reverses at 2, 4 and 8 times the assumed one (n = 48)"
        in said
    )


def test_where_no_column_is_sensitive_groups_are_not_tested():
    assert states({})["Groups are approved alike"][0] == "not tested"


def test_the_first_sentence_says_when_training_brings_nothing_and_what_the_promise_costs():
    first = headline(COMPARED, PROMISE, METRICS, moved=True)
    assert first.startswith("The published rule is logistic regression at another threshold")
    assert "costs" not in first
    dear = PROMISE | {"cost": {"value": 0.022, "low": 0.009, "high": 0.035, "n": 400}}
    assert "The promise of recourse costs 2.2 points (0.9 to 3.5)" in headline(
        COMPARED, dear, METRICS, moved=True
    )
    assert headline(COMPARED, PROMISE, METRICS, moved=False).startswith(
        "The response changes no decision"
    )
    trained = {"choice": SIMPLE_KEPT | {"kept": "trained"}, "accuracy": {}}
    assert "trained for people who respond" in headline(COMPARED, PROMISE, trained, moved=True)
    line = states({}, metrics=trained)
    assert line["More often right than the best simple rule (logistic regression)"][0] == "holds"
