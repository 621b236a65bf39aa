"""Every method: what it calls FOUND is allowed and approved; what it misses is little."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from scipy.special import logit

from countermove import StrategicClassifier
from countermove.errors import (
    DataError,
    InfeasibleActionsError,
    ParameterError,
    UnknownNameError,
)
from countermove.people import ActionSet, LinearCost, MahalanobisCost, MixtureCost, QuadraticCost
from countermove.recourse import CausalModel, Settings, best_reachable, recommend
from countermove.recourse.audit import audit
from countermove.recourse.problem import actions_of_model
from countermove.scores.base import score_of, values

from .conftest import linear, town_actions, trained_tanh

METHODS = ("auto", "linear_program", "gradient", "integer_program", "causal", "exhaustive")
QUICK = Settings(starts=2, steps=60, grid=9)


def causal_of(method: str, d: int = 7) -> dict:
    """A causal model in which nothing follows from anything: plain additive actions."""
    return (
        {"causal": CausalModel.from_mapping({}, [f"f{j}" for j in range(d)])}
        if (method == "causal")
        else {}
    )


def approved(score, X, threshold):
    return values(score, X) >= logit(threshold)


@pytest.mark.parametrize("kind", ["linear", "bent"])
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("threshold", [0.35, 0.7])
def test_what_is_found_is_allowed_and_approved(town, method, kind, threshold):
    score = town.score(kind)
    advice = recommend(
        score, town.X, method, threshold, town.actions, settings=QUICK, **causal_of(method)
    )
    found = advice.status == "FOUND"
    assert found.sum() >= 15
    assert town.actions.contains(town.X, np.nan_to_num(advice.action))[found].all()
    x_new = advice.x_new(town.X)
    assert approved(score, x_new[found], threshold).all()
    assert (advice.probability_after[found] >= threshold).all()
    assert not approved(score, town.X[found], threshold).any()
    stay = advice.status == "NOT_NEEDED"
    assert np.array_equal(stay, approved(score, town.X, threshold))
    assert (advice.action[stay] == 0.0).all()
    lost = ~found & ~stay
    assert np.isnan(advice.action[lost]).all()
    assert np.isnan(advice.cost[lost]).all()
    assert np.allclose(advice.cost[found], (advice.action[found] ** 2).sum(axis=1))


@pytest.mark.parametrize("kind", ["linear", "bent"])
@pytest.mark.parametrize("method", METHODS)
def test_a_margin_is_kept_where_there_is_room_for_it(town, method, kind):
    said = {"actions": town.actions, "settings": QUICK, **causal_of(method)}
    plain = recommend(town.score(kind), town.X, method, 0.5, **said)
    safe = recommend(town.score(kind), town.X, method, 0.5, margin=0.2, **said)
    higher = recommend(town.score(kind), town.X, method, 0.7, **said)
    found = plain.status == "FOUND"
    # Nobody is lost or newly refused for the margin; whoever can get to .7 is taken there.
    assert np.array_equal(safe.status == "NOT_NEEDED", plain.status == "NOT_NEEDED")
    assert (safe.status[found] == "FOUND").all()
    can = found & (higher.status == "FOUND")
    assert can.sum() >= 10
    assert (safe.probability_after[can] >= 0.7 - 1e-9).all()
    # A search on a score that bends may end cheaper at the higher target; a proof may not.
    dearer = (safe.cost[can] >= plain.cost[can] * (1.0 - 1e-6)).mean()
    assert dearer > (0.85 if kind == "bent" else 0.99)
    assert (safe.probability_after[found] >= 0.5).all()


def test_proofs_are_about_the_threshold_not_the_margin():
    actions = ActionSet(lower=[-1.0], upper=[1.0])
    X = np.array([[-0.5], [-2.0]])
    advice = recommend(linear([1.0]), X, "integer_program", 0.5, actions, margin=0.3)
    assert advice.status.tolist() == ["FOUND", "PROVEN_NONE"]


def test_a_margin_beyond_certainty_is_refused(town):
    for margin in (-0.1, 0.5, np.nan):
        with pytest.raises(ParameterError, match="margin lies between 0 and"):
            recommend(town.linear, town.X, actions=town.actions, margin=margin)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("kind", ["linear", "bent"])
def test_linear_constraints_hold(town, method, kind):
    # What is gained in column 0 and in whole units of column 2 shares a budget; original units.
    A = np.array([[-1.0, 0.0, 0.5, 0, 0, 0, 0], [0.0, -1.0, -0.5, 0, -0.2, 0, 0]])
    n = 12 if method == "integer_program" else 40  # one mixed-integer program per person
    actions = town_actions(n, A=A, b=[1.5, 1.0])
    X = town.X[:n]
    brief = Settings(starts=1, steps=25, grid=9)
    advice = recommend(
        town.score(kind), X, method, 0.6, actions, settings=brief, **causal_of(method)
    )
    found = advice.status == "FOUND"
    assert found.sum() > n / 12
    assert actions.contains(X, np.nan_to_num(advice.action))[found].all()


@pytest.mark.parametrize("method", ["linear_program", "gradient", "integer_program"])
def test_linear_scores_leave_no_doubt(town, method):
    advice = recommend(town.linear, town.X, method, 0.7, town.actions, settings=QUICK)
    referee = recommend(town.linear, town.X, "exhaustive", 0.7, town.actions, settings=QUICK)
    assert np.array_equal(advice.status == "FOUND", referee.status == "FOUND")
    # The grid holds both ends of every range: what it misses does not exist.
    assert set(advice.status) == {"FOUND", "PROVEN_NONE", "NOT_NEEDED"}
    assert "NOT_FOUND" not in referee.status


def test_integer_program_is_never_dearer(town):
    best = recommend(town.linear, town.X, "integer_program", 0.7, town.actions)
    for method in ("linear_program", "gradient", "exhaustive"):
        other = recommend(town.linear, town.X, method, 0.7, town.actions, settings=QUICK)
        both = (best.status == "FOUND") & (other.status == "FOUND")
        assert (best.cost[both] <= other.cost[both] * (1 + 1e-6) + 1e-9).all()


@pytest.mark.parametrize(
    ("columns", "threshold"), [((0, 1), 0.4), pytest.param((0, 1, 2), 0.55, marks=pytest.mark.slow)]
)
def test_nearly_all_recourse_that_exists_is_found(columns, threshold):
    # Issue 5: at least 98 % of what the grid proves to exist, on a tanh network.
    X = np.random.default_rng(0).normal(size=(2000, 5))
    wish = np.sin(2.2 * X[:, 0] * X[:, 1]) + X[:, 1] * np.cos(2 * X[:, 2]) + X[:, 3] - 0.6
    score = trained_tanh(X, wish > 0)
    most = np.zeros(5)
    most[list(columns)] = 0.75
    actions = ActionSet(lower=-most, upper=most)
    people, grid = X[:300], Settings(grid=31 if len(columns) == 2 else 11)
    truth = recommend(score, people, "exhaustive", threshold, actions, settings=grid)
    exists = truth.status == "FOUND"
    assert exists.sum() > 40
    for method in ("linear_program", "gradient"):
        advice = recommend(score, people, method, threshold, actions)
        assert (advice.status == "FOUND")[exists].mean() >= 0.98
        reached = best_reachable(score, people, method, actions)
        assert (reached.score >= logit(threshold))[exists].mean() >= 0.98


@pytest.mark.parametrize("method", METHODS)
def test_whoever_is_counted_gets_advice(town, method):
    reached = best_reachable(
        town.bent, town.X, method, town.actions, settings=QUICK, **causal_of(method)
    )
    assert town.actions.contains(town.X, reached.action).all()
    assert np.allclose(reached.score, values(town.bent, town.X + reached.action))
    assert (reached.score >= values(town.bent, town.X) - 1e-12).all()
    for threshold in (0.3, 0.6):
        advice = recommend(
            town.bent, town.X, method, threshold, town.actions, settings=QUICK,
            **causal_of(method),
        )  # fmt: skip
        counted = reached.score >= logit(threshold)
        assert np.isin(advice.status[counted], ["FOUND", "NOT_NEEDED"]).all()


def test_same_seed_same_advice_whatever_the_company(town):
    everyone = recommend(town.bent, town.X, "gradient", 0.6, town.actions, settings=QUICK)
    again = recommend(town.bent, town.X, "gradient", 0.6, town.actions, settings=QUICK)
    assert np.array_equal(everyone.action, again.action, equal_nan=True)
    half = town_actions(len(town.X))
    half.lower, half.upper = half.lower[60:], half.upper[60:]
    alone = recommend(town.bent, town.X[60:], "linear_program", 0.6, half)
    together = recommend(town.bent, town.X, "linear_program", 0.6, town.actions)
    assert np.array_equal(alone.status, together.status[60:])


@pytest.mark.parametrize("kind", ["linear", "bent"])
def test_only_what_is_proven_is_called_cheapest(town, kind):
    advice = recommend(town.score(kind), town.X, threshold=0.6, actions=town.actions)
    found = advice.status == "FOUND"
    assert found.any()
    assert advice.proven_cheapest.tolist() == (found & (kind == "linear")).tolist()
    for method in METHODS[1:4]:
        other = recommend(town.score(kind), town.X, method, 0.6, town.actions)
        both = found & (other.status == "FOUND")
        if kind == "linear":
            assert (advice.cost[both] <= other.cost[both] + 1e-9).all()
        assert not (other.proven_cheapest & (method != "integer_program")).any()


def test_beyond_the_ceiling_the_action_is_shown_but_not_advised(town):
    free = recommend(town.linear, town.X, threshold=0.6, actions=town.actions)
    ceiling = float(np.nanmedian(free.cost[free.status == "FOUND"]))
    advice = recommend(town.linear, town.X, threshold=0.6, actions=town.actions, ceiling=ceiling)
    beyond = (free.status == "FOUND") & (free.cost > ceiling * (1.0 + 1e-9))
    assert 0 < beyond.sum() < (free.status == "FOUND").sum()
    assert (advice.status == np.where(beyond, "BEYOND_REACH", free.status)).all()
    assert np.array_equal(advice.action, free.action, equal_nan=True)
    refused = advice.status != "NOT_NEEDED"
    judged = audit(
        town.linear, town.X, np.ones(len(town.X)), advice, threshold=0.6, actions=town.actions
    ).recourse
    assert judged.recourse_neg.value == pytest.approx((free.status[refused] == "FOUND").mean())
    assert judged.within_ceiling.value == pytest.approx((advice.status[refused] == "FOUND").mean())
    assert not judged.broken_claims
    with pytest.raises(ParameterError, match="ceiling"):
        recommend(town.linear, town.X, actions=town.actions, ceiling=0.0)


def test_fewest_features_and_no_more_than_allowed(town):
    # The exact method over every set of features against the grid over every combination.
    sparse = recommend(
        town.linear, town.X, "integer_program", 0.7, town.actions, objective="sparsest"
    )
    found = sparse.status == "FOUND"
    plain = recommend(town.linear, town.X, "integer_program", 0.7, town.actions)
    assert np.array_equal(plain.status, sparse.status)
    assert (sparse.n_changed[found] <= plain.n_changed[found]).all()
    assert (sparse.n_changed[found] < plain.n_changed[found]).any()
    one = recommend(town.linear, town.X, "integer_program", 0.7, town.actions, max_features=1)
    assert np.array_equal(one.status == "FOUND", found & (sparse.n_changed == 1))
    assert one.n_changed.max() == 1
    # Sums of the largest gains bound what one feature can do: the rest is proven.
    assert "NOT_FOUND" not in one.status


@pytest.mark.parametrize("method", ["linear_program", "gradient"])
def test_heuristics_respect_max_features_too(town, method):
    advice = recommend(town.bent, town.X, method, 0.5, town.actions, max_features=2, settings=QUICK)
    found = advice.status == "FOUND"
    assert found.sum() > 10
    assert advice.n_changed[found].max() <= 2
    assert town.actions.contains(town.X, np.nan_to_num(advice.action))[found].all()


def test_advice_to_one_person_does_not_depend_on_the_others():
    """With more sets of features than are tried, everybody's own steepest ones are."""
    rng = np.random.default_rng(5)
    X = rng.normal(size=(7, 20))
    score = linear(rng.normal(size=20))
    far = rng.uniform(0.0, 3.0, size=(7, 20)) * (rng.random((7, 20)) < 0.3)
    actions = ActionSet(lower=-far, upper=far)
    asked = {"method": "integer_program", "threshold": 0.9, "max_features": 2}
    together = recommend(score, X, actions=actions, **asked)
    assert {"FOUND"} < set(together.status)
    for i in range(len(X)):
        alone = recommend(score, X[[i]], actions=actions.of_rows(np.array([i])), **asked)
        assert alone.status[0] == together.status[i]
        np.testing.assert_allclose(alone.action[0], together.action[i], rtol=1e-9)


@pytest.mark.parametrize("offset", [0.0, 1e5, 1e7])
def test_the_rule_itself_approves_whoever_follows_advice_in_original_units(offset):
    """Far from zero, a column's last digit is wider than the margin a search leaves."""
    rng = np.random.default_rng(3)
    X = rng.normal(size=(400, 4)) + offset
    y = np.where((X - offset) @ [1.0, -0.5, 0.7, 0.2] + rng.logistic(size=400) > 0.5, 1, 0)
    rule = StrategicClassifier(response="none").fit(X, y)
    advice = recommend(rule, X, actions=ActionSet(immutable=[3]))
    found = advice.status == "FOUND"
    assert found.sum() > 100
    assert (rule.predict((X + advice.action)[found]) == 1).all()
    assert (rule.predict(X[found]) == 0).all()
    assert not np.isin(advice.status, ["NOT_FOUND"]).any()


def test_other_options_differ_and_hold(town):
    advice = recommend(
        town.linear, town.X, "integer_program", 0.6, town.actions, options=3, max_features=2
    )
    assert len(advice.alternatives) == 2
    for other in advice.alternatives:
        found = other.status == "FOUND"
        assert found.any()
        assert (advice.status[found] == "FOUND").all()
        assert town.actions.contains(town.X, np.nan_to_num(other.action))[found].all()
        assert approved(town.linear, other.x_new(town.X)[found], 0.6).all()
        used = np.nan_to_num(advice.action) != 0.0, np.nan_to_num(other.action) != 0.0
        assert (used[0] != used[1]).any(axis=1)[found].all()
        assert (other.cost[found] >= advice.cost[found] - 1e-9).all()


@pytest.mark.parametrize(
    "cost",
    [
        QuadraticCost(3.0),
        MahalanobisCost(np.eye(7) + 0.3),
        MixtureCost(np.linspace(0.2, 1.0, 7), 0.5),
        LinearCost(np.linspace(0.2, 1.0, 7)),
    ],
    ids=lambda cost: cost.kind,
)
@pytest.mark.parametrize("method", ["linear_program", "gradient", "integer_program"])
def test_any_cost_prices_the_advice(town, method, cost):
    X, actions = town.X[:20], town_actions(20)
    advice = recommend(town.linear, X, method, 0.7, actions, cost, settings=QUICK)
    found = advice.status == "FOUND"
    assert found.any()
    assert np.allclose(advice.cost[found], cost.price(X, advice.x_new(X))[found])
    if method == "integer_program":
        other = recommend(town.linear, X, "exhaustive", 0.7, actions, cost, settings=QUICK)
        assert (advice.cost[found] <= other.cost[found] + 1e-4).all()


def test_people_who_have_to_come_back_do(town):
    score = linear([1.0, 1.0], -3.0)
    actions = ActionSet(lower=[-2.0, 0.0], upper=[2.0, 2.0], max_value=[1.0, 9.0])
    X = np.array([[2.0, 0.0], [0.0, 0.0], [2.0, -5.0]])
    for method in ("linear_program", "gradient", "integer_program", "exhaustive"):
        advice = recommend(score, X, method, 0.5, actions)
        assert advice.status.tolist() == ["FOUND", "FOUND", "PROVEN_NONE"], method
        assert advice.action[0, 0] <= -1.0 + 1e-9


def test_unbounded_people_can_always_reach_a_linear_score():
    score = linear([0.01, -0.5], -2.0)
    for method in ("linear_program", "gradient", "integer_program"):
        advice = recommend(score, np.zeros((1, 2)), method, 0.99, ActionSet(immutable=[1]))
        assert advice.status.tolist() == ["FOUND"], method


def test_dropout_is_off_and_stays_as_it_was(town):
    town.bent.train()
    first = recommend(town.bent, town.X[:30], actions=town_actions(30))
    second = recommend(town.bent, town.X[:30], actions=town_actions(30))
    assert town.bent.training
    assert np.array_equal(first.action, second.action, equal_nan=True)


def test_models_of_every_shape_are_read(town):
    fitted = SimpleNamespace(score_=town.linear, actions_=town.actions)
    stored = SimpleNamespace(score=town.linear)
    assert score_of(fitted) is score_of(stored) is score_of(town.linear) is town.linear
    assert actions_of_model(fitted, None) is town.actions
    with pytest.raises(ParameterError, match="ActionSet"):
        actions_of_model(stored, None)
    with pytest.raises(ParameterError, match="fit"):
        score_of(SimpleNamespace(score=lambda X: X))


class TestRefusals:
    def test_threshold(self, town):
        for threshold in (0.0, 1.0, -1.0, float("nan")):
            with pytest.raises(ParameterError, match="between 0 and 1"):
                recommend(town.linear, town.X, threshold=threshold, actions=town.actions)

    def test_unknown_method_names_the_nearest(self, town):
        with pytest.raises(UnknownNameError, match="did you mean 'gradient'"):
            recommend(town.linear, town.X, "gradients", actions=town.actions)
        with pytest.raises(UnknownNameError, match="sparsest"):
            recommend(town.linear, town.X, actions=town.actions, objective="sparse")

    def test_missing_values_and_widths(self, town):
        broken = town.X.copy()
        broken[[3, 7], 2] = np.nan
        with pytest.raises(DataError, match="3, 7") as raised:
            recommend(town.linear, broken, actions=town.actions)
        assert raised.value.rows == (3, 7)
        with pytest.raises(DataError, match="7 features"):
            recommend(town.linear, town.X[:, :5], actions=town.actions)
        with pytest.raises(ParameterError, match="7 features"):
            recommend(linear(np.ones(3)), np.zeros((120, 3)), actions=town.actions)

    def test_groups_that_are_not_one_hot(self, town):
        broken = town.X.copy()
        broken[5, 4:] = (np.array([1.0, 1.0, 0.0]) - 0.3) / 0.4
        with pytest.raises(DataError, match="one group") as raised:
            recommend(town.linear, broken, actions=town.actions)
        assert raised.value.rows == (5,)

    def test_empty_boxes_name_person_and_feature(self):
        actions = ActionSet(lower=[-1.0, -1.0], upper=[1.0, 1.0], min_value=[0.0, 0.0])
        X = np.array([[0.0, 0.0], [0.0, -3.0]])
        with pytest.raises(InfeasibleActionsError, match="feature 1 must change") as raised:
            recommend(linear([1.0, 1.0]), X, actions=actions)
        assert raised.value.rows == (1,)

    def test_constraints_nobody_can_meet_are_named(self):
        actions = ActionSet(lower=[-1.0] * 2, upper=[1.0] * 2, A=[[1.0, 0.0], [1.0, 1.0]],
                            b=[0.0, -3.0])  # fmt: skip
        with pytest.raises(InfeasibleActionsError, match=r"row 0.*constraint 1"):
            recommend(linear([1.0, 1.0]), np.zeros((2, 2)), actions=actions)

    def test_whole_numbers_without_room(self):
        actions = ActionSet(lower=[0.2], upper=[0.8], integer=[0])
        with pytest.raises(InfeasibleActionsError, match="whole units"):
            recommend(linear([1.0]), np.zeros((1, 1)), actions=actions)

    def test_too_many_combinations(self, town):
        with pytest.raises(ParameterError, match="combinations per person"):
            recommend(
                town.linear, town.X, "exhaustive", actions=town.actions,
                settings=Settings(grid=9000),
            )  # fmt: skip

    def test_counts(self, town):
        with pytest.raises(ParameterError, match="max_features"):
            recommend(town.linear, town.X, actions=town.actions, max_features=0)
        with pytest.raises(ParameterError, match="steps"):
            Settings(steps=0)

    def test_causal_needs_its_model(self, town):
        with pytest.raises(ParameterError, match="CausalModel"):
            recommend(town.linear, town.X, "causal", actions=town.actions)
        with pytest.raises(ParameterError, match="ignores consequences"):
            recommend(town.linear, town.X, actions=town.actions, **causal_of("causal"))


def test_nobody_and_everybody_approved(town):
    assert recommend(town.linear, np.zeros((0, 7)), actions=ActionSet()).action.shape == (0, 7)
    for method in ("linear_program", "gradient", "integer_program", "exhaustive"):
        advice = recommend(linear(np.zeros(7), 5.0), town.X, method, actions=town.actions)
        assert set(advice.status) == {"NOT_NEEDED"}
