"""The calibrated rule keeps its promise on people it has not seen."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import torch

from countermove.data.rows import rows_of
from countermove.data.schema import Schema
from countermove.data.standardise import Standardiser
from countermove.people import ActionSet
from countermove.recourse import largest_gain
from countermove.recourse.calibrated import calibrate_model, decisions
from countermove.scores import LinearScore
from countermove.scores.storage import PublishedModel

SCHEMA = Schema.from_mapping(
    "toy",
    {
        "label": {"column": "y", "favourable": 1},
        "features": {
            "a": {"kind": "numeric", "change": "both"},
            "b": {"kind": "numeric", "change": "immutable"},
        },
    },
)
ACTIONS = ActionSet(immutable=[1])
LEVELS = {"threshold": 0.5, "largest_action": 0.5, "miss_rate": 0.1, "failure_probability": 0.1}


def rows(n: int, seed: int) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2))
    return pd.DataFrame(
        {"row_id": [f"p{i}" for i in range(n)], "label": 1.0, "a": X[:, 0], "b": X[:, 1]}
    )


@pytest.fixture
def model() -> PublishedModel:
    score = LinearScore(2)
    with torch.no_grad():
        score.weight.copy_(torch.tensor([1.0, 2.0], dtype=torch.float64))
        score.bias.fill_(-2.0)
    unit = Standardiser(np.zeros(2), np.ones(2), ("a", "b"))
    return PublishedModel(score, unit, SCHEMA.digest(), {"threshold": 0.5})


@pytest.mark.validity
@pytest.mark.quick_validity
def test_promise_holds_on_fresh_people(model):
    """At most a tenth of fresh people lack a way, in all but a tenth of calibrations."""
    fresh = rows_of(rows(20_000, seed=10_000), SCHEMA).X
    broken = 0
    for seed in range(200):
        rule, _ = calibrate_model(model, rows(150, seed), SCHEMA, ACTIONS, **LEVELS)
        with torch.no_grad():
            scores = rule.score(torch.from_numpy(fresh)).numpy()
        without = np.mean(scores + largest_gain(rule.score, ACTIONS, fresh, 0.5) < 0.0)
        broken += without > 0.1
    # 20 expected at the level; 33 is the 99.9 % quantile of Binomial(200, 0.1).
    assert broken <= 33


def test_threshold_is_lowered_never_raised(model):
    rule, facts = calibrate_model(model, rows(150, 0), SCHEMA, ACTIONS, **LEVELS)
    assert facts["threshold"] == facts["bound"] < 0.5
    assert rule.about["threshold"] == facts["threshold"]
    easy, facts = calibrate_model(
        model, rows(150, 0), SCHEMA, ACTIONS, **(LEVELS | {"largest_action": None})
    )
    assert facts["threshold"] == 0.5
    assert torch.equal(easy.score.bias, model.score.bias)


def test_decisions_agree_with_probability_and_reach(model):
    rule, facts = calibrate_model(model, rows(150, 0), SCHEMA, ACTIONS, **LEVELS)
    told = decisions(rule, rows(500, 1), SCHEMA, ACTIONS, 0.5)
    favourable = told["decision"] == 1
    assert (favourable == (told["probability"] >= facts["threshold"])).all()
    assert (told.loc[favourable, "status"] == "NOT_NEEDED").all()
    refused = told.loc[~favourable]
    near = rows(500, 1).loc[~favourable, "a"] + 0.5 + 2 * rows(500, 1).loc[~favourable, "b"]
    reaches = near + float(rule.score.bias.detach()) >= 0
    assert (refused["status"].eq("FOUND") == reaches).all()
    assert set(told["status"]) == {"NOT_NEEDED", "FOUND", "PROVEN_NONE"}
