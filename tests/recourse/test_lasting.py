"""Advice that lasts: a margin at the new place against the next fit of the rule."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import norm

from countermove import StrategicClassifier
from countermove.errors import DataError, ModelFileError, ParameterError
from countermove.people import ActionSet, QuadraticCost
from countermove.recourse import RecourseClassifier, recommend
from countermove.recourse.advise import AdviceTerms
from countermove.recourse.audit import audit
from countermove.recourse.phrases import phrases_of
from countermove.recourse.problem import search_problem
from countermove.recourse.words import sentences
from countermove.scores.base import values
from countermove.scores.storage import PublishedModel, load_model, save_model

CONFIDENCE = 0.9
ACTIONS = ActionSet(lower=[-6.0] * 4, upper=[6.0] * 4, immutable=(2,))


def applicants(n=600, seed=0):
    """Return people whose fourth column says nothing about the label."""
    draws = np.random.default_rng(seed)
    X = draws.normal(size=(n, 4))
    chance = 1.0 / (1.0 + np.exp(-(X @ np.array([1.0, 0.8, -0.5, 0.0]))))
    return X, np.where(draws.random(n) < chance, 1, 0)


@pytest.fixture(scope="module")
def rule():
    """Return a logistic rule and people it refuses."""
    X, y = applicants()
    fitted = StrategicClassifier(response="none", standardise=False, calibrate=False).fit(X, y)
    others = applicants(300, seed=1)[0]
    return fitted, others[fitted.decision_function(others) < 0.0]


def test_advice_lies_beyond_the_threshold_by_its_margin(rule):
    """Recomputed by hand: score - overstatement >= z sqrt(2 h'Σh) at the new place."""
    fitted, X = rule
    advice = recommend(fitted, X, actions=ACTIONS, confidence=CONFIDENCE)
    assert advice.lasting.all()
    place, known = advice.x_new(X), fitted.covariance_
    h = np.column_stack([place, np.ones(len(X))])
    spread = np.sqrt(2.0 * np.einsum("ij,jk,ik->i", h, known.matrix, h))
    beyond = fitted.decision_function(place) - known.optimism(fitted.coef_[0], advice.action)
    assert (beyond >= norm.ppf(CONFIDENCE) * spread - 1e-9).all()
    np.testing.assert_allclose(advice.survival, norm.cdf(beyond / spread), rtol=1e-6)
    assert np.median(advice.survival) < 0.91  # and not much further


def test_it_costs_more_and_the_plain_advice_says_how_little_it_lasts(rule):
    """Without a margin the cheapest action survives about half of the refits, or fewer."""
    fitted, X = rule
    plain = recommend(fitted, X, actions=ACTIONS)
    advice = recommend(fitted, X, actions=ACTIONS, confidence=CONFIDENCE)
    assert (advice.cost > plain.cost).all()
    assert (plain.survival <= 0.5 + 1e-6).all()
    assert not plain.lasting.any()
    assert advice.proven_cheapest.all()


def test_whoever_cannot_have_the_margin_gets_the_plain_advice(rule):
    """A ceiling holds for the margin too, and narrow bounds leave no room for it."""
    fitted, X = rule
    ceiling = float(np.median(recommend(fitted, X, actions=ACTIONS).cost))
    plain = recommend(fitted, X, actions=ACTIONS, ceiling=ceiling)
    advice = recommend(fitted, X, actions=ACTIONS, ceiling=ceiling, confidence=CONFIDENCE)
    assert 0 < advice.lasting.sum() < (plain.status == "FOUND").sum()
    assert (advice.cost[advice.lasting] <= ceiling * (1 + 1e-6)).all()
    same = ~advice.lasting
    np.testing.assert_array_equal(advice.action[same], plain.action[same])
    np.testing.assert_array_equal(advice.status, plain.status)


@pytest.mark.parametrize("method", ["auto", "integer_program", "linear_program", "gradient"])
def test_every_method_finds_it(rule, method):
    """The margin raises the threshold of any search."""
    fitted, X = rule
    advice = recommend(fitted, X[:20], method, actions=ACTIONS, confidence=CONFIDENCE)
    assert advice.lasting.mean() > 0.9


def test_options_and_few_features_have_the_margin_too(rule):
    """Alternatives and sparse advice are searches like any other."""
    fitted, X = rule
    terms = {"actions": ACTIONS, "confidence": CONFIDENCE, "options": 2, "max_features": 2}
    advice = recommend(fitted, X[:20], **terms)
    assert advice.lasting.all()
    assert (advice.n_changed <= 2).all()
    found = advice.alternatives[0].status == "FOUND"
    assert found.any()
    assert advice.alternatives[0].lasting[found].mean() > 0.5


def test_round_amounts_and_preferred_causes_keep_the_margin(rule):
    """Whoever has it before has it after, and the three prices stand apart."""
    fitted, X = rule
    asked = {"actions": ACTIONS, "confidence": CONFIDENCE, "ceiling": 8.0}
    plain = recommend(fitted, X, actions=ACTIONS)
    bare = recommend(fitted, X, **asked)
    more = {"not_causal": [1], "causal_tolerance": 0.9, "digits": 2}
    advice = recommend(fitted, X, **asked, **more)
    lasts = bare.lasting
    assert 0.5 < lasts.mean() < 1.0
    np.testing.assert_array_equal(advice.lasting, lasts)
    assert (advice.survival[lasts] >= CONFIDENCE - 1e-9).all()
    assert (advice.status == bare.status).all()
    left = (advice.action[:, 1] == 0.0) & (bare.action[:, 1] != 0.0)
    assert left[lasts].any()
    moved = np.abs(advice.action[:, 0]) > 1e-9
    ends = advice.x_new(X)[moved, 0]
    assert np.mean(np.abs(ends - [float(f"{end:.1e}") for end in ends]) < 1e-9) > 0.9
    np.testing.assert_allclose(advice.least_cost, plain.cost, rtol=1e-6)
    np.testing.assert_allclose(advice.least_cost + advice.lasting_extra, bare.cost, rtol=1e-6)
    assert (advice.causal_extra[left] > 0.0).all()
    assert (advice.causal_extra[~left] == 0.0).all()
    np.testing.assert_allclose(advice.survival_without, plain.survival, rtol=1e-6)
    judged = audit(fitted, X, np.ones(len(X)), advice, actions=ACTIONS).recourse
    extra = advice.cost / advice.unrounded_cost - 1.0
    assert judged.rounding_cost == pytest.approx(
        {"median": float(np.median(extra)), "mean": float(extra.mean())}
    )
    assert abs(judged.rounding_cost["median"]) < 0.05 < np.median(bare.cost / plain.cost) - 1.0


def test_a_margin_of_probability_survives_rounding(rule):
    """What advice goes beyond the threshold is not given away for round numbers."""
    fitted, X = rule
    advice = recommend(fitted, X, actions=ACTIONS, margin=0.1, digits=2)
    assert (advice.probability_after >= 0.6 - 1e-6).all()
    assert (advice.cost != advice.least_cost).any()


def test_few_features_do_not_cost_the_margin(rule):
    """A pair of features without room for the margin must not win by being cheaper."""
    fitted, X = rule
    narrow = ActionSet(lower=[-6.0, -1.0, 0.0, -6.0], upper=[6.0, 1.0, 0.0, 6.0])
    alone = ActionSet(lower=[-6.0, 0.0, 0.0, 0.0], upper=[6.0, 0.0, 0.0, 0.0])
    asked = {"confidence": CONFIDENCE, "max_features": 1}
    can = recommend(fitted, X, actions=alone, confidence=CONFIDENCE).lasting
    assert can.any()
    assert recommend(fitted, X, actions=narrow, **asked).lasting[can].all()


def test_every_persons_target_follows_their_row(rule):
    """Rows taken out or repeated keep the threshold raised for them."""
    fitted, X = rule
    problem = search_problem(fitted.score_, X[:3], ACTIONS, QuadraticCost(), 0.0)
    raised = replace(problem, target=np.array([0.1, 0.2, 0.3]))
    np.testing.assert_array_equal(raised.rows(np.array([2, 0])).target, [0.3, 0.1])
    np.testing.assert_array_equal(raised.repeated(2).target, [0.1, 0.1, 0.2, 0.2, 0.3, 0.3])
    assert raised.inside(raised.feasible).target is raised.target


def test_units_of_the_rows_do_not_matter():
    """A classifier that standardises gives the same advice in other units."""
    X, y = applicants()
    scale = np.array([1.0, 10.0, 0.1, 5.0])
    fits = [StrategicClassifier(response="none").fit(rows, y) for rows in (X, X * scale)]
    refused = np.flatnonzero(fits[0].decision_function(X) < 0.0)[:30]
    first, second = (
        recommend(fit, rows[refused], actions=ActionSet(), confidence=CONFIDENCE)
        for fit, rows in zip(fits, (X, X * scale), strict=True)
    )
    np.testing.assert_allclose(first.action * scale, second.action, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(first.survival, second.survival, rtol=1e-6)


def test_advice_on_a_weight_that_may_be_zero_says_so(rule):
    """The fourth column is noise; who may only change it gets advice that rests on nothing."""
    fitted, X = rule
    only = {j: ActionSet(immutable=[k for k in range(4) if k != j]) for j in (0, 3)}
    for j, uncertain in ((0, False), (3, True)):
        advice = recommend(fitted, X[:20], actions=only[j])
        found = advice.status == "FOUND"
        assert found.any()
        assert (advice.uncertain_weight[found] == uncertain).all()


def test_only_advice_that_needs_the_uncertain_gain_rests_on_it(rule):
    """By hand: without what the noise column gains, the score would end below the threshold."""
    fitted, X = rule
    for confidence in (None, CONFIDENCE):
        advice = recommend(fitted, X, actions=ACTIONS, confidence=confidence)
        assert (advice.action[:, 3] != 0.0).all()  # every action uses the noise column a little
        gain = advice.action[:, 3] * fitted.coef_[0, 3]
        needed = fitted.decision_function(advice.x_new(X)) - gain < 0.0
        np.testing.assert_array_equal(advice.uncertain_weight, needed)
        # The cheapest action ends on the threshold and needs all of it; a margin makes up for it.
        assert needed.all() if confidence is None else not needed.all()


def test_the_words_say_it(rule, schema_of_columns):
    """One short sentence after the advice, for those people only."""
    fitted, X = rule
    schema, units = schema_of_columns
    advice = recommend(fitted, X[:4], actions=ACTIONS)
    known = np.array([True, False, True, False])
    rests = replace(advice, uncertain_weight=known)
    said = sentences(rests, X[:4], schema, units)
    remark = phrases_of()["uncertain"]
    assert [sentence.endswith(remark) for sentence in said] == known.tolist()


@pytest.fixture
def schema_of_columns():
    """Return a schema of four numbers and units in which they stand as they are."""
    from countermove.data.schema import Schema
    from countermove.data.standardise import Standardiser

    names = ("a", "b", "c", "d")
    features = {name: {"kind": "numeric", "change": "both"} for name in names}
    label = {"column": "y", "favourable": 1}
    schema = Schema.from_mapping("four", {"label": label, "features": features})
    return schema, Standardiser(np.zeros(4), np.ones(4), names)


@pytest.mark.parametrize("confidence", [0.0, 1.0, -0.1, 1.5, float("nan")])
def test_a_confidence_outside_its_range_is_refused(rule, confidence):
    """It is a probability; the terms of a run refuse it too."""
    fitted, X = rule
    with pytest.raises(ParameterError, match="confidence"):
        recommend(fitted, X, actions=ACTIONS, confidence=confidence)
    with pytest.raises(ParameterError, match="confidence"):
        AdviceTerms(confidence=confidence)


def test_a_model_without_covariance_is_refused_by_name(rule):
    """A bare score and a network have none; without a confidence they advise as ever."""
    fitted, X = rule
    with pytest.raises(ParameterError, match=r"LinearScore has none.*pass confidence=None"):
        recommend(fitted.score_, X, actions=ACTIONS, confidence=CONFIDENCE)
    network = RecourseClassifier(actions=ACTIONS, hidden=(4,), max_epochs=1).fit(*applicants(80))
    with pytest.raises(ParameterError, match="networks are fitted again"):
        recommend(network, X, confidence=CONFIDENCE)
    plain = recommend(fitted.score_, X, actions=ACTIONS)
    assert np.isnan(plain.survival).all()
    assert not plain.lasting.any()


@pytest.fixture(scope="module")
def network():
    """Return a network with refits, its rows, and people it refuses."""
    X, y = applicants(400)
    settings = {"hidden": (6,), "max_epochs": 12, "recourse_weight": 0.0, "selection": "loss"}
    fitted = RecourseClassifier(actions=ACTIONS, refits=6, **settings).fit(X, y)
    people, _ = applicants(120, seed=3)
    return fitted, people[fitted.decision_function(people) < 0.0]


def test_advice_of_a_network_lasts_by_refits(network):
    """Whoever lasts has gone far enough for most refits of the same rows."""
    fitted, refused = network
    plain = recommend(fitted, refused, actions=ACTIONS)
    sure = recommend(fitted, refused, actions=ACTIONS, confidence=0.9)
    assert np.isfinite(plain.survival[plain.status == "FOUND"]).all()
    lasts = sure.lasting & (sure.status == "FOUND")
    assert lasts.mean() > 0.5
    assert (sure.survival[lasts] >= 0.9 - 1e-9).all()
    assert (sure.cost[lasts] >= plain.cost[lasts] - 1e-6).all()
    moved = fitted.standardiser_.transform(sure.x_new(refused)[lasts])
    approved = np.mean([values(score, moved) >= 0.0 for score in fitted.refits_.scores], axis=0)
    assert approved.mean() > 0.9
    assert not sure.proven_cheapest.any()


def test_refits_are_stored_with_a_network_and_an_altered_file_is_refused(network, tmp_path):
    fitted, refused = network
    model = PublishedModel(
        fitted.standardised_score_, fitted.standardiser_, "digest", refits=fitted.refits_
    )
    save_model(model, tmp_path / "model")
    back = load_model(tmp_path / "model")
    X = fitted.standardiser_.transform(refused)
    for one, other in zip(fitted.refits_.scores, back.refits.scores, strict=True):
        np.testing.assert_array_equal(values(one, X), values(other, X))
    assert back.refits.rows == 400
    file = tmp_path / "model" / "refits.safetensors"
    file.write_bytes(file.read_bytes()[:-1] + b"x")
    with pytest.raises(ModelFileError, match=r"refits\.safetensors is truncated or was altered"):
        load_model(tmp_path / "model")


def test_refits_refuse_what_they_cannot_draw(network):
    X, y = applicants(80)
    bounds = ActionSet(lower=-np.ones((80, 4)), upper=np.ones((80, 4)))
    with pytest.raises(ParameterError, match="bounds of each person"):
        RecourseClassifier(actions=bounds, hidden=(4,), max_epochs=1, refits=3).fit(X, y)
    with pytest.raises(DataError, match="at least 3 of them"):
        RecourseClassifier(actions=ACTIONS, hidden=(4,), max_epochs=1, refits=2).fit(X, y)
