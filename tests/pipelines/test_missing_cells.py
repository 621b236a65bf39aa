"""A table with missing cells, from the raw file to letters."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest

from countermove.data.synthetic import fabricate

POLICIES = {
    "income: {kind: numeric,": "income: {kind: numeric, missing: median, supply: true,",
    "education: {kind: ordered,": "education: {kind: ordered, missing: mode,",
}


def with_policies(project):
    schema = project.path / "conf" / "base" / "schemas" / "tiny.yml"
    text = schema.read_text()
    for before, after in POLICIES.items():
        assert before in text
        text = text.replace(before, after)
    schema.write_text(text)


def with_gaps(table, seed=0):
    random = np.random.default_rng(seed)
    for column in ("income", "education"):
        table[column] = table[column].where(random.random(len(table)) > 0.15)
    return table


@pytest.mark.slow
def test_missing_cells_are_filled_by_policy_and_advice_leaves_them_alone(project):
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
    lacking = typed.loc[advice.index, "income"].isna() & (advice["decision"] < 0)
    assert lacking.any()
    assert (advice.loc[lacking, "change:income"].fillna(0.0) == 0.0).all()
    assert advice.loc[lacking, "words"].str.contains("We do not have your income: supply it").all()
    assert (advice.loc[lacking, "supply"] == "income").all()
    assert (advice.loc[~lacking, "supply"] == "").all()
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
    gone = applicants["income"].isna().to_numpy() & (found["decision"] < 0).to_numpy()
    assert (found.loc[gone, "change:income"].fillna(0.0) == 0.0).all()
