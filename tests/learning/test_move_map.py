"""The map shows decisions as they are, and its numbers are those of the response."""

import json

import numpy as np
import pandas as pd
import pytest
import torch

from countermove.data.schema import Schema
from countermove.data.standardise import Standardiser
from countermove.learning.evaluation import accuracy_after
from countermove.learning.move_map import SCALES, move_map, projection
from countermove.people import ActionSet, QuadraticCost
from countermove.response import (
    AscentResponse,
    BestResponse,
    Population,
    RobustResponse,
    ScalarResponse,
)
from countermove.scores import LinearScore, MLPScore
from countermove.scores.storage import PublishedModel

FEATURES = ("a", "b", "c")
SCHEMA = Schema.from_mapping(
    "made-up",
    {
        "label": {"column": "good", "favourable": 1},
        "features": {name: {"kind": "numeric", "change": "both"} for name in FEATURES},
        "source": "file",
    },
)


def linear(weights, bias):
    score = LinearScore(3)
    tensors = {"weight": weights, "bias": bias}
    state = {key: torch.tensor(value, dtype=torch.float64) for key, value in tensors.items()}
    score.load_state_dict(state)
    return score


def model(score):
    return PublishedModel(score, Standardiser(np.zeros(3), np.ones(3), FEATURES), SCHEMA.digest())


def people(n=600):
    rng = np.random.default_rng(0)
    y = np.where(rng.random(n) < 0.5, 1.0, -1.0)
    X = rng.normal(size=(n, 3)) + 0.7 * y[:, None]
    who = pd.DataFrame({"row_id": [f"p{i}" for i in range(n)], "label": y})
    return pd.concat([who, pd.DataFrame(X, columns=list(FEATURES))], axis=1), X, y


STRATEGIC, BLIND = linear([1.0, 0.5, -0.2], -1.1), linear([0.4, 1.0, 0.3], 0.2)
ANSWER = BestResponse(QuadraticCost(0.8), ActionSet(immutable=[2]))


def drawn(response=ANSWER, seed=0, blind=BLIND):
    table, X, y = people()
    return move_map(model(blind), model(STRATEGIC), table, SCHEMA, response, seed), X, y


def test_at_scale_one_the_numbers_are_those_of_the_stated_response():
    facts, X, y = drawn()
    at = SCALES.index(1.0)
    for name, score in (("strategic", STRATEGIC), ("blind", BLIND)):
        entry, found = facts["rules"][name][at], accuracy_after(score, X, y, ANSWER)
        assert (entry["accuracy"], entry["approved"]) == (found.accuracy, found.accepted)
        responses = ANSWER.respond(score, X)
        assert entry["share_moved"] == responses.moved.mean()
        assert entry["mean_cost"] == pytest.approx(responses.cost[responses.moved].mean())


def test_nobody_stands_on_the_wrong_side_of_a_boundary():
    facts, X, _ = drawn()
    who = [int(name[1:]) for name in facts["people"]["row_id"]]
    for name, score in (("strategic", STRATEGIC), ("blind", BLIND)):
        a, b, c = facts["boundaries"][name]
        side = a * np.array(facts["people"]["x"]) + b * np.array(facts["people"]["y"]) + c
        with torch.no_grad():
            real = score(torch.from_numpy(X[who])).numpy()
        clear = np.abs(real) > 1e-3
        assert (np.sign(side) == np.sign(real))[clear].all()
        assert clear.sum() > 200


def test_movers_of_a_rational_crowd_end_at_the_boundary_of_the_rule_they_respond_to():
    facts, *_ = drawn()
    for name in ("strategic", "blind"):
        a, b, c = facts["boundaries"][name]
        entry = facts["rules"][name][SCALES.index(1.0)]
        ends = a * np.array(entry["x"]) + b * np.array(entry["y"]) + c
        assert len(entry["who"]) > 20
        assert np.abs(ends).max() < 1e-3


def test_dearer_moves_are_made_by_fewer():
    facts, *_ = drawn()
    for entries in facts["rules"].values():
        shares = [entry["share_moved"] for entry in entries]
        assert shares == sorted(shares, reverse=True)
        assert shares[0] > shares[-1]


def test_the_seed_decides_who_is_drawn_and_nothing_else():
    first, again, other = drawn()[0], drawn()[0], drawn(seed=1)[0]
    assert json.dumps(first, allow_nan=False) == json.dumps(again)
    assert first["people"]["row_id"] != other["people"]["row_id"]
    numbers = ("share_moved", "mean_cost", "accuracy")
    for rule in ("strategic", "blind"):
        for one, two in zip(first["rules"][rule], other["rules"][rule], strict=True):
            assert [one[key] for key in numbers] == [two[key] for key in numbers]


def test_parallel_rules_are_drawn_across_where_people_differ_most():
    X = people()[1] * [1.0, 1.0, 9.0]
    found = projection(linear([1.0, 0.0, 0.0], -1.0), linear([2.0, 0.0, 0.0], 1.0), X)
    assert found.kind == "parallel"
    assert found.boundaries["blind"] == (2.0, 0.0, pytest.approx(3.0))
    assert found.place(np.array([[1.5, 0.0, 0.0]]))[0, 0] == pytest.approx(0.5)
    apart = found.place(np.array([[0.0, 0.0, 0.0], [0.0, 0.0, 1.0]]))
    assert apart[1, 1] - apart[0, 1] == pytest.approx(1.0, abs=0.01)


def test_other_scores_are_their_own_axes():
    network = MLPScore(3, (4,))
    X = people()[1][:20]
    found = projection(network, BLIND, X)
    assert found.kind == "scores"
    with torch.no_grad():
        scores = [score(torch.from_numpy(X)).numpy() for score in (network, BLIND)]
    assert found.place(X) == pytest.approx(np.stack(scores, axis=1))


def test_a_score_at_another_bar_is_no_second_axis():
    network = MLPScore(3, (4,))
    raised = network.at_threshold(0.7)
    X = people()[1]
    found = projection(raised, network, X)
    assert found.kind == "shifted"
    slope, across, offset = found.boundaries["blind"]
    assert (slope, across, offset) == pytest.approx((1.0, 0.0, np.log(0.7 / 0.3)))
    assert np.ptp(found.place(X)[:, 1]) > 1.0


def test_slow_responses_are_measured_on_the_people_drawn_alone():
    table, *_ = people(90)
    network = MLPScore(3, (4,))
    climbing = AscentResponse(QuadraticCost(1.0), random_starts=0)
    facts = move_map(model(BLIND), model(network), table, SCHEMA, climbing, 0)
    assert facts["rows"] == {"test": 90, "measured": 60, "shown": 60}
    assert facts["projection"] == "scores"


def test_people_who_differ_are_drawn_one_type_per_row_and_counted_by_chance():
    differ = Population(ANSWER, never=0.3, log_sd=0.5)
    facts, *_ = drawn(differ)
    assert facts["response"] == "population"
    X, y = people()[1:3]
    for entry in facts["rules"]["strategic"]:
        at = differ.with_price(entry["scale"])
        chance = at.chance_after(STRATEGIC, X)
        assert entry["approved"] == pytest.approx(chance.mean())
        right = np.where(y > 0, chance, 1.0 - chance)
        assert entry["accuracy"] == pytest.approx(right.mean())
        assert entry["share_moved"] == at.respond(STRATEGIC, X).moved.mean()


def test_of_several_assumed_responses_the_first_is_drawn():
    smooth = ScalarResponse(QuadraticCost(0.8), ActionSet(immutable=[2]))
    facts, *_ = drawn(RobustResponse([ANSWER, smooth]))
    assert facts == drawn()[0]
