"""A table nobody has described: draft, check, run, and moves that keep its categories whole."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest
import yaml

from countermove.data.rows import rows_of
from countermove.data.schema import load_schema
from countermove.people import ActionSet, QuadraticCost


def applications(n: int = 600, seed: int = 0) -> pd.DataFrame:
    """Fabricated applications with words, expanded categories, and an outcome that follows them."""
    rng = np.random.default_rng(seed)
    table = pd.DataFrame({"applicant": [f"a{row}" for row in range(n)]})
    table["income"] = rng.normal(40, 10, n).clip(5).round(1)
    table["limit"] = rng.integers(1, 20, n) * 500
    table["level"] = rng.choice(["low", "medium", "high"], n)
    table["region"] = rng.choice(["north", "south", "west"], n)
    home = rng.integers(0, 3, n)
    for place, word in enumerate(("own", "rent", "free")):
        table[f"housing_{word}"] = (home == place).astype(int)
    table["gender"] = rng.choice(["f", "m"], n)
    merit = (table["income"] - 40) / 10 + table["level"].map({"low": -1, "medium": 0, "high": 1})
    merit += (home == 0) - (table["limit"] - 5000) / 5000
    table["repaid"] = np.where(merit + rng.logistic(0, 0.5, n) > 0, "yes", "no")
    return table


@pytest.fixture
def own(project):
    applications().to_csv(project.path / "loans 2024.csv", index=False)
    return project


def test_a_draft_never_replaces_a_schema_and_passes_the_check(own):
    first = own.kedro("countermove", "schema", "loans 2024.csv")
    assert first.returncode == 0, first.stderr
    schema = own.path / "conf/base/schemas/loans_2024.yml"
    assert "cp 'loans 2024.csv' data/01_raw/loans_2024.csv" in first.stdout
    assert "kedro countermove check loans_2024" in first.stdout
    schema.write_text(schema.read_text() + "# confirmed\n")
    again = own.kedro("countermove", "schema", "loans 2024.csv")
    assert again.returncode == 1
    assert "exists already" in again.stderr
    assert schema.read_text().endswith("# confirmed\n")
    assert not list(schema.parent.glob(".*"))
    (own.path / "loans 2024.csv").rename(own.path / "data/01_raw/loans_2024.csv")
    checked = own.kedro("countermove", "check", "loans_2024")
    assert checked.returncode == 0, checked.stdout + checked.stderr
    assert "one of housing" in checked.stdout
    assert "nobody can change anything" in checked.stdout
    assert "loans_2024: sound" in checked.stdout


def checked(own, **columns):
    """Draft a schema for the applications with other columns, and check the table against it."""
    applications().assign(**columns).to_csv(own.path / "data/01_raw/mine.csv", index=False)
    drafted = own.kedro("countermove", "schema", "data/01_raw/mine.csv")
    assert drafted.returncode == 0, drafted.stderr
    return own.kedro("countermove", "check", "mine")


def test_the_check_names_open_guesses_and_suspected_codes(own):
    late = np.random.default_rng(1).integers(0, 13, 600)
    late[::50] = 99
    debts = np.random.default_rng(2).integers(0, 900, 600)
    debts[3::40] = -1
    found = checked(own, late=late, debts=debts)
    assert found.returncode == 0, found.stdout + found.stderr
    warnings = [line for line in found.stdout.splitlines() if line.startswith("warning: ")]
    (open_,) = [line for line in warnings if "# TODO" in line]
    text = (own.path / "conf/base/schemas/mine.yml").read_text()
    assert f"{text.count('# TODO')} guesses" in open_
    for column in ("income", "limit", "level", "region", "late", "debts", "label", "gender"):
        assert column in open_
    (late_, debts_) = [line for line in warnings if "stands for no value" in line]
    assert "column 'late': 99 in 12 row(s)" in late_
    assert "missing_values: [99]" in late_
    assert "column 'debts': -1 in 15 row(s)" in debts_
    assert f"with {len(warnings)} warning(s)" in found.stdout
    path = own.path / "conf/base/schemas/mine.yml"
    path.write_text(
        "".join(line.partition("  # TODO")[0].rstrip() + "\n" for line in text.split("\n"))
    )
    assert "TODO" not in own.kedro("countermove", "check", "mine").stdout


@pytest.mark.parametrize("policy", ["median", "refuse"])
def test_the_check_of_a_table_whose_column_cannot_be_read_ends_in_a_sentence(own, policy):
    assert checked(own).returncode == 0
    path = own.path / "conf/base/schemas/mine.yml"
    content = yaml.safe_load(path.read_text())
    content["features"]["income"] |= {"missing": policy}
    content["quarantine"] = 0.99
    path.write_text(yaml.safe_dump(content))
    for cell in ("", "unreadable"):
        applications().assign(income=cell).to_csv(own.path / "data/01_raw/mine.csv", index=False)
        found = own.kedro("countermove", "check", "mine")
        assert found.returncode == 1
        assert "Traceback" not in found.stderr + found.stdout
        assert "IndexError" not in found.stderr + found.stdout
        assert "income" in found.stdout


@pytest.mark.slow
def test_a_draft_may_be_printed_forced_or_put_elsewhere(own):
    printed = own.kedro("countermove", "schema", "loans 2024.csv", "--output", "-")
    assert printed.stdout.startswith("# A draft from 600 rows")
    assert not (own.path / "conf/base/schemas/loans_2024.yml").exists()
    named = ["countermove", "schema", "loans 2024.csv", "--name", "mine", "--label", "gender"]
    for extra in ([], ["--force"]):
        assert own.kedro(*named, *extra).returncode == 0
    assert "column: gender" in (own.path / "conf/base/schemas/mine.yml").read_text()
    for bad, message in (
        (["nothing.csv"], "missing file"),
        (["loans 2024.csv", "--name", "../mine"], "does not make a dataset name"),
        (["loans 2024.csv", "--label", "repayed"], "did you mean 'repaid'"),
    ):
        outcome = own.kedro("countermove", "schema", *bad)
        assert outcome.returncode == 1
        assert message in outcome.stderr
        assert "Traceback" not in outcome.stderr


@pytest.mark.slow
def test_a_bad_table_is_reported_whole_and_fails_the_check(own):
    table = applications().astype({"income": object})
    assert own.kedro("countermove", "schema", "loans 2024.csv", "--name=mine").returncode == 0
    table.loc[3, "income"] = "plenty"
    table.loc[5, ["housing_own", "housing_rent", "housing_free"]] = 0
    table.loc[7, "repaid"] = "maybe"
    table.rename(columns={"limit": "limt"}).to_csv(own.path / "data/01_raw/mine.csv", index=False)
    outcome = own.kedro("countermove", "check", "mine")
    assert outcome.returncode == 1
    for fact in ("'limit'; did you mean 'limt'", "'plenty'", "row(s): 3", "'maybe'", "row(s): 5"):
        assert fact in outcome.stdout
    assert "group 'housing': not exactly one of" in outcome.stdout
    assert "Traceback" not in outcome.stderr


@pytest.mark.slow
def test_a_sensitive_column_that_would_be_a_reason_fails_the_check(own):
    assert own.kedro("countermove", "schema", "loans 2024.csv", "--name=mine").returncode == 0
    (own.path / "loans 2024.csv").rename(own.path / "data/01_raw/mine.csv")
    path = own.path / "conf/base/schemas/mine.yml"
    assert own.kedro("countermove", "check", "mine").returncode == 0
    said = yaml.safe_load(path.read_text())
    said["sensitive"] = [*said.get("sensitive", []), "income"]
    path.write_text(yaml.safe_dump(said))
    outcome = own.kedro("countermove", "check", "mine")
    assert outcome.returncode == 1
    assert "column 'income' is declared sensitive and is a main reason for" in outcome.stdout


@pytest.mark.slow
def test_moves_keep_categories_whole_from_draft_to_decisions(own):
    assert own.kedro("countermove", "schema", "loans 2024.csv", "--name=mine").returncode == 0
    path = own.path / "conf/base/schemas/mine.yml"
    text = path.read_text()
    lines = [
        line.replace("change: immutable", "change: up")
        if line.startswith(("  income:", "  level:"))
        else line.replace("change: immutable", "change: both")
        for line in text.splitlines()
    ]
    path.write_text("\n".join(lines).replace("max: 10000}", "max: 10000, step: 500}") + "\n")
    (own.path / "loans 2024.csv").rename(own.path / "data/01_raw/mine.csv")
    outcome = own.run("--pipeline=serm", "--params=dataset=mine")
    assert outcome.returncode == 0, outcome.stderr
    decisions = pd.read_parquet(own.path / "data/07_model_output/mine/decisions.parquet")
    assert decisions["status"].isin(["FOUND", "BEYOND_REACH", "PROVEN_NONE", "NOT_NEEDED"]).all()
    assert json.loads((own.path / "data/08_reporting/mine/metrics.json").read_text())["accuracy"]
    check_moves(own, load_schema("mine", path.parent))


def check_moves(project, schema) -> None:
    """Every response to the published rule keeps groups one-hot and ordered words in order."""
    from countermove.response import BestResponse, ScalarResponse
    from countermove.scores.storage import load_model

    (folder,) = (project.path / "data/06_models/mine/strategic").glob("*/strategic")
    model = load_model(folder, schema)
    frame = pd.read_parquet(project.path / "data/05_model_input/mine/test.parquet")
    X = rows_of(frame, schema).X
    actions = ActionSet.from_schema(schema, model.standardiser)
    assert len(actions.groups) == 2
    names = list(schema.feature_names)
    assert actions.steps == {names.index("limit"): 500.0}
    cost = QuadraticCost(0.2)
    for response in (
        BestResponse(cost, actions),
        ScalarResponse(cost, actions, temperature=0.5),
        ScalarResponse(cost, actions, temperature=0.5, start="stay", normalised=False),
    ):
        answer = response.respond(model.rule, X)
        assert answer.moved.any()
        for group in actions.groups:
            np.testing.assert_array_equal(answer.x_new[:, group], X[:, group])
            bits = model.standardiser.inverse(answer.x_new)[:, list(group)]
            np.testing.assert_allclose(bits.sum(axis=1), 1.0, atol=1e-9)
        level = names.index("level")
        after = model.standardiser.inverse(answer.x_new)[:, level]
        assert (after >= model.standardiser.inverse(X)[:, level] - 1e-9).all()
        assert (after <= 2 + 1e-9).all()


@pytest.mark.slow
@pytest.mark.parametrize("pipeline", ["serm", "retrain"])
def test_rows_of_one_house_make_every_promise_one_to_houses(project, pipeline):
    """`group_by:` is all a user writes; certificates, audit and page say what is counted."""
    table, raw = applications(4000), project.path / "data/01_raw/mine.csv"
    table.to_csv(raw, index=False)
    assert project.kedro("countermove", "schema", str(raw)).returncode == 0
    path = project.path / "conf/base/schemas/mine.yml"
    text = path.read_text().replace("change: immutable", "change: both")
    path.write_text(f"{text}\ngroup_by: house\n")
    houses = np.random.default_rng(1).integers(0, 2500, 4000)
    table.assign(house=[f"h{house}" for house in houses]).to_csv(raw, index=False)
    outcome = project.run(f"--pipeline={pipeline}", "--params=dataset=mine")
    assert outcome.returncode == 0, outcome.stderr
    if pipeline == "retrain":
        (version,) = (project.path / "data/06_models/mine").rglob("version.json")
        claims = json.loads(version.read_text())["certificates"]
    else:
        folder = project.path / "data/08_reporting/mine"
        audit = json.loads((folder / "recourse_audit.json").read_text())
        assert audit["clusters"]["column"] == "house"
        assert "belong together: shares have no interval" in audit["clusters"]["words"]
        assert audit["recourse"]["recourse_neg"]["value"] is not None
        assert audit["recourse"]["recourse_neg"]["high"] is None
        decisions = pd.read_parquet(project.path / "data/07_model_output/mine/decisions.parquet")
        assert decisions["cluster:house"].str.startswith("h").all()
        summary = json.loads((folder / "summary.json").read_text())
        assert summary["auc"]["strategic"]["low"] is None
        transfer = json.loads((folder / "transfer_report.json").read_text())
        assert all("clusters (" in one["assumptions"][0]["statement"] for one in transfer["bounds"])
        claims = json.loads((folder / "certificates.json").read_text())
        (error,) = (claim for claim in claims if claim["name"] == "error_after_response")
        assert "rows of one cluster need not be" in error["assumptions"][0]["statement"]
        claims = [claim for claim in claims if claim["name"] != "error_after_response"]
        assert audit["cost_promise"] in claims
        page = (folder / "report.html").read_text()
        assert "counting at most 5 rows of a cluster" in page
        assert "have recourse costing at most" in page
    for claim in claims:
        assert "rows of a cluster, drawn at random" in claim["assumptions"][0]["statement"]
