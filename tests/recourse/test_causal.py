"""Actions have consequences: abduction, action, prediction; circles are refused."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from countermove.data.standardise import Standardiser
from countermove.errors import DataError, ParameterError
from countermove.people import ActionSet
from countermove.recourse import CausalModel, best_reachable, recommend

from .conftest import linear

NAMES = ("income", "savings", "debt")
CHAIN = {
    "savings": {"causes": {"income": 0.5}},
    "debt": {"causes": {"savings": -2.0, "income": 0.1}},
}


def squared(income: torch.Tensor) -> torch.Tensor:
    return income**2


def moved(model: CausalModel, X, action):
    return model.consequences(torch.tensor(X), torch.tensor(action)).numpy()


def test_a_shift_is_handed_down_and_the_unknown_part_stays():
    model = CausalModel.from_mapping(CHAIN, NAMES)
    X = np.array([[1.0, 7.0, 3.0]])  # savings of 7 despite an income of 1: kept
    assert moved(model, X, [[2.0, 0.0, 0.0]]) == pytest.approx(np.array([[3.0, 8.0, 1.2]]))
    assert moved(model, X, [[0.0, 1.0, 0.0]]) == pytest.approx(np.array([[1.0, 8.0, 1.0]]))
    assert moved(model, X, [[0.0, 0.0, 0.5]]) == pytest.approx(np.array([[1.0, 7.0, 3.5]]))
    assert moved(model, X, [[0.0, 0.0, 0.0]]) == pytest.approx(X)


def test_units_do_not_change_the_consequences():
    units = Standardiser(np.array([10.0, 2.0, 0.0]), np.array([5.0, 2.0, 4.0]), NAMES)
    plain = CausalModel.from_mapping(CHAIN, NAMES)
    scaled = CausalModel.from_mapping(CHAIN, NAMES, units)
    X = np.random.default_rng(0).normal(size=(5, 3))
    action = np.random.default_rng(1).normal(size=(5, 3))
    after = moved(plain, units.inverse(X), units.action_to_original(action))
    assert units.inverse(moved(scaled, X, action)) == pytest.approx(after)
    assert scaled.effect is not None
    assert moved(scaled, X, action) == pytest.approx(X + action @ scaled.effect.T)


def test_causes_are_used_and_bounds_hold_for_actions_only():
    # Only income may change, by 1 at most; savings follow and carry the decision.
    model = CausalModel.from_mapping(CHAIN, NAMES)
    score = linear([0.0, 1.0, 0.0], -0.4)
    actions = ActionSet(lower=[-1.0, 0.0, 0.0], upper=[1.0, 0.0, 0.0])
    X = np.zeros((2, 3))
    X[1, 1] = -1.0
    assert recommend(score, X, actions=actions).status.tolist() == ["PROVEN_NONE"] * 2
    advice = recommend(score, X, "causal", actions=actions, causal=model)
    assert advice.status.tolist() == ["FOUND", "PROVEN_NONE"]
    assert advice.action[0] == pytest.approx([0.8, 0.0, 0.0], abs=1e-6)
    assert advice.x_new(X)[0] == pytest.approx([0.8, 0.4, -0.72], abs=1e-6)
    assert np.isnan(advice.x_new(X)[1]).all()
    reached = best_reachable(score, X, "causal", actions, causal=model)
    assert reached.score == pytest.approx([0.1, -0.9])


def test_a_users_function_is_followed():
    entry = {"savings": {"causes": ["income"], "function": f"{__name__}:squared"}}
    model = CausalModel.from_mapping(entry, NAMES)
    X = np.array([[1.0, 0.5, 0.0]])
    assert moved(model, X, [[2.0, 0.0, 0.0]]) == pytest.approx(np.array([[3.0, 8.5, 0.0]]))
    assert model.effect is None
    score = linear([0.0, 1.0, 0.0], -3.0)
    actions = ActionSet(lower=[-1.5, 0.0, 0.0], upper=[1.5, 0.0, 0.0])
    advice = recommend(score, X, "causal", actions=actions, causal=model)
    assert advice.status.tolist() == ["FOUND"]
    assert (1.0 + advice.action[0, 0]) ** 2 - 0.5 == pytest.approx(3.0, abs=1e-3)


def test_open_slopes_are_fitted_by_least_squares():
    draws = np.random.default_rng(0)
    income = draws.normal(size=500)
    X = np.column_stack([income, 3.0 + 0.7 * income, draws.normal(size=500)])
    model = CausalModel.from_mapping({"savings": {"causes": ["income"]}}, NAMES)
    with pytest.raises(ParameterError, match="fitted"):
        _ = model.effect
    effect = model.fitted(X).effect
    assert effect is not None
    assert effect[1] == pytest.approx([0.7, 1.0, 0.0])


def test_the_shipped_model_of_german_reads_and_fits():
    path = Path(__file__).parents[2] / "conf" / "base" / "causal" / "german.yml"
    names = ("duration_months", "credit_amount", "telephone")
    draws = np.random.default_rng(0).normal(size=(50, 3))
    effect = CausalModel.from_file(path, names).fitted(draws).effect
    assert effect is not None
    assert effect[0, 1] != 0.0
    assert effect[1].tolist() == [0.0, 1.0, 0.0]


@pytest.mark.parametrize(
    ("mapping", "message"),
    [
        ({"savings": {"causes": ["debt"]}, "debt": {"causes": ["savings"]}}, "circle: .*debt.*→"),
        ({"savings": {"causes": ["savings"]}}, "circle: savings → savings"),
        ({"savings": {"causes": ["incone"]}}, "did you mean 'income'"),
        ({"wealth": {"causes": ["income"]}}, "'wealth'"),
        ({"savings": {"causes": []}}, "no causes"),
        ({"savings": ["income"]}, "causes"),
        ({"savings": {"causes": ["income"], "noise": 1}}, "unknown key"),
        ({"savings": {"causes": ["income"], "function": "nowhere:nothing"}}, "no function"),
        ({"savings": {"causes": {"income": float("inf")}}}, "finite"),
        (["savings"], "maps features"),
    ],
)
def test_nonsense_is_refused(mapping, message):
    with pytest.raises(ParameterError, match=message):
        CausalModel.from_mapping(mapping, NAMES)


def test_other_people_are_refused():
    model = CausalModel.from_mapping(CHAIN, NAMES)
    with pytest.raises(DataError, match="3 features"):
        recommend(linear(np.ones(4)), np.zeros((1, 4)), "causal", actions=ActionSet(), causal=model)
