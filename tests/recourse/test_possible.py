"""Advice leads to people who can exist: relations, histories, usual ranges, round amounts."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import torch

from countermove.data.cleaning import clean
from countermove.data.rows import fit_standardiser, rows_of, standardised_table
from countermove.data.schema import Schema, load_schema
from countermove.data.sources import read_embedded
from countermove.errors import ParameterError
from countermove.people import ActionSet
from countermove.recourse import best_reachable, recommend
from countermove.scores import MLPScore

from .conftest import linear

SCHEMA = Schema.from_mapping(
    "loans",
    {
        "label": {"column": "y", "favourable": 1},
        "features": {
            "bill": {"kind": "integer", "change": "both", "min": 0, "step": 10,
                     "range": "declared"},
            "largest": {"kind": "integer", "change": "both", "min": 0, "step": 10,
                        "range": "declared"},
            "cards": {"kind": "integer", "change": "both", "min": 0, "max": 5},
            "late": {"kind": "integer", "change": "down", "min": 0},
            "ever": {"kind": "binary", "change": "down"},
            "income": {"kind": "numeric", "change": "up"},
        },
        "relations": [
            "bill <= largest",
            "if cards == 0 then bill == 0",
        ],
        "path": {"months": {"window": ["m0", "m1", "m2"],
                            "columns": {"late": "sum", "ever": "any"}}},
    },
)  # fmt: skip


def loans(n: int, seed: int = 0) -> pd.DataFrame:
    """Raw rows that satisfy the relations: bills, cards, three months of delay, income."""
    draws = np.random.default_rng(seed)
    months = draws.integers(0, 3, (n, 3)) * (draws.uniform(size=(n, 1)) < 0.7)
    cards = draws.integers(0, 5, n)
    bill = np.where(cards == 0, 0, 10 * draws.integers(0, 300, n))
    income = np.round(draws.lognormal(3.0, 0.5, n), 2)
    frame = {
        "bill": bill,
        "largest": bill + 10 * draws.integers(0, 200, n),
        "cards": cards,
        "late": months.sum(axis=1),
        "ever": (months > 0).any(axis=1).astype(int),
        "income": income,
        "y": (income + draws.normal(0, 10, n) - 3 * months.sum(axis=1) > 18).astype(int),
    }
    return pd.DataFrame(frame | {f"m{k}": months[:, k] for k in range(3)})


class People:
    """Some people of a table, a rule, and what they may do."""

    def __init__(self, n: int = 60) -> None:
        self.table = clean(loans(400), SCHEMA)
        self.units = fit_standardiser(self.table, SCHEMA, divide_by_root_d=False)
        self.rows = rows_of(standardised_table(self.table, SCHEMA, self.units), SCHEMA)
        self.X = self.rows.X[:n]
        shared = ActionSet.from_schema(SCHEMA, self.units)
        self.actions = shared.with_windows(self.X, self.rows.windows.iloc[:n])
        self.shared = shared
        # Bills count against people, the largest bill for them: without the relation the rule
        # would have bills above the largest one.
        self.score = linear([0.8, -0.5, 0.3, -0.6, -0.4, 0.7], -1.2)

    def after(self, action: np.ndarray) -> pd.DataFrame:
        """Return people after an action in original units."""
        values = self.units.inverse(self.X[: len(action)] + action)
        return pd.DataFrame(np.round(values, 6), columns=list(SCHEMA.feature_names))


@pytest.fixture(scope="module")
def people() -> People:
    return People()


def on_path(people: People, after: pd.DataFrame) -> np.ndarray:
    """Return who has a history that is theirs after 0 to 3 months without delay."""
    good = np.zeros(len(after), bool)
    months = people.rows.windows.iloc[: len(after)].to_numpy()
    for t in range(4):
        rolled = np.hstack([np.zeros((len(after), t)), months[:, : 3 - t]])
        good |= (after["late"] == rolled.sum(axis=1)) & (after["ever"] == (rolled > 0).any(axis=1))
    return good


@pytest.mark.parametrize("method", ["auto", "integer_program", "linear_program", "gradient"])
def test_every_method_leads_to_people_who_can_exist(people, method):
    advice = recommend(people.score, people.X, method, 0.5, people.actions)
    found = advice.status == "FOUND"
    assert found.sum() > 15
    after = people.after(np.nan_to_num(advice.action))[found]
    assert all(relation.holds(after).all() for relation in SCHEMA.relations)
    assert on_path(people, people.after(np.nan_to_num(advice.action)))[found].all()
    low, high = people.units.ranges.low[5], people.units.ranges.high[5]
    moved = found & (np.abs(np.nan_to_num(advice.action)[:, 5]) > 1e-9)
    assert (people.after(np.nan_to_num(advice.action))["income"][moved] <= high + 1e-6).all()
    assert low < high < people.table["income"].max()


def test_without_relations_advice_is_cheaper_and_often_for_nobody(people):
    free = ActionSet.from_schema(SCHEMA, people.units, possible=False)
    plain = recommend(people.score, people.X, threshold=0.5, actions=free)
    possible = recommend(people.score, people.X, threshold=0.5, actions=people.actions)
    both = (plain.status == "FOUND") & (possible.status == "FOUND")
    assert (plain.cost[both] <= possible.cost[both] + 1e-9).all()
    after = people.after(np.nan_to_num(plain.action))[both]
    assert not all(relation.holds(after).all() for relation in SCHEMA.relations)


def test_searches_agree_with_the_proof_on_who_has_recourse(people):
    exact = recommend(people.score, people.X, threshold=0.5, actions=people.actions)
    none = exact.status == "PROVEN_NONE"
    for method in ("linear_program", "gradient"):
        found = recommend(people.score, people.X, method, 0.5, people.actions)
        assert not (none & (found.status == "FOUND")).any()
        cheaper = found.cost < exact.cost * (1.0 - 1e-6)
        assert not (cheaper & (exact.status == "FOUND")).any()


def test_a_network_is_searched_among_possible_people_only(people):
    torch.manual_seed(0)
    network = MLPScore(len(SCHEMA.feature_names), hidden=(8,), dropout=0.0).double().eval()
    cut = float(np.quantile(network(torch.tensor(people.X)).detach().numpy(), 0.6))
    with torch.no_grad():
        list(network.parameters())[-1].sub_(cut)
    advice = recommend(network, people.X, threshold=0.5, actions=people.actions)
    found = advice.status == "FOUND"
    assert found.sum() > 10
    after = people.after(np.nan_to_num(advice.action))[found]
    assert all(relation.holds(after).all() for relation in SCHEMA.relations)


def test_the_highest_score_is_that_of_somebody_possible(people):
    reached = best_reachable(people.score, people.X, actions=people.actions)
    after = people.after(reached.action)
    assert all(relation.holds(after).all() for relation in SCHEMA.relations)
    plain = best_reachable(
        people.score, people.X, actions=ActionSet.from_schema(SCHEMA, people.units, possible=False)
    )
    assert (reached.score <= plain.score + 1e-9).all()
    assert (reached.score < plain.score - 0.1).any()


def test_without_its_months_a_history_may_only_end(people):
    advice = recommend(people.score, people.X, threshold=0.5, actions=people.shared)
    found = advice.status == "FOUND"
    late = people.after(np.nan_to_num(advice.action))["late"][found]
    now = people.after(np.zeros_like(people.X))["late"][found]
    assert ((late == now) | (late == 0)).all()
    known = recommend(people.score, people.X, threshold=0.5, actions=people.actions)
    both = found & (known.status == "FOUND")
    assert (known.cost[both] <= advice.cost[both] + 1e-9).all()
    assert (known.cost[both] < advice.cost[both] - 1e-6).any()


def test_people_whose_months_are_missing_keep_what_their_features_say(people):
    windows = people.rows.windows.iloc[: len(people.X)].copy()
    windows.iloc[::2, 1] = np.nan
    some = people.shared.with_windows(people.X, windows)
    full, features = (
        recommend(people.score, people.X, threshold=0.5, actions=actions)
        for actions in (people.actions, people.shared)
    )
    mixed = recommend(people.score, people.X, threshold=0.5, actions=some)
    np.testing.assert_allclose(mixed.cost[1::2], full.cost[1::2])
    np.testing.assert_allclose(mixed.cost[::2], features.cost[::2])


def test_nobody_is_asked_for_more_steps_than_allowed(people):
    short = recommend(people.score, people.X, threshold=0.5, actions=people.actions.within_steps(1))
    free = recommend(people.score, people.X, threshold=0.5, actions=people.actions)
    found = short.status == "FOUND"
    months = people.rows.windows.iloc[: len(people.X)].to_numpy()
    after = people.after(np.nan_to_num(short.action))["late"].to_numpy()
    assert np.isin(after[found], [0, *range(7)]).all()
    one_step = np.hstack([np.zeros((len(months), 1)), months[:, :2]]).sum(axis=1)
    assert ((after == months.sum(axis=1)) | (after == one_step))[found].all()
    assert (short.cost[found] >= free.cost[found] - 1e-9).all()
    with pytest.raises(ParameterError, match="max_steps is a whole number of at least 0"):
        people.actions.within_steps(-1)


def test_who_breaks_a_relation_may_stay_but_not_break_it_further(people):
    x = people.units.transform([[500.0, 300.0, 2.0, 0.0, 0.0, 20.0]])  # a bill above the largest
    actions = people.shared
    stay, worse, better = np.zeros((3, 1, 6))
    worse[0, 0], better[0, 0] = 10.0, -100.0
    inside = [
        bool(actions.contains(x, people.units.action_to_standard(a))[0])
        for a in (stay, worse, better)
    ]
    assert inside == [True, False, True]
    advice = recommend(linear([-1.0, 0, 0, 0, 0, 0], 0.0), x, threshold=0.5, actions=actions)
    assert advice.status[0] in ("FOUND", "NOT_NEEDED")


def test_whoever_stands_outside_the_usual_range_may_stay_or_come_inward(people):
    high = people.units.ranges.high[5]
    x = people.units.transform([[100.0, 300.0, 2.0, 0.0, 0.0, high + 50.0]])
    low, top = people.shared.box(x)
    assert top[0, 5] == 0.0  # only upwards by the schema, and nothing is left there
    down = replace(people.shared.possible, low=people.shared.possible.low)
    both = ActionSet(possible=down)
    low, top = both.box(x)
    assert low[0, 5] < 0.0
    assert top[0, 5] == 0.0


def test_an_action_set_is_described_with_who_can_exist(people):
    said = people.shared.describe()
    again = ActionSet(**said)
    again.unit, again.offset, again.columns = (
        people.shared.unit, people.shared.offset, people.shared.columns,
    )  # fmt: skip
    first, second = (
        recommend(people.score, people.X, threshold=0.5, actions=actions)
        for actions in (people.shared, again)
    )
    np.testing.assert_array_equal(first.action, second.action)
    assert again.describe() == said


def test_amounts_are_round_and_cost_little_more():
    """Two digits: at most a percent more in the median, still approved and possible."""
    schema = load_schema("credit", "conf/base/schemas")
    table = clean(read_embedded("credit"), schema)
    units = fit_standardiser(table, schema, divide_by_root_d=False)
    rows = rows_of(standardised_table(table, schema, units), schema)
    from sklearn.linear_model import LogisticRegression

    fitted = LogisticRegression(C=1e4, max_iter=2000).fit(rows.X, rows.y)
    cut = float(np.quantile(rows.X @ fitted.coef_[0], 0.3))
    score = linear(fitted.coef_[0], -cut)
    who = np.flatnonzero(rows.X @ fitted.coef_[0] < cut)[:500]
    actions = ActionSet.from_schema(schema, units).with_windows(rows.X, rows.windows).of_rows(who)
    advice = recommend(score, rows.X[who], threshold=0.5, actions=actions, digits=2)
    found = advice.status == "FOUND"
    assert found.mean() > 0.95
    assert np.median(advice.cost[found] / advice.least_cost[found]) <= 1.01
    assert (advice.cost[found] >= advice.least_cost[found] * (1.0 - 1e-9)).all()
    after = pd.DataFrame(
        np.round(units.inverse(rows.X[who] + advice.action)[found], 6), columns=schema.feature_names
    )
    assert all(relation.holds(after).all() for relation in schema.relations)
    money = after["MaxBillAmountOverLast6Months"].to_numpy()
    moved = np.abs(advice.action[found, 1]) > 1e-9
    two_digits = [float(f"{value:.1e}") == value for value in money[moved]]
    assert np.mean(two_digits) > 0.95
    plain = recommend(score, rows.X[who], threshold=0.5, actions=actions)
    np.testing.assert_allclose(plain.cost[found], advice.least_cost[found], rtol=1e-6)
    # Whoever is beyond a ceiling is shown round amounts too; nobody is rounded beyond it.
    capped = recommend(score, rows.X[who], threshold=0.5, actions=actions, digits=2, ceiling=0.5)
    np.testing.assert_array_equal(capped.status == "BEYOND_REACH", plain.cost > 0.5)
    beyond = (capped.status == "BEYOND_REACH") & (np.abs(capped.action[:, 1]) > 1e-9)
    shown = np.round(units.inverse(rows.X[who] + capped.action)[beyond, 1], 6)
    assert np.mean([float(f"{value:.1e}") == value for value in shown]) > 0.95
    with pytest.raises(ParameterError, match="digits is a whole number of at least 1"):
        recommend(score, rows.X[who], actions=actions, digits=0)
