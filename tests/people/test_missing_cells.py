"""A cell that somebody lacks is nothing they can move from."""

import numpy as np
import pandas as pd
import pytest
import torch

from countermove.data.cleaning import clean
from countermove.data.rows import fit_standardiser, rows_of, standardised_table
from countermove.data.schema import Schema
from countermove.people import ActionSet, QuadraticCost
from countermove.people.feasible import feasible_actions
from countermove.recourse import recommend
from countermove.response import BestResponse, ScalarResponse
from countermove.scores.linear import LinearScore

MAPPING = {
    "label": {"column": "paid", "favourable": 1},
    "features": {
        "income": {"kind": "numeric", "change": "up", "missing": "median", "range": "declared"},
        "savings": {"kind": "numeric", "change": "both", "range": "declared"},
        "job": {
            "kind": "onehot",
            "change": "both",
            "categories": ["clerk", "nurse"],
            "missing": "own level",
        },
    },
    "relations": ["savings <= income"],
}


@pytest.fixture(scope="module")
def office():
    random = np.random.default_rng(0)
    n = 300
    raw = pd.DataFrame(
        {
            "income": random.normal(50, 5, n),
            "savings": random.normal(10, 3, n),
            "job": random.choice(["clerk", "nurse"], n),
            "paid": random.integers(0, 2, n),
        }
    )
    raw.loc[:49, "income"] = np.nan
    raw.loc[25:74, "job"] = None
    schema = Schema.from_mapping("people", MAPPING)
    table = clean(raw, schema)
    unit = fit_standardiser(table, schema, divide_by_root_d=False)
    X = rows_of(standardised_table(table, schema, unit), schema).X
    score = LinearScore(X.shape[1])
    with torch.no_grad():
        score.weight.copy_(torch.ones(X.shape[1]) * 0.5)
        score.bias.fill_(-1.5)
    return schema, unit, X, score, ActionSet.from_schema(schema, unit)


LACK_INCOME, LACK_JOB = np.arange(300) < 50, (np.arange(300) >= 25) & (np.arange(300) < 75)


def test_their_columns_are_held_and_nobody_elses(office):
    schema, _, X, _, actions = office
    place = {name: j for j, name in enumerate(schema.feature_names)}
    low, high = actions.box(X)
    still = (low == 0.0) & (high == 0.0)
    assert still[LACK_INCOME, place["income"]].all()
    assert not still[~LACK_INCOME, place["income"]].any()
    assert still[np.ix_(LACK_JOB, [place["job=clerk"], place["job=nurse"]])].all()
    assert still[:, [place["income=missing"], place["job=missing"]]].all()
    allowed = feasible_actions(actions, X).listed[0].allowed
    assert (allowed[LACK_JOB].sum(axis=1) == 1).all()
    assert (allowed[~LACK_JOB].sum(axis=1) == 2).all()


@pytest.mark.parametrize("kind", [BestResponse, ScalarResponse])
def test_responses_know_it(office, kind):
    schema, _, X, score, actions = office
    moved = kind(QuadraticCost(0.05), actions).respond(score, X).x_new - X
    place = schema.feature_names.index("income")
    assert (moved[LACK_INCOME, place] == 0.0).all()
    assert (moved[~LACK_INCOME, place] > 0.0).any()
    one = kind(QuadraticCost(0.05), actions).respond(score, X[60:61]).x_new - X[60:61]
    np.testing.assert_allclose(one, moved[60:61], atol=1e-9)


@pytest.mark.parametrize("method", ["linear_program", "integer_program", "gradient"])
def test_recourse_knows_it(office, method):
    schema, _, X, score, actions = office
    advice = recommend(score, X, method, 0.5, actions, QuadraticCost(1.0))
    found = advice.status == "FOUND"
    place = schema.feature_names.index("income")
    assert found[LACK_INCOME].any()
    assert (np.nan_to_num(advice.action[LACK_INCOME, place]) == 0.0).all()
    assert actions.contains(X[found], advice.action[found]).all()


def test_a_relation_with_a_missing_cell_is_not_judged(office):
    schema, unit, X, _, actions = office
    place = schema.feature_names.index("savings")
    action = np.zeros_like(X)
    action[:, place] = 100.0 / unit.scale[place]  # more than anybody's income
    allowed = actions.contains(X, action)
    assert allowed[LACK_INCOME].all()
    assert not allowed[~LACK_INCOME].any()


def test_the_description_keeps_it(office):
    _, _, X, _, actions = office
    again = ActionSet(**actions.describe())
    np.testing.assert_array_equal(again.box(X)[1], actions.box(X)[1])
    plain = ActionSet(lower=[-1.0, -1.0])
    assert "missing" not in plain.describe()
