"""Estimating the people from matched tables."""

from __future__ import annotations

import json

import numpy as np
import pytest
import yaml

from countermove import StrategicClassifier
from countermove.data.standardise import Standardiser
from countermove.data.synthetic import GaussianPopulation
from countermove.errors import CalibrationError
from countermove.learning.people_estimation import Noise, estimate_people, simulate_deployment
from countermove.params import SermParameters
from countermove.people import ActionSet, QuadraticCost, WeightedQuadraticCost
from countermove.response import BestResponse, NoResponse, Population, ScalarResponse

from .deployments import NOISY, RECORDED, SLOPE, UNIT, best, deployed, estimated, rule, smooth

PRICES = np.array([0.5, 1.0, 2.0, 1.0, 1.5])


def test_noiseless_best_responders_bracket_the_reach_exactly():
    score, X, after = deployed(best(1.3), n=1500)
    found = estimate_people(score, X, after, key=(np.arange(1500), np.arange(1500)))
    gap = -(X @ SLOPE - 0.8) / UNIT
    moved = np.any(after != X, axis=1)
    hardest, easiest = gap[moved].max(), gap[(gap > 0) & ~moved].min()
    assert found.response == "best"
    assert found.scale_interval.kind == "bracket"
    assert found.scale_interval.low == pytest.approx(2 / easiest**2, rel=1e-9)
    assert found.scale_interval.high == pytest.approx(2 / hardest**2, rel=1e-9)
    assert found.scale_interval.contains(1.3)
    assert not found.misspecified
    assert "for certain" in found.verdict


@pytest.mark.parametrize("noise", [RECORDED, NOISY], ids=["recorded", "measured"])
def test_scale_and_non_movers_of_best_responders(noise):
    found = estimated(best(2.0), noise, n=2500)
    assert found.response == "best"
    assert found.scale_interval.contains(2.0)
    assert found.scale == pytest.approx(2.0, rel=0.02)
    assert found.non_movers_interval.contains(0.2)
    assert found.noise.optimisation_error == pytest.approx(0.1, rel=0.2)
    assert found.noise.measurement == pytest.approx(noise.measurement, abs=0.01)
    assert found.identified
    assert not found.misspecified


@pytest.mark.parametrize("temperature", [pytest.param(0.2, marks=pytest.mark.slow), 0.5])
def test_temperature_of_smooth_responders(temperature):
    found = estimated(smooth(1.0, temperature), NOISY, n=2500, seed=1)
    assert found.response == "smooth"
    assert found.scale == pytest.approx(1.0, rel=0.1)
    assert found.temperature == pytest.approx(temperature, rel=0.1)
    assert found.comparison[0].weight > 0.99
    assert [line.name for line in found.comparison[:2]] == ["smooth", "best"]


@pytest.mark.slow
def test_smooth_responders_without_noise_are_solved_for():
    found = estimated(smooth(1.0, 0.5), n=1000)
    assert found.response == "smooth"
    assert found.scale == pytest.approx(1.0, rel=1e-6)
    assert found.temperature == pytest.approx(0.5, rel=1e-6)


@pytest.mark.parametrize("noise", [RECORDED, NOISY], ids=["recorded", "measured"])
def test_weights_are_read_from_the_direction_of_moves(noise):
    found = estimated(BestResponse(WeightedQuadraticCost(PRICES)), noise, n=2500, seed=2)
    along = SLOPE / UNIT
    assert found.scale == pytest.approx(1 / np.sum(along**2 / PRICES), rel=0.02)
    values = [weight.value for weight in found.weights]
    assert values == pytest.approx(PRICES, rel=0.1)
    assert all(weight.identified for weight in found.weights)
    assert isinstance(found.cost, WeightedQuadraticCost)


def test_equal_weights_are_not_dressed_up():
    found = estimated(best(), NOISY, n=600, seed=3)
    assert found.weights == ()
    assert isinstance(found.cost, QuadraticCost)


def test_bounds_and_immutable_features_are_respected():
    actions = ActionSet(
        min_value=np.full(5, -2.0), max_value=np.full(5, 2.0), only_increase=[0], immutable=[3]
    )
    X = np.clip(np.random.default_rng(0).normal(size=(1500, 5)), -2, 2)
    people = BestResponse(QuadraticCost(1.5), actions)
    after = simulate_deployment(rule(), X, people, Noise(non_movers=0.2))
    ids = np.arange(len(X))
    found = estimate_people(rule(), X, after, key=(ids, ids), actions=actions)
    assert found.scale_interval.contains(1.5)
    assert not found.misspecified
    assert found.warnings == ()


def test_original_units_at_the_border():
    score, X, after = deployed(best(), RECORDED, n=500)
    units = Standardiser(np.arange(5.0), np.array([1.0, 10.0, 100.0, 2.0, 5.0]), tuple("abcde"))
    frames = [units.inverse(table) for table in (X, after)]
    ids = np.arange(500)
    found = estimate_people(score, *frames, key=(ids, ids), units=units, cost="weighted_quadratic")
    assert found.scale_interval.contains(1.0)
    for weight, unit in zip(found.weights, units.scale, strict=True):
        assert weight.per_original_unit == pytest.approx(weight.value / unit**2)


def test_row_order_counts_for_nothing():
    score, X, after = deployed(best(), NOISY, n=200)
    ids, order = np.arange(200), np.random.default_rng(1).permutation(200)
    straight = estimate_people(score, X, after, key=(ids, ids))
    shuffled = estimate_people(score, X, after[order], key=(ids, ids[order]))
    assert straight.to_json() == shuffled.to_json()


@pytest.mark.parametrize(
    ("response", "noise", "bias", "reason"),
    [
        (NoResponse(), None, -0.8, "nobody moved"),
        (NoResponse(), Noise(measurement=0.05), -0.8, "nobody moved"),
        (best(), None, 30.0, "approved before they moved"),
        (best(0.02), Noise(non_movers=0.1), -0.8, "censored"),
    ],
    ids=["nobody", "nobody, noisy", "approved", "censored"],
)
def test_not_identifiable_is_said_and_cannot_be_trained_on(response, noise, bias, reason):
    found = estimated(response, noise, n=400, bias=bias)
    assert not found.identified
    assert "not identifiable from these rows because" in found.verdict
    assert reason in found.verdict
    with pytest.raises(CalibrationError, match=reason):
        found.population()
    said = yaml.safe_load(found.to_yaml())["run"]["params"]["serm"]
    with pytest.raises(ValueError, match="not_identified"):
        SermParameters.model_validate(said)
    json.dumps(found.to_json(), allow_nan=False)


def test_people_who_all_stand_alike_are_no_trouble():
    X = np.zeros((50, 5))
    found = estimate_people(rule(), X, X + 0.1, key=(np.arange(50), np.arange(50)))
    assert not found.identified


def test_no_allowed_move_reaches_approval():
    score, X, _ = deployed(best(), n=500)
    actions = ActionSet(lower=np.full(5, -1e-3), upper=np.full(5, 1e-3))
    refused = X[(X @ SLOPE) < 0.7]
    ids = np.arange(len(refused))
    found = estimate_people(score, refused, refused, key=(ids, ids), actions=actions)
    assert "allowed move that reaches" in found.verdict


def after_drift(X, after, rng):
    """Time passes: every feature of everybody drifts, and records are noisy."""
    return after + 0.3 + 0.1 * rng.standard_normal(X.shape)


def after_own_prices(X, after, rng):
    """Every person has a price of their own: log-sd 1 around a median of 1."""
    gap = -(X @ SLOPE - 0.8) / UNIT
    reach = np.sqrt(2.0) * np.exp(0.5 * rng.standard_normal(len(X)))
    crosses = (gap > 0) & (gap < reach)
    return X + np.where(crosses, gap, 0.0)[:, None] * SLOPE / UNIT


def after_halfway(X, after, rng):
    """People only go half of the way, and then only the near ones: no model here says so."""
    return X + 0.5 * (after - X)


def changed_people(changed):
    """Return the estimate of people whose records were changed."""
    score, X, after = deployed(best(), n=2500)
    strange = changed(X, after, np.random.default_rng(5))
    ids = np.arange(len(X))
    return estimate_people(score, X, strange, key=(ids, ids))


def test_drift_of_everybody_is_allowed_for():
    found = changed_people(after_drift)
    assert found.response == "best"
    assert found.scale_interval.contains(1.0)
    assert found.drift[0] == pytest.approx(0.3 * SLOPE.sum() / UNIT, abs=0.01)
    assert "drifted" in found.verdict
    assert found.weights == ()
    assert not found.misspecified


def test_prices_of_ones_own_are_estimated():
    found = changed_people(after_own_prices)
    assert found.scale_interval.contains(1.0)
    assert found.log_sd_interval.contains(1.0)
    assert found.log_sd_interval.low > 0.8
    assert not found.misspecified


def test_a_fit_that_is_not_refused_says_what_its_test_saw():
    """Of forty true deployments some have a p-value below 5 %: no refusal, but a doubt."""
    likely, doubtful = (estimated(best(), RECORDED, n=400, seed=seed) for seed in (0, 25))
    for found in (likely, doubtful):
        fit, said = found.fit, found.verdict
        assert not found.misspecified
        known = f"(p = {fit.p_value:.2g}; it refuses below {fit.level:g})"
        assert f"does not refuse the model {known}" in said
        assert f"where {int(fit.counts.sum())} people stand" in said
        assert "cannot see" in said
        assert ("which is a doubt" in said) == (fit.p_value < 0.05) == (found is doubtful)


def test_people_who_go_half_of_the_way_do_not_fit():
    found = changed_people(after_halfway)
    assert found.misspecified
    assert "does not fit" in found.verdict
    assert [misfit.name for misfit in found.fit.misfits] == ["stop short"]


def test_people_who_do_not_move_along_one_line_are_noticed():
    """Half of them pay with one feature, half with another: no one set of weights does that."""
    score, X, _ = deployed(best(), n=1000)
    gap = -(X @ SLOPE - 0.8) / UNIT
    crosses = (gap > 0) & (gap < 1.0)
    feature = np.where(np.arange(1000) % 2 == 0, 0, 4)
    after = X.copy()
    rows = np.flatnonzero(crosses)
    after[rows, feature[rows]] += gap[rows] * UNIT / SLOPE[feature[rows]]
    found = estimate_people(score, X, after, key=(np.arange(1000), np.arange(1000)))
    assert any("along one line" in warning for warning in found.warnings)
    assert "along one line" in found.verdict


def test_immutable_features_that_changed_are_named_with_their_rows():
    score, X, after = deployed(best(), RECORDED, n=400)
    actions = ActionSet(immutable=[3])
    after = simulate_deployment(score, X, BestResponse(QuadraticCost(), actions))
    after[[7, 11], 3] += 1.0
    found = estimate_people(score, X, after, key=(np.arange(400), np.arange(400)), actions=actions)
    assert any("'x3'" in text and "rows 7, 11" in text for text in found.warnings)


@pytest.mark.slow
def test_population_mixes_movers_and_non_movers_and_trains():
    found = estimated(best(2.0), NOISY, n=1500)
    people = found.population()
    assert isinstance(people, Population)
    assert [kind.name for kind in people.kinds] == ["best"]
    assert people.never == pytest.approx(0.2, abs=0.05)
    scales = [float(member.cost.scale) for member in found.uncertainty_set()]
    assert scales[0] < found.scale < scales[-1]
    X, y = GaussianPopulation((1.0, 0.5, 0.0, 0.0, 0.3)).sample(200, seed=1)
    for trained_for in (people, found.uncertainty_set()):
        clf = StrategicClassifier(response=trained_for).fit(X, y)
        assert 0.5 < clf.score_after_response(X, y) <= 1.0


@pytest.mark.parametrize("robust", [False, True])
@pytest.mark.parametrize(
    "people", [best(2.0), pytest.param(smooth(1.0, 0.3), marks=pytest.mark.slow)]
)
def test_yaml_is_a_run_configuration_that_builds_the_population(people, robust):
    found = estimated(people, NOISY, n=800)
    said = yaml.safe_load(found.to_yaml("tiny", robust))["run"]
    assert (said["pipelines"], said["params"]["dataset"]) == ("serm", "tiny")
    parameters = SermParameters.model_validate(
        said["params"]["serm"] | {"actions": {"kind": "free"}}
    )
    built = parameters.build(schema=None, standardiser=None)
    expected = found.uncertainty_set() if robust else found.population().kinds
    parts = built.members if robust else built.kinds
    assert [member.name for member in parts] == [member.name for member in expected]
    for ours, theirs in zip(parts, expected, strict=True):
        if isinstance(theirs, BestResponse | ScalarResponse):
            assert float(ours.cost.scale) == pytest.approx(float(theirs.cost.scale), rel=1e-5)
    if not robust:
        assert built.never == pytest.approx(found.non_movers, rel=1e-5)
        assert built.log_sd == pytest.approx(found.log_sd, rel=1e-5)
    held, region = built.confidence, found.confidence_set(0.975)
    assert (held.level, held.movers.name) == (0.975, region.movers.name)
    assert len(held.populations) == len(region.populations)
    assert held.words == region.words


@pytest.mark.slow
def test_training_on_the_estimate_is_as_good_as_on_the_truth():
    truth = BestResponse(QuadraticCost(2.0))
    found = estimated(truth, NOISY)
    population = GaussianPopulation((0.9, 0.5, 0.0, 0.2, 0.3))
    X, y = population.sample(1200, seed=3)
    X_test, y_test = population.sample(4000, seed=4)
    known = Population(truth, never=0.2)
    accuracy = [
        StrategicClassifier(response=people)
        .fit(X, y)
        .score_after_response(X_test, y_test, response=known)
        for people in (known, found.population())
    ]
    assert accuracy[1] > accuracy[0] - 0.01
