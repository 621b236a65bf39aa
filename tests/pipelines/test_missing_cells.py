"""A table with missing cells, from the raw file to letters."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest

from countermove.data.rows import coded_features
from countermove.data.schema import load_schema
from countermove.data.synthetic import fabricate
from countermove.scores.base import values
from countermove.scores.storage import load_model

POLICIES = {
    "income: {kind: numeric,": "income: {kind: numeric, missing: median, supply: true,",
    "education: {kind: ordered,": "education: {kind: ordered, missing: mode,",
    "open_loans: {kind: integer,": "open_loans: {kind: integer, missing: 3, supply: 0.4,",
}
PRICES = {"income": 0.01, "open_loans": 0.4}


def with_policies(project):
    schema = project.path / "conf" / "base" / "schemas" / "tiny.yml"
    text = schema.read_text()
    for before, after in POLICIES.items():
        assert before in text
        text = text.replace(before, after)
    schema.write_text(text)


def with_gaps(table, seed=0):
    random = np.random.default_rng(seed)
    for column in ("income", "education", "open_loans"):
        table[column] = table[column].where(random.random(len(table)) > 0.15)
    return table


def check_supplied(project, advice, typed):
    """Check, from files alone, that advice moves only what people have or supply, and its price."""
    data = project.path / "data"
    unit = json.loads((data / "04_feature/tiny/standardiser.json").read_text())
    place = {name: j for j, name in enumerate(unit["names"])}
    acts = advice[advice["status"].isin(["FOUND", "BEYOND_REACH"])]
    assert "change:education=missing" not in acts
    assert (acts.loc[typed.loc[acts.index, "education"].isna(), "change:education"] == 0.0).all()
    told = {}
    for name in PRICES:
        lacks = typed.loc[acts.index, name].isna()
        told[name] = acts[f"change:{name}=missing"] == -1.0
        assert (told[name] | (acts[f"change:{name}=missing"] == 0.0)).all()
        assert lacks[told[name]].all()  # nobody moves into missing, or supplies what is there
        assert (acts.loc[lacks & ~told[name], f"change:{name}"] == 0.0).all()
        assert (acts.loc[told[name], "cost"] >= PRICES[name] - 1e-9).all()
        said = f"upply your {name}, which we do not have"
        assert acts["words"].str.contains(said).equals(told[name])
    assert told["income"].any()
    weights = dict.fromkeys(unit["names"], 1.0)
    weights |= {f"{n}=missing": p * unit["scale"][place[f"{n}=missing"]] ** 2
                for n, p in PRICES.items()}  # fmt: skip
    price = sum(
        weights[name] * (acts[f"change:{name}"] / unit["scale"][place[name]]) ** 2
        for name in unit["names"]
        if f"change:{name}" in acts
    )
    np.testing.assert_allclose(acts["cost"], price, rtol=1e-6)
    model = load_model(next(data.glob("06_models/tiny/recourse/*/recourse")))
    x = model.standardiser.inverse(
        model.standardiser.transform(
            coded_features(typed.loc[acts.index].reset_index(), load_schema_of(project))
        )
    )
    for name in place:
        x[:, place[name]] += acts.get(f"change:{name}", 0.0)
    assert (values(model.rule, model.standardiser.transform(x)) >= -1e-9).all()


def load_schema_of(project):
    return load_schema("tiny", project.path / "conf" / "base" / "schemas")


@pytest.mark.slow
def test_missing_cells_are_filled_by_policy_and_supplied_where_people_can(project):
    with_policies(project)
    with_gaps(fabricate("tiny", 600)).to_csv(project.path / "data/01_raw/tiny.csv", index=False)
    done = project.run("--pipeline=serm", "--env=test")
    assert done.returncode == 0, done.stderr
    data = project.path / "data"
    unit = json.loads((data / "04_feature/tiny/standardiser.json").read_text())
    assert "income=missing" in unit["names"]
    assert json.loads((data / "02_intermediate/tiny/intake.json").read_text())["set_aside"] == 0
    advice = pd.read_parquet(data / "07_model_output/tiny/advice.parquet").set_index("row_id")
    typed = pd.read_parquet(data / "02_intermediate/tiny/typed.parquet").set_index("row_id")
    check_supplied(project, advice, typed)
    lacking = typed.loc[advice.index, "income"].isna() & (advice["decision"] < 0)
    assert lacking.any()
    assert advice.loc[lacking, "words"].str.contains("e do not have").all()
    assert advice.loc[lacking, "supply"].str.contains("income").all()
    assert not advice.loc[~lacking, "supply"].str.contains("income").any()
    audit = json.loads((data / "08_reporting/tiny/recourse_audit.json").read_text())
    assert audit["recourse"]["broken_claims"] == []
    people = data / "01_raw/batches/tiny"
    people.mkdir(parents=True)
    project.bring_batch("b1", 60)
    first = with_gaps(pd.read_csv(people / "b1.csv"), 1)
    first.to_csv(people / "b1.csv", index=False)
    retrained = project.retrain()
    assert retrained.returncode in (0, 3), retrained.stderr
    facts = json.loads((data / "02_intermediate/tiny/batch_facts.json").read_text())
    assert facts["b1"]["used"] == 60
    applicants = with_gaps(fabricate("tiny", 90, seed=8).drop(columns="repaid"), 2)
    (data / "01_raw/applicants/tiny").mkdir(parents=True)
    applicants.to_csv(data / "01_raw/applicants/tiny/a.csv", index=False)
    scored = project.run("--pipeline=score", "--env=test", "--params", "score.batch=a")
    assert scored.returncode == 0, scored.stderr
    found = pd.concat(
        pd.read_parquet(path) for path in (data / "07_model_output/tiny/scored/a").glob("part*")
    )
    assert len(found) == 90
    gone = applicants["income"].isna().to_numpy() & (found["change:income=missing"] == 0).to_numpy()
    assert (found.loc[gone, "change:income"].fillna(0.0) == 0.0).all()
