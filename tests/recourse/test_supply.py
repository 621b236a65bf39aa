"""Supplying a missing cell is a step that advice, responses and promises price."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import numpy as np
import pandas as pd
import pytest
import torch

from countermove.data.cleaning import clean
from countermove.data.partitions import Partitions
from countermove.data.rows import coded_features, fit_standardiser, rows_of, standardised_table
from countermove.data.schema import Schema
from countermove.errors import ParameterError
from countermove.people import (
    ActionSet,
    LinearCost,
    MahalanobisCost,
    MixtureCost,
    QuadraticCost,
    WeightedQuadraticCost,
)
from countermove.production.open_advice import Honoured
from countermove.production.open_advice.honour import GivenAdvice, advised_people
from countermove.recourse import best_reachable, recommend
from countermove.recourse.advise import AdviceTerms, decide_and_advise, with_approved
from countermove.recourse.pare import PromiseTerms
from countermove.response import BestResponse, ScalarResponse
from countermove.scores.linear import LinearScore
from countermove.scores.storage import PublishedModel

FEATURES = {
    "income": {"kind": "numeric", "change": "up", "unit": "EUR", "min": 0, "missing": "median",
               "supply": 0.05, "range": "declared"},
    "savings": {"kind": "numeric", "change": "both", "range": "declared"},
    "loans": {"kind": "integer", "change": "down", "min": 0, "missing": 3, "supply": True},
    "age": {"kind": "integer", "missing": "median", "supply": 0.3},
    "job": {"kind": "onehot", "change": "both", "categories": ["clerk", "nurse", "cook"],
            "missing": "own level", "supply": True},
    "town": {"kind": "onehot", "change": "both", "categories": ["x", "y"], "missing": "mode",
             "supply": 0.2},
}  # fmt: skip
SUPPLIED = ("income", "loans", "age", "job", "town")
N = 400


def raw_people(n=N, seed=1):
    random = np.random.default_rng(seed)
    table = {
        "income": random.normal(3000, 500, n).round(),
        "savings": random.normal(100, 20, n).round(1),
        "loans": random.integers(0, 6, n),
        "age": random.integers(20, 70, n),
        "job": random.choice(["clerk", "nurse", "cook"], n),
        "town": random.choice(["x", "y"], n, p=[0.2, 0.8]),
        "paid": random.integers(0, 2, n),
    }
    raw = pd.DataFrame(table).astype(object)
    for name in SUPPLIED:
        raw.loc[random.random(n) < 0.2, name] = np.nan
    return raw


class Desk:
    """People of a table, a linear rule, and what they may do."""

    def __init__(self, features=FEATURES, relations=(), seed=0):
        label = {"column": "paid", "favourable": 1}
        mapping = {"label": label, "features": features, "relations": list(relations)}
        self.schema = Schema.from_mapping("loans", mapping)
        self.typed = clean(raw_people(), self.schema)
        self.unit = fit_standardiser(self.typed, self.schema, divide_by_root_d=False)
        self.frame = standardised_table(self.typed, self.schema, self.unit)
        self.rows = rows_of(self.frame, self.schema)
        self.X = self.rows.X
        self.actions = ActionSet.from_schema(self.schema, self.unit)
        self.cost = self.actions.priced(QuadraticCost(1.0))
        self.columns = self.schema.model_features()
        self.place = {column.name: j for j, column in enumerate(self.columns)}
        random = np.random.default_rng(seed)
        weights = random.normal(0.0, 0.5, len(self.columns))
        weights[self.place["income"]] = abs(weights[self.place["income"]])
        for j, column in enumerate(self.columns):
            weights[j] = -0.5 * abs(weights[j]) if column.indicator else weights[j]
        self.score = LinearScore(len(weights))
        with torch.no_grad():
            self.score.weight.copy_(torch.tensor(weights))
            self.score.bias.fill_(-1.2)
        self.weights = weights

    def lacks(self, name):
        return self.typed[name].isna().to_numpy()

    def original(self, action):
        return self.unit.action_to_original(action)

    def advised(self, digits=None):
        rule = PublishedModel(self.score, self.unit, self.schema.digest(), {})
        model = with_approved(rule, self.frame, self.schema)
        people = BestResponse(self.cost, self.actions)
        said = AdviceTerms(digits=digits)
        return decide_and_advise(model, self.rows, self.schema, people, PromiseTerms(), 0, said)


@pytest.fixture(scope="module")
def desk():
    return Desk()


def without_supply():
    return {
        name: {key: value for key, value in entry.items() if key != "supply"}
        for name, entry in FEATURES.items()
    }


def by_hand(desk, i):
    """Return the least price of approval by trying every combination of steps and categories."""
    place, scale, w = desk.place, desk.unit.scale, desk.weights
    here = desk.typed.iloc[i]
    lacks = {name: bool(pd.isna(here[name])) for name in SUPPLIED}
    need = 1.2 - float(desk.X[i] @ w)
    fill = dict(zip(desk.unit.names, desk.unit.fill, strict=True))
    prices = {"income": 0.05, "loans": 0.01, "age": 0.3, "job": 0.01, "town": 0.2}
    best = np.inf
    for told in product(*[(False, True) if lacks[name] else (False,) for name in SUPPLIED]):
        tells = dict(zip(SUPPLIED, told, strict=True))
        known = {name: not lacks[name] or tells[name] for name in SUPPLIED}
        paid = sum(prices[name] for name in SUPPLIED if tells[name])
        gain = -sum(w[place[f"{n}=missing"]] / scale[place[f"{n}=missing"]] for n in SUPPLIED
                    if tells[n])  # fmt: skip
        loans = int(fill["loans"] if lacks["loans"] else here["loans"])
        fewer = range(loans + 1) if known["loans"] else [0]
        jobs = desk.schema.feature("job").categories
        if not known["job"] or (lacks["job"] and not tells["job"]):
            next_jobs = [None]
        else:
            next_jobs = jobs if lacks["job"] else (None, *jobs)
        town = next(t for t in "xy" if (fill[f"town={t}"] if lacks["town"] else here["town"] == t))
        towns = "xy" if known["town"] else [town]
        for less, job, new_town in product(fewer, next_jobs, towns):
            price, got = paid, gain
            moves = {"loans": -float(less)}
            if job is not None and (lacks["job"] or job != here["job"]):
                moves[f"job={job}"] = 1.0
                if not lacks["job"]:
                    moves[f"job={here['job']}"] = -1.0
            if new_town != town:
                moves[f"town={new_town}"], moves[f"town={town}"] = 1.0, -1.0
            for name, change in moves.items():
                step = change / scale[place[name]]
                price, got = price + step**2, got + w[place[name]] * step
            # Both amounts cost their square: the plane is reached along its normal.
            free = [place["savings"], *([place["income"]] if known["income"] else [])]
            amounts = max(need - got, 0.0) ** 2 / float(w[free] @ w[free])
            best = min(best, price + amounts)
    return best


def test_advice_is_the_cheapest_of_all_combinations(desk):
    advice = recommend(desk.score, desk.X, "auto", 0.5, desk.actions, desk.cost)
    refused = np.flatnonzero(advice.status != "NOT_NEEDED")[:100]
    assert (advice.status[refused] == "FOUND").all()
    assert advice.proven_cheapest[refused].all()
    expected = [by_hand(desk, i) for i in refused.tolist()]
    np.testing.assert_allclose(advice.cost[refused], expected, rtol=1e-6)
    told = np.column_stack([advice.action[:, desk.place[f"{n}=missing"]] != 0.0 for n in SUPPLIED])
    assert told[refused].any(axis=0).all()  # everything is supplied by somebody


@pytest.mark.parametrize("method", ["auto", "linear_program", "gradient", "integer_program"])
def test_values_wait_for_the_cell_and_nobody_moves_into_missing(desk, method):
    advice = recommend(desk.score, desk.X, method, 0.5, desk.actions, desk.cost)
    found = advice.status == "FOUND"
    action = desk.original(advice.action[found])
    after = desk.unit.inverse(desk.X[found]) + action
    assert desk.actions.contains(desk.X[found], advice.action[found]).all()
    for name in SUPPLIED:
        mark = desk.place[f"{name}=missing"]
        lacks = desk.lacks(name)[found]
        assert (action[~lacks, mark] == 0.0).all()
        assert set(np.round(action[lacks, mark], 9)) <= {0.0, -1.0}
        still = lacks & (np.abs(after[:, mark] - 1.0) < 1e-6)
        own = [j for j, c in enumerate(desk.columns) if c.source == name and j != mark]
        assert (np.abs(action[np.ix_(still, own)]) < 1e-6).all()
    assert (action[:, desk.place["age"]] == 0.0).all()


def test_an_action_that_moves_an_unknown_value_or_marks_a_known_one_is_not_allowed(desk):
    income, mark = desk.place["income"], desk.place["income=missing"]
    lacks = desk.lacks("income")
    more, told, gone = np.zeros((3, *desk.X.shape))
    more[:, income] = 0.5
    told[:, mark] = -1.0 / desk.unit.scale[mark]
    gone[:, mark] = 1.0 / desk.unit.scale[mark]
    np.testing.assert_array_equal(desk.actions.contains(desk.X, more), ~lacks)
    np.testing.assert_array_equal(desk.actions.contains(desk.X, told), lacks)
    np.testing.assert_array_equal(desk.actions.contains(desk.X, more + told), lacks)
    assert not desk.actions.contains(desk.X, gone).any()
    into = np.zeros_like(desk.X)
    into[:, desk.place["job=missing"]] = 1.0 / desk.unit.scale[desk.place["job=missing"]]
    into[:, desk.place["job=clerk"]] = -1.0 / desk.unit.scale[desk.place["job=clerk"]]
    clerk = (desk.typed["job"] == "clerk").to_numpy()
    assert not desk.actions.contains(desk.X[clerk], into[clerk]).any()


@pytest.mark.parametrize("kind", [BestResponse, ScalarResponse])
def test_responses_supply_and_pay_for_it(desk, kind):
    moved = kind(desk.cost, desk.actions).respond(desk.score, desk.X)
    change = desk.original(moved.x_new - desk.X)
    for name in ("income", "loans", "age", "town"):
        mark, lacks = desk.place[f"{name}=missing"], desk.lacks(name)
        assert (change[lacks, mark] < -1e-6).any()
        assert ((change[:, mark] >= -1.0 - 1e-9) & (change[:, mark] <= 1e-9)).all()
        assert (np.abs(change[~lacks, mark]) < 1e-9).all()
    np.testing.assert_allclose(moved.cost, desk.cost.price(desk.X, moved.x_new), atol=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("kind", [BestResponse, ScalarResponse])
def test_responses_that_obey_relations_supply_before_they_move_the_value(desk, kind):
    people = kind(desk.cost, desk.actions.obeyed_in_responses())
    change = desk.original(people.respond(desk.score, desk.X).x_new - desk.X)
    for name in ("income", "loans"):
        lacks, told = desk.lacks(name), change[:, desk.place[f"{name}=missing"]]
        assert set(np.round(told, 6)) == {0.0, -1.0}
        assert (np.abs(change[lacks & (told > -0.5), desk.place[name]]) < 1e-6).all()
        assert (told[~lacks] == 0.0).all()
    supplied = change[:, desk.place["income=missing"]] < -0.5
    assert (change[supplied, desk.place["income"]] > 1e-6).any()


def test_supplying_raises_what_people_reach(desk):
    frozen = Desk(without_supply())
    with_it = best_reachable(desk.score, desk.X, actions=desk.actions).score
    without = best_reachable(desk.score, desk.X, actions=frozen.actions).score
    lacks = np.column_stack([desk.lacks(name) for name in SUPPLIED]).any(axis=1)
    assert (with_it[lacks] > without[lacks] + 1e-9).mean() > 0.9
    np.testing.assert_allclose(with_it[~lacks], without[~lacks], atol=1e-9)


def test_without_supply_nothing_changes(desk):
    frozen = Desk(without_supply())
    assert not frozen.actions.supply
    assert frozen.actions.priced(frozen.cost) is frozen.cost
    np.testing.assert_array_equal(frozen.X, desk.X)
    advice = recommend(frozen.score, frozen.X, "auto", 0.5, frozen.actions, frozen.cost)
    found = advice.status == "FOUND"
    for name in SUPPLIED:
        own = [j for j, c in enumerate(frozen.columns) if c.source == name]
        assert (advice.action[np.ix_(found & frozen.lacks(name), own)] == 0.0).all()


def test_an_immutable_own_level_is_supplied_in_words_only():
    features = without_supply()
    features["job"] |= {"change": "immutable", "supply": True}
    desk = Desk(features)
    assert desk.columns[desk.place["job=missing"]].change == "immutable"
    table = desk.advised().table
    lacks = desk.lacks("job") & (table["decision"] < 0).to_numpy()
    assert table.loc[lacks, "words"].str.contains("We do not have your job: supply it").all()
    assert (table.loc[lacks, "supply"] == "job").all()


def test_relations_take_a_cell_that_can_be_supplied_as_assumed():
    desk = Desk(relations=["savings <= 0.05 * income"])
    advice = recommend(desk.score, desk.X, "auto", 0.5, desk.actions, desk.cost)
    found = advice.status == "FOUND"
    before = desk.unit.inverse(desk.X)
    after = before[found] + desk.original(advice.action[found])
    income, savings = desk.place["income"], desk.place["savings"]
    gap = before[:, savings] - 0.05 * before[:, income]
    assert (after[:, savings] - 0.05 * after[:, income] <= np.maximum(gap[found], 0) + 1e-6).all()


@pytest.mark.parametrize("price", [1e-4, 0.5, 50.0])
def test_the_price_decides_who_supplies(price):
    features = {name: dict(entry) for name, entry in FEATURES.items()}
    features["income"]["supply"] = price
    desk = Desk(features)
    advice = recommend(desk.score, desk.X, "auto", 0.5, desk.actions, desk.cost)
    tells = desk.original(np.nan_to_num(advice.action))[:, desk.place["income=missing"]] < -0.5
    step = np.zeros_like(desk.X)
    mark = desk.place["income=missing"]
    step[:, mark] = -1.0 / desk.unit.scale[mark]
    np.testing.assert_allclose(desk.cost.price(desk.X, desk.X + step), price)
    assert tells.any() == (price < 10.0)
    assert (advice.cost[tells] >= price - 1e-12).all()


@pytest.mark.parametrize(
    "cost",
    [
        QuadraticCost(3.0),
        WeightedQuadraticCost([1.0, 2.0, 3.0]),
        MahalanobisCost([[2.0, 0.5, 0.1], [0.5, 2.0, 0.2], [0.1, 0.2, 1.0]]),
        MixtureCost([1.0, 1.0, 1.0], 0.3),
        LinearCost([1.0, 1.0, 1.0]),
    ],
    ids=lambda cost: cost.kind,
)
def test_every_cost_takes_the_price_and_keeps_the_others(cost):
    actions = ActionSet(only_decrease=[2], integer=[2], supply={2: 0.7}, max_value=[9.0] * 3)
    actions = actions.standardised([0.0] * 3, [1.0, 1.0, 0.25])
    priced = actions.priced(cost)
    here, step = np.zeros((1, 3)), np.array([[0.0, 0.0, -4.0]])
    assert priced.price(here, step)[0] == pytest.approx(0.7)
    other = np.array([[0.4, 0.3, 0.0]])
    assert priced.price(here, other)[0] == pytest.approx(cost.price(here, other)[0])
    again = actions.priced(priced)
    assert again.price(here, step + other)[0] == pytest.approx(priced.price(here, step + other)[0])
    assert ActionSet(**actions.describe()).supply == {2: 0.7}


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"supply": {1: 0.5}}, "absent from only_decrease"),
        ({"supply": {0: 0.0}}, "positive and finite"),
        ({"supply": {0: np.inf}}, "positive and finite"),
    ],
)
def test_a_price_that_makes_no_sense_is_refused(arguments, said):
    with pytest.raises(ParameterError, match=said):
        ActionSet(only_decrease=[0], **arguments)


def test_the_words_say_what_to_supply_and_what_is_assumed(desk):
    table = desk.advised(digits=2).table
    told = (table["change:income=missing"] < 0.0).to_numpy()
    assert told.any()
    words = table.loc[told, "words"]
    step = "supply your income, which we do not have"
    assert words.str.contains(step, case=False).all()
    assert words.str.contains("What counts is what you supply.", regex=False).all()
    assert words.str.count(step[5:]).eq(1).all()  # said once, not again as what we do not have
    median = f"{desk.unit.fill[desk.place['income']]:,.0f} EUR"
    assert words.str.contains(median, regex=False).all()
    more = told & (table["change:income"] > 0.0).to_numpy()
    assert more.any()
    takes = r"approval takes (at least|between) \d"
    assert table.loc[more, "words"].str.count(takes).eq(1).all()
    level = (table["change:job=missing"] < 0.0).to_numpy()
    takes = "job, which we do not have: approval takes “"
    assert table.loc[level, "words"].str.contains(takes).all()


def test_whoever_supplies_what_was_assumed_has_followed_the_advice(desk, tmp_path):
    advised = desk.advised()
    table = advised.table.assign(row_id=desk.rows.ids, version="000001")
    coded = pd.DataFrame(coded_features(desk.typed, desk.schema), columns=desk.schema.feature_names)
    parts = []
    for name, part in (("scored", table), ("admitted", coded.assign(row_id=desk.rows.ids))):
        part.to_parquet(tmp_path / f"{name}.parquet")
        parts.append(Partitions((tmp_path / f"{name}.parquet",)))
    given = advised_people(*parts, desk.schema, desk.unit)
    told = np.flatnonzero((table["change:income=missing"] < 0.0) & (table["status"] == "FOUND"))
    assert told.size
    rule = PublishedModel(desk.score, desk.unit, desk.schema.digest(), {})
    names = desk.schema.feature_names
    for i in told.tolist():
        person = table["row_id"].iloc[i]
        open_advice = Honoured({person: (GivenAdvice("v1", "2026-01-01", given[person]),)},
                               {"v1": rule})  # fmt: skip
        x = coded.iloc[i].to_numpy().copy()
        assert open_advice.fulfilled(person, x, names) is None  # still not supplied
        change = table[[f"change:{n}" for n in names if f"change:{n}" in table]].iloc[i]
        for column, by in change.items():
            j = names.index(column.removeprefix("change:"))
            x[j] = by + (desk.unit.fill[j] if np.isnan(x[j]) else x[j])
        x = np.where(np.isnan(x), desk.unit.fill, x)
        assert open_advice.fulfilled(person, x, names) is not None
        less = x.copy()
        less[desk.place["income"]] -= 2000.0  # what counts is what they supply
        assert open_advice.fulfilled(person, less, names) is None


def test_prices_follow_a_change_of_units(desk):
    shifted = replace(desk.unit, scale=desk.unit.scale * 2.0)
    actions = ActionSet.from_schema(desk.schema, shifted)
    mark = desk.place["income=missing"]
    step = np.zeros((1, len(desk.columns)))
    step[0, mark] = -1.0 / shifted.scale[mark]
    cost = actions.priced(QuadraticCost(7.0))
    assert cost.price(np.zeros_like(step), step)[0] == pytest.approx(0.05)
