"""The units of the rows do not matter: raw, rescaled and standardised rows give the same rule."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_iris, load_wine
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold, cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from countermove import StrategicClassifier
from countermove.dynamics.learners.network import TrainedLearner
from countermove.errors import DataError, ParameterError
from countermove.learning import L2
from countermove.people import (
    ActionSet,
    LinearCost,
    MahalanobisCost,
    MixtureCost,
    QuadraticCost,
    WeightedQuadraticCost,
)
from countermove.recourse import (
    RecourseClassifier,
    calibrate_after_response,
    calibrate_pare,
    recommend,
    single_step,
)
from countermove.recourse.audit import audit
from countermove.recourse.causal import CausalModel
from countermove.response import AscentResponse, BestResponse, Population, RobustResponse
from countermove.scores import LinearScore, MLPScore, PartlyLinearScore
from countermove.transfer import induce

D = 4
UNIT, ORIGIN = np.array([1e4, 1e-3, 7.0, 1.0]), np.array([1e5, 3.0, -20.0, 0.5])
BOX = ActionSet(lower=[-2.0] * D, upper=[2.0] * D, max_value=[3.0] * D, immutable=[1])


@pytest.fixture(scope="module")
def people():
    """Return people in standard deviations of their own, in other units, and their labels."""
    rng = np.random.default_rng(11)
    X = StandardScaler().fit_transform(rng.normal(size=(240, D)) @ (np.eye(D) + 0.2))
    y = np.where(X @ [1.0, -0.5, 0.8, 0.2] + 0.5 * rng.logistic(size=240) > 0.0, "yes", "no")
    return X, X * UNIT + ORIGIN, y


def both(people, make):
    """Return the classifier fitted to standardised rows and to the same rows in other units."""
    X, raw, y = people
    return make().fit(X, y), make().fit(raw, y)


def agree(people, ours, theirs, before=None):
    X, raw, _ = people
    np.testing.assert_array_equal(ours.predict(X), theirs.predict(raw))
    np.testing.assert_allclose(
        ours.decision_function(X), theirs.decision_function(raw), rtol=1e-7, atol=1e-7
    )
    answers = ours.respond(X, before), theirs.respond(raw, before)
    np.testing.assert_array_equal(answers[0].moved, answers[1].moved)
    np.testing.assert_allclose(answers[0].cost, answers[1].cost, atol=1e-6)
    np.testing.assert_allclose(
        answers[0].x_new * UNIT + ORIGIN, answers[1].x_new, rtol=1e-7, atol=1e-6 * UNIT.max()
    )
    # Nobody who moved to approval loses it to rounding at the border.
    after = theirs.predict_after_response(raw, before)
    np.testing.assert_array_equal(theirs.predict(answers[1].x_new), after)
    np.testing.assert_array_equal(ours.predict_after_response(X, before), after)


COSTS = {
    "quadratic": (QuadraticCost(1.5), None),
    "weighted": (WeightedQuadraticCost([1.0, 2.0, 0.5, 3.0]), BOX),
    "mahalanobis": (MahalanobisCost(np.eye(D) + 0.3), ActionSet(only_increase=[0], immutable=[3])),
    "linear": (LinearCost([1.0] * D), BOX),
    "mixture": (MixtureCost([1.0] * D, 0.5), ActionSet(immutable=[3])),
}


@pytest.mark.parametrize("name", COSTS)
def test_the_same_rule_whatever_the_units_of_the_rows(people, name):
    cost, actions = COSTS[name]
    quick = {"optimiser": "adam", "max_epochs": 2} if name in ("linear", "mixture") else {}
    ours, theirs = both(people, lambda: StrategicClassifier(cost=cost, actions=actions, **quick))
    agree(people, ours, theirs)
    assert ours.choice_.kept == theirs.choice_.kept


KINDS = {
    "smooth": "smooth",
    "published": "published",
    "list": ["best", "smooth"],
    "population": Population(BestResponse(QuadraticCost(2.0), BOX), never=0.2, log_sd=0.4),
    "robust": RobustResponse([BestResponse(), BestResponse(QuadraticCost(4.0), BOX)]),
}


@pytest.mark.parametrize("kind", KINDS)
def test_the_same_rule_under_every_kind_of_people(people, kind):
    def make():
        quick = {"max_epochs": 2} if kind == "published" else {}
        return StrategicClassifier(response=KINDS[kind], selection="none", **quick)

    agree(people, *both(people, make), before="best" if kind in ("list", "robust") else None)


def test_prices_and_bounds_may_be_in_the_units_of_the_rows(people):
    """One standard deviation costs 1, said per standard deviation or per unit of the column."""
    X, raw, y = people
    spread, centre = raw.std(axis=0), raw.mean(axis=0)
    per_unit = WeightedQuadraticCost(1.0 / spread**2, units="original")
    own = ActionSet(
        lower=-2.0 * spread,
        upper=2.0 * spread,
        max_value=3.0 * spread + centre,
        immutable=[1],
        units="original",
    )
    ours = StrategicClassifier(cost=QuadraticCost(), actions=BOX).fit(X, y)
    for arguments in (
        {"cost": per_unit, "actions": own},
        {"response": BestResponse(per_unit, own)},
        {"response": BestResponse(QuadraticCost(), own), "cost": QuadraticCost(9.0)},
    ):
        agree(people, ours, StrategicClassifier(**arguments).fit(raw, y))
    with pytest.raises(Exception, match="units='original'"):
        StrategicClassifier(cost=per_unit, standardise=False).fit(raw, y)


def test_actions_that_know_their_rows_are_about_the_rows_given(people):
    """As those of a schema do: their rows are standardised once more, and so are they."""
    X, _, y = people
    half = X[::2] * 1.3 + 0.2  # not quite standardised
    known = ActionSet(lower=[-2.0] * D, upper=[2.0] * D, immutable=[1])
    known = known.standardised(np.zeros(D), np.ones(D))
    first = RecourseClassifier(known, hidden=(4,), max_epochs=1).fit(half, y[::2])
    assert first.actions_ is known
    advice = recommend(first, half, threshold=0.6)
    found = advice.status == "FOUND"
    assert found.any()
    assert known.contains(half[found], advice.action[found]).all()
    assert np.abs(advice.action[found]).max() <= 2.0 + 1e-9


def networks(**more):
    return RecourseClassifier(
        ActionSet(lower=[-0.75] * D, upper=[0.75] * D, immutable=[1]),
        hidden=(6,),
        max_epochs=2,
        batch_size=32,
        **more,
    )


RECOURSE = {
    "network": networks,
    "linear": lambda: networks(score=LinearScore(D), recourse_weight=0.3),
    "plain": lambda: RecourseClassifier(
        score=LinearScore(D), recourse_weight=0.0, response="best", class_weight="balanced"
    ),
}


@pytest.mark.parametrize("kind", RECOURSE)
def test_recourse_is_the_same_whatever_the_units_of_the_rows(people, kind):
    X, raw, y = people
    ours, theirs = both(people, RECOURSE[kind])
    np.testing.assert_array_equal(ours.predict(X), theirs.predict(raw))
    cut = float(np.quantile(ours.predict_proba(X)[:, 1], 0.6))
    pairs = [(ours, X), (theirs, raw)]
    advice = [recommend(model, rows, threshold=cut, options=2) for model, rows in pairs]
    np.testing.assert_array_equal(advice[0].status, advice[1].status)
    assert (advice[0].status == "FOUND").any()
    others = [given.alternatives[0] for given in advice]
    for one, other in (advice, others):
        np.testing.assert_allclose(one.cost, other.cost, rtol=1e-5, equal_nan=True)
    np.testing.assert_allclose(advice[0].action * UNIT, advice[1].action, rtol=1e-4, atol=1e-9)
    found = advice[1].status == "FOUND"
    assert theirs.actions_.contains(raw[found], advice[1].action[found]).all()
    moved = advice[1].x_new(raw)[found]
    assert (theirs.predict_proba(moved)[:, 1] >= cut).all()
    reports = [
        audit(model, rows, y, given, threshold=cut)
        for (model, rows), given in zip(pairs, advice, strict=True)
    ]
    assert not reports[1].recourse.broken_claims
    assert reports[1].recourse.outside == ()
    assert reports[0].robust_actions == reports[1].robust_actions
    assert reports[0].recourse.mean_cost == pytest.approx(reports[1].recourse.mean_cost, rel=1e-5)
    bounds = [calibrate_pare(model, rows).bound for model, rows in pairs]
    assert bounds[0] == pytest.approx(bounds[1], abs=1e-8)
    near = [calibrate_pare(model, rows, largest_action=0.1).bound for model, rows in pairs]
    assert near[0] == pytest.approx(near[1], abs=1e-8)
    assert near[0] < bounds[0]


@pytest.mark.parametrize("promise", ["can", "will"])
def test_promises_after_response_are_the_same(people, promise):
    X, raw, _ = people
    pairs = zip(both(people, StrategicClassifier), (X, raw), strict=True)
    crowd = Population(BestResponse(QuadraticCost(1.0), BOX), never=0.1, log_sd=0.3)
    found = [
        calibrate_after_response(
            model, rows, crowd, [0.05, 0.2, 0.5], promise=promise, actions=BOX, miss_rate=0.2
        )
        for model, rows in pairs
    ]
    np.testing.assert_allclose(found[0].miss_share, found[1].miss_share, atol=1e-9)
    np.testing.assert_array_equal(found[0].passed, found[1].passed)


def test_the_people_a_rule_will_meet_are_the_same(people):
    X, raw, y = people
    signs = np.where(y == "yes", 1.0, -1.0)
    ours, theirs = both(people, StrategicClassifier)
    pairs = [induce(ours, X, signs, "best"), induce(theirs, raw, signs, "best")]
    np.testing.assert_allclose(pairs[0].induced.score, pairs[1].induced.score, atol=1e-7)
    np.testing.assert_allclose(
        pairs[0].induced.features * UNIT + ORIGIN, pairs[1].induced.features, rtol=1e-7, atol=1e-9
    )


def test_whole_steps_and_categories_are_those_of_the_columns():
    """Two cards more are two cards, and one category is left for another."""
    rng = np.random.default_rng(3)
    cards, which = rng.integers(0, 9, 300), rng.integers(0, 3, 300)
    X = np.column_stack([cards, np.eye(3)[which], rng.normal(50.0, 9.0, 300)])
    y = 0.4 * cards + which + 0.05 * X[:, 4] + rng.logistic(size=300) > 6.0
    allowed = ActionSet(
        min_value=[0, 0, 0, 0, 0],
        max_value=[12, 1, 1, 1, 90],
        integer=[0],
        groups=[(1, 2, 3)],
        immutable=[4],
        units="original",
    )
    model = RecourseClassifier(allowed, hidden=(8,), max_epochs=3).fit(X, y)
    advice = recommend(model, X, method="integer_program", threshold=0.6)
    found = advice.status == "FOUND"
    assert found.any()
    steps = advice.action[found][:, :4]
    np.testing.assert_allclose(steps, np.round(steps), atol=1e-9)
    assert model.actions_.contains(X[found], advice.action[found]).all()
    # What training counted on is in the units of the rows too.
    taken = single_step(model.score_, X, model.actions_)
    assert set(np.unique(np.round(taken[:, 1:4], 9))) <= {-1.0, 0.0, 1.0}


def test_consequences_are_in_the_units_of_the_rows(people):
    X, raw, _ = people
    ours, theirs = both(people, RECOURSE["linear"])
    slope = 0.5
    models = [
        CausalModel.from_mapping({"c": {"causes": {"a": value}}}, list("abcd"))
        for value in (slope, slope * UNIT[2] / UNIT[0])
    ]
    advice = [
        recommend(model, rows, method="causal", causal=causal)
        for model, rows, causal in zip((ours, theirs), (X, raw), models, strict=True)
    ]
    np.testing.assert_array_equal(advice[0].status, advice[1].status)
    np.testing.assert_allclose(advice[0].effect * UNIT, advice[1].effect, rtol=1e-4, atol=1e-8)


def test_people_by_reference_are_converted(people):
    X, raw, _ = people
    known = AscentResponse(reference=X[:30]), AscentResponse(reference=raw[:30])
    converted = known[1].after_standardising(raw.mean(axis=0), raw.std(axis=0))
    np.testing.assert_allclose(converted.reference, known[0].reference, atol=1e-9)


@pytest.mark.parametrize(
    "score",
    [MLPScore(D, (5,), dropout=0.0), PartlyLinearScore(D, [0, 1])],
    ids=["folded", "wrapped"],
)
def test_a_score_that_is_no_line_reads_rows_as_given(people, score):
    ours, theirs = both(
        people,
        lambda: StrategicClassifier(score=score, response="none", max_epochs=2, optimiser="adam"),
    )
    X, raw, _ = people
    np.testing.assert_allclose(ours.decision_function(X), theirs.decision_function(raw), atol=1e-8)
    inside = theirs.standardised_score_
    assert type(inside) is type(score)
    slopes = [
        model.score_.gradient(*tensors(rows)).numpy() for model, rows in ((ours, X), (theirs, raw))
    ]
    np.testing.assert_allclose(slopes[1] * UNIT, slopes[0], atol=1e-8)
    again = StrategicClassifier(
        score=inside, response="none", start="given", max_epochs=0, optimiser="adam"
    )
    again.set_params(calibrate=False).fit(raw, people[2])
    np.testing.assert_allclose(again.decision_function(raw), theirs.decision_function(raw))


def tensors(*rows):
    import torch

    return [torch.from_numpy(part) for part in rows]


def test_bounds_per_person_and_rows_to_stop_by_are_converted_too(people):
    X, raw, y = people
    reach = np.random.default_rng(0).uniform(0.5, 2.0, (len(X), D))
    scale = raw[:200].std(axis=0)
    ours = StrategicClassifier(actions=ActionSet(lower=-reach, upper=reach))
    theirs = StrategicClassifier(
        actions=ActionSet(lower=-reach * scale, upper=reach * scale, units="original")
    )
    ours.fit(X[:200], y[:200], validation=(X[200:], y[200:]))
    theirs.fit(raw[:200], y[:200], validation=(raw[200:], y[200:]))
    np.testing.assert_array_equal(ours.predict(X), theirs.predict(raw))
    assert ours.history_.best.validation_loss == pytest.approx(theirs.history_.best.validation_loss)


@pytest.mark.parametrize("response", ["none", "best"])
def test_a_column_that_does_not_vary_keeps_its_unit_and_has_no_weight(people, response):
    _, raw, y = people
    still = np.column_stack([raw, np.full(len(raw), 0.1), np.full(len(raw), 1e9)])
    plain = StrategicClassifier(response=response).fit(raw, y)
    wider = StrategicClassifier(response=response).fit(still, y)
    assert wider.standardiser_.scale[D:].tolist() == [1.0, 1.0]
    np.testing.assert_allclose(wider.coef_[0, D:], 0.0, atol=1e-12)
    np.testing.assert_array_equal(plain.predict(raw), wider.predict(still))
    after = plain.predict_after_response(raw, "best")
    np.testing.assert_array_equal(after, wider.predict_after_response(still, "best"))


def test_bad_rows_and_settings_are_named(people):
    _, raw, y = people
    with pytest.raises(ParameterError, match="standardise is True or False, got 'yes'"):
        StrategicClassifier(standardise="yes").fit(raw, y)
    huge = raw.copy()
    huge[::2, 2], huge[1::2, 2] = 1e300, -1e300
    with pytest.raises(DataError, match="'x2' is too large; use a larger unit"):
        RecourseClassifier().fit(huge, y)
    wrapped = StrategicClassifier(PartlyLinearScore(D, [0]), response="none", max_epochs=1)
    with pytest.raises(ParameterError, match="standardised_score_ beside its standardiser_"):
        wrapped.fit(raw, y).score_.describe()


TABLES = {"cancer": load_breast_cancer, "wine": load_wine, "iris": load_iris}


@pytest.mark.parametrize("name", TABLES)
def test_blind_training_on_raw_rows_is_as_accurate_as_logistic_regression(name):
    X, y = TABLES[name](return_X_y=True)
    y = (y == 1).astype(int)
    folds = StratifiedKFold(5, shuffle=True, random_state=0)
    # C = 1 charges half the squared weights, over the rows of a fold: four fifths of them.
    usual = make_pipeline(StandardScaler(), LogisticRegression(tol=1e-8, max_iter=10_000))
    charged = {"regulariser": L2(1.0 / (0.8 * len(y))), "calibrate": False}
    free = LogisticRegression(C=np.inf, max_iter=100_000)
    right = {
        kind: np.mean(cross_val_predict(model, X, y, cv=folds) == y)
        for kind, model in (
            ("usual", usual),
            ("charged", StrategicClassifier(response="none", **charged)),
            ("free", make_pipeline(StandardScaler(), free)),
            ("default", StrategicClassifier(response="none")),
        )
    }
    assert right["charged"] == pytest.approx(right["usual"], abs=0.005)
    assert right["default"] > right["free"] - 0.005


def test_a_learner_of_the_dynamics_refuses_what_does_not_hold_its_units(people):
    from countermove.dynamics.crowd import Crowd

    _, raw, y = people
    crowd = Crowd(raw, (y == "yes").astype(float))
    linear = TrainedLearner(StrategicClassifier(response="none"))
    theta = linear.fit(crowd)
    expected = StrategicClassifier(response="none").fit(raw, y).decision_function(raw)
    with np.errstate(all="raise"):
        found = linear.score(theta)(*tensors(raw)).detach().numpy()
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-6)
    partly = StrategicClassifier(PartlyLinearScore(D, [0]), response="none", max_epochs=1)
    with pytest.raises(ParameterError, match="standardise=False"):
        TrainedLearner(partly).fit(crowd)
