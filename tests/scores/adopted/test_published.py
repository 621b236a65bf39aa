"""Model files as rules of the chain: the same probabilities on its standardised rows."""

from __future__ import annotations

from pathlib import Path

import lightgbm
import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression

from countermove import adopt, save
from countermove.data.rows import feature_matrix, fit_standardiser
from countermove.data.schema import LABEL, Schema
from countermove.errors import ModelFileError
from countermove.scores.adopted import adopt_file
from countermove.scores.adopted.published import model_table
from countermove.scores.base import probability, values
from countermove.scores.storage import load_model, model_digest, save_model

SCHEMA = Schema.from_mapping(
    "loans",
    {
        "label": {"column": "repaid", "favourable": "yes"},
        "features": {
            "income": {"kind": "numeric", "change": "up"},
            "region": {
                "kind": "onehot",
                "change": "both",
                "categories": ["north", "south", "west"],
            },
            "loans": {"kind": "integer", "change": "down", "min": 0, "missing": "median"},
        },
    },
)
OWN = ["income", "region=north", "region=south", "region=west", "loans", "loans=missing"]


def people(n: int = 400) -> pd.DataFrame:
    rng = np.random.default_rng(3)
    table = pd.DataFrame(
        {
            "income": rng.gamma(4.0, 8e3, n),
            "region": rng.choice(["north", "south", "west"], n),
            "loans": np.where(rng.random(n) < 0.1, np.nan, rng.poisson(2.0, n)),
        }
    )
    merit = table["income"] / 1e4 - table["loans"].fillna(2) + (table["region"] == "west")
    label = np.where(merit + rng.logistic(size=n) > 2.0, 1.0, -1.0)
    return table.assign(row_id=[str(i) for i in range(n)], **{LABEL: label})


def read(path: Path, **options):
    table = people()
    unit = fit_standardiser(table, SCHEMA, divide_by_root_d=False)
    return adopt_file(path, table, SCHEMA, unit, 0, **options), table, unit


def chances(model, table, unit):
    return probability(values(model.score, unit.transform(feature_matrix(table, SCHEMA))))


@pytest.fixture
def saved(tmp_path):
    """LightGBM of the chain's columns in another order, and what it says itself."""
    table = people()
    frame = model_table(table, SCHEMA, fit_standardiser(table, SCHEMA, divide_by_root_d=False))
    own = frame[["loans", "region=west", "income"]].rename(columns={"region=west": "west"})
    fitted = lightgbm.LGBMClassifier(n_estimators=20, num_leaves=7, verbose=-1)
    fitted.fit(own, table[LABEL] > 0)
    fitted.booster_.save_model(tmp_path / "model.txt")
    return tmp_path / "model.txt", fitted.predict_proba(own)[:, 1]


def test_trees_of_some_columns_in_their_own_order_say_the_same(saved):
    path, theirs = saved
    model, table, unit = read(path, columns=["loans", "region=west", "income"])
    np.testing.assert_allclose(chances(model, table, unit), theirs, rtol=0, atol=1e-6)
    assert model.about["adopted"]["read_as"] == "trees"


def test_a_linear_pipeline_in_words_says_the_same(tmp_path):
    from sklearn.compose import make_column_transformer
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder, StandardScaler

    table = people()
    frame = model_table(table, SCHEMA, fit_standardiser(table, SCHEMA, divide_by_root_d=False))
    columns = make_column_transformer(
        (OneHotEncoder(), ["region"]), (StandardScaler(), ["loans", "income"])
    )
    fitted = make_pipeline(columns, LogisticRegression()).fit(frame, table[LABEL] > 0)
    # Fitted on the three columns alone: a model names what it reads.
    fitted.fit(frame[["income", "region", "loans"]], table[LABEL] > 0)
    save(adopt(fitted, frame[["income", "region", "loans"]]), tmp_path / "model")
    model, table, unit = read(tmp_path / "model")
    theirs = fitted.predict_proba(frame[["income", "region", "loans"]])[:, 1]
    np.testing.assert_allclose(chances(model, table, unit), theirs, rtol=0, atol=1e-6)
    assert model.about["adopted"]["read_as"] == "affine"
    assert model.score.n_features == len(OWN)


def test_columns_that_disagree_are_named_on_both_sides(saved):
    with pytest.raises(ModelFileError, match=r"'west'.*'region=north'.*audit\.columns"):
        read(saved[0])


def test_the_wrong_way_round_is_refused_with_the_way_out(saved):
    with pytest.raises(ModelFileError, match=r"wrong way round.*audit\.favourable"):
        read(saved[0], columns=["loans", "region=west", "income"], favourable=0)


def test_stored_trees_come_back_and_other_trees_have_another_digest(saved, tmp_path):
    model, table, unit = read(saved[0], columns=["loans", "region=west", "income"])
    save_model(model, tmp_path / "stored")
    again = load_model(tmp_path / "stored")
    np.testing.assert_array_equal(chances(again, table, unit), chances(model, table, unit))
    other, *_ = read(saved[0], columns=["loans", "region=south", "income"])
    assert model_digest(other) != model_digest(model)
