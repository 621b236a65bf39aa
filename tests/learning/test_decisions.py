"""What rules decide about people, as the report and anybody else counts it."""

import numpy as np
import pandas as pd
import pytest
import torch

from countermove.data.schema import Schema
from countermove.data.standardise import Standardiser
from countermove.learning.decisions import judged_decisions
from countermove.learning.evaluation import stated_accuracy
from countermove.people import QuadraticCost
from countermove.response import BestResponse, NoResponse, Population, RobustResponse
from countermove.scores import LinearScore
from countermove.scores.storage import PublishedModel

FEATURES = ("a", "b")
SCHEMA = Schema.from_mapping(
    "made-up",
    {
        "label": {"column": "good", "favourable": 1},
        "features": {name: {"kind": "numeric", "change": "both"} for name in FEATURES},
        "sensitive": ["who"],
        "source": "file",
    },
)
BEST = BestResponse(QuadraticCost(2.0))


def model(bias, **about):
    score = LinearScore(2)
    state = {"weight": torch.tensor([1.0, -0.5]), "bias": torch.tensor(bias)}
    score.load_state_dict({key: value.double() for key, value in state.items()})
    standardiser = Standardiser(np.zeros(2), np.ones(2), FEATURES)
    return PublishedModel(score, standardiser, SCHEMA.digest(), about)


def people(n, seed):
    rng = np.random.default_rng(seed)
    y = np.where(rng.random(n) < 0.6, 1.0, -1.0)
    table = pd.DataFrame(rng.normal(size=(n, 2)) + 0.6 * y[:, None], columns=list(FEATURES))
    groups = {"group:who": rng.choice(["m", "f"], n)}
    return table.assign(row_id=[f"p{i}" for i in range(n)], label=y, **groups)


BLIND, PUBLISHED = model(0.2), model(-1.0)
TRAINED = model(
    -0.9, choice={"rules": {"logistic": {"weight": [1.0, -0.4], "intercept": -0.8}, "trained": {}}}
)


def judged(response):
    return judged_decisions(
        BLIND, PUBLISHED, TRAINED, people(300, 0), people(200, 1), SCHEMA, response
    )


@pytest.mark.parametrize(
    "response",
    [
        NoResponse(),
        BEST,
        Population(BEST, never=0.3),
        RobustResponse([BEST, NoResponse()]),
        RobustResponse([BEST, NoResponse()], [0.25, 0.75]),
    ],
    ids=["none", "best", "people who differ", "worst of two", "shares known"],
)
def test_accuracies_of_the_decisions_are_those_of_the_report(response):
    found, table = judged(response), people(300, 0)
    X, y = table[list(FEATURES)].to_numpy(), table["label"].to_numpy()
    for prefix, rule in (("", PUBLISHED), ("blind.", BLIND), ("before_promise.", TRAINED)):
        chance = found[f"{prefix}approved_after"].to_numpy()
        right = np.where(y > 0, chance, 1.0 - chance).mean()
        assert right == pytest.approx(stated_accuracy(rule.rule, X, y, response), abs=1e-12)


def test_scores_after_response_agree_with_decisions_and_movers_stop_on_the_threshold():
    found = judged(BEST)
    assert ((found["score_after"] >= 0) == (found["approved_after"] > 0.5)).all()
    moved = (found["approved"] == 0) & (found["approved_after"] > 0)
    assert moved.any()
    assert (found.loc[moved, "score_after"] == 0.0).all()
    paid = found.loc[moved, "price"]
    assert (paid > 0).all()
    assert (paid <= 2.0 + 1e-9).all()  # approval is worth no more


def test_people_who_differ_have_no_one_score():
    assert judged(Population(BEST, never=0.3))["score_after"].isna().all()


def test_baselines_are_the_training_majority_and_the_linear_rules_of_the_choice():
    found = judged(BEST)
    assert (found["majority.approved_after"] == 1.0).all()
    assert "logistic.approved" in found
    assert not any(str(name).startswith("trained.") for name in found)
    assert set(found["group:who"]) == {"m", "f"}


def test_decisions_say_whose_rows_belong_together():
    table = people(200, 1).assign(**{"cluster:house": np.repeat(np.arange(40), 5).astype(str)})
    schema = Schema.from_mapping("made-up", SCHEMA.to_mapping() | {"group_by": "house"})
    found = judged_decisions(BLIND, PUBLISHED, TRAINED, table, people(300, 0), schema, BEST)
    assert found["cluster:house"].tolist() == table["cluster:house"].tolist()
    assert not any(str(name).startswith("cluster:") for name in judged(BEST))
