"""The induced people: any rule, any response, labels kept or following."""

import re

import numpy as np
import pytest
import torch

from countermove import StrategicClassifier
from countermove.data.synthetic import GaussianPopulation
from countermove.errors import DataError, ParameterError
from countermove.learning import accuracy_after
from countermove.people import QuadraticCost
from countermove.response import BestResponse, NoResponse, Population, ScalarResponse
from countermove.scores import LinearScore
from countermove.transfer import fit_chances, induce
from countermove.transfer.induced import (
    Deployments,
    calibration,
    expected_chances,
    followed_labels,
    support,
)
from countermove.transfer.optimal import best_deployed

POPULATION = GaussianPopulation(centre=(1.0, 0.5))


@pytest.fixture(scope="module")
def people():
    return POPULATION.sample(2000, seed=1)


@pytest.fixture(scope="module")
def score():
    weights, bias = POPULATION.best_rule()
    made = LinearScore(2)
    with torch.no_grad():
        made.weight.copy_(torch.from_numpy(weights))
        made.bias.fill_(bias)
    return made


def true_chance(X):
    weights, bias = POPULATION.best_rule()
    return 1 / (1 + np.exp(-(X @ weights + bias)))


@pytest.mark.parametrize(
    "response", [BestResponse(QuadraticCost(2.0)), ScalarResponse(temperature=0.5), NoResponse()]
)
def test_kept_labels_give_the_accuracy_the_chain_reports(people, score, response):
    pair = induce(score, *people, response)
    found = accuracy_after(score, *people, response)
    assert pair.induced.error() == pytest.approx(1 - found.accuracy)
    assert np.array_equal(pair.source.label, pair.induced.label)
    assert pair.paired


def test_of_people_who_differ_one_type_per_row_is_drawn(people, score):
    differ = Population(BestResponse(QuadraticCost(2.0)), never=0.3, log_sd=0.5)
    found = accuracy_after(score, *people, differ)
    pairs = [induce(score, *people, differ, seed=seed) for seed in (0, 0, 1)]
    errors = [pair.induced.error() for pair in pairs]
    assert errors[0] == errors[1] != errors[2]
    assert errors == pytest.approx([1 - found.accuracy] * 3, abs=4 * 0.5 / np.sqrt(2000))
    # People chosen on and people judged on are of independent types.
    parts = [Deployments(score, *people, seed=0, stage=stage) for stage in ("judged", "chosen")]
    moved = [part.at(differ, "kept").induced.score for part in parts]
    assert np.mean(moved[0] != moved[1]) > 0.05


def test_people_answer_the_threshold_that_is_deployed(people, score):
    pair = induce(score, *people, "best", threshold=1.0)
    moved = pair.induced.score != pair.source.score
    assert np.all(pair.induced.score[moved] >= 1.0)
    assert np.all(pair.induced.score[moved] < 1.0 + 1e-6)


def test_following_labels_keep_the_chances_and_spare_those_who_stay(people, score):
    """Truth: P(Y | X) is logistic; after the move it must be so still."""
    pair = induce(score, *people, "best", "follow", chances=true_chance)
    stayed = pair.induced.score == pair.source.score
    assert np.array_equal(pair.induced.label[stayed], pair.source.label[stayed])
    expected = true_chance(pair.induced.features[~stayed]).mean()
    share = (pair.induced.label[~stayed] > 0).mean()
    assert share == pytest.approx(expected, abs=4 * np.sqrt(0.25 / (~stayed).sum()))
    # Everybody who moves here moves up, and a better chance never costs a label.
    assert np.all(pair.induced.label >= pair.source.label)


def test_expected_labels_are_the_mean_of_drawn_ones(people, score):
    drawn = [
        induce(score, *people, "best", "follow", chances=true_chance, seed=s).induced.error()
        for s in range(40)
    ]
    mean = induce(score, *people, "best", "follow", chances=true_chance, expected=True)
    assert mean.induced.error() == pytest.approx(np.mean(drawn), abs=4 * np.std(drawn) / 40**0.5)
    assert mean.weighted
    assert not mean.paired


def test_luck_is_common_to_all_rules_and_uniform():
    rng = np.random.default_rng(3)
    before = rng.random(20000)
    y = np.where(rng.random(20000) < before, 1.0, -1.0)
    after = np.clip(before + 0.2, 0, 1)
    new = followed_labels(before, after, y, seed=0)
    assert np.mean(new > 0) == pytest.approx(after.mean(), abs=0.01)
    assert np.array_equal(new, followed_labels(before, after, y, seed=0))
    kept = expected_chances(np.array([0.5, 0.5, 1.0, 0.0]), np.array([0.25, 0.75, 1.0, 0.0]),
                            np.array([1.0, -1.0, 1.0, -1.0]))  # fmt: skip
    assert kept.tolist() == [0.5, 0.5, 1.0, 0.0]


def test_a_classifier_and_deployments_give_the_same_people(people):
    X, y = people[0][:300], people[1][:300]
    clf = StrategicClassifier(response="none").fit(X, y)
    response = BestResponse()
    direct = induce(clf, X, y, response, "follow", chances=true_chance, threshold=0.3, seed=4)
    again = Deployments(clf, X, y, true_chance, 4).at(response, "follow", 0.3)
    assert np.array_equal(direct.induced.score, again.induced.score)
    assert np.array_equal(direct.induced.label, again.induced.label)


@pytest.mark.parametrize("labels", ["kept", "follow"])
@pytest.mark.parametrize(
    "response", [ScalarResponse(temperature=0.5), Population(BestResponse(), log_sd=0.5)]
)
def test_racing_thresholds_finds_the_one_that_errs_least_on_everybody(
    people, score, response, labels
):
    choosing = Deployments(score, *people, true_chance, stage="people chosen on")
    found = choosing.best(response, labels, 20)
    tried = {key[1:] for key in choosing._answers}
    fully = [t for t in choosing.thresholds(20) if (t, 3) in tried]
    assert 0 < len(fully) < 15  # Most are given up before everybody has answered them.
    best, pair = best_deployed(lambda t: choosing.at(response, labels, t), choosing.thresholds(20))
    assert found == best
    whole = induce(score, *people, response, labels, chances=true_chance, threshold=best)
    if not isinstance(response, Population):  # Whose types are drawn by stage.
        assert np.array_equal(whole.induced.score, pair.induced.score)
        assert np.array_equal(whole.induced.label, pair.induced.label)


def test_fitted_chances_pass_and_wrong_ones_fail_the_calibration_test(people):
    fitted = fit_chances(*POPULATION.sample(4000, seed=2))
    passed = calibration(fitted, *people)
    assert passed.supported is None  # not refuted is not supported
    assert "chances where nobody stood before" in passed.evidence
    assert calibration(lambda X: true_chance(X) ** 2, *people).supported is False


def test_people_beyond_the_source_are_counted(people, score):
    pair = induce(score, *people, NoResponse())
    assert support(pair).largest == 0.0
    shifted = induce(score, people[0] + 3.0, people[1], NoResponse()).induced
    found = support(type(pair)(pair.source, shifted, "kept", True))
    assert 0.2 < found.score <= 1.0
    assert 0.2 < found.features <= 1.0
    assert "beyond a feature" in found.words


def test_what_cannot_be_induced_says_why(people, score):
    X, y = people
    with pytest.raises(ParameterError, match="needs a model of P\\(Y \\| X\\)"):
        induce(score, X, y, "best", "follow")
    with pytest.raises(DataError, match="in \\[0, 1\\]") as caught:
        induce(score, X, y, "best", "follow", chances=lambda X: np.full(len(X), 1.5))
    assert len(caught.value.rows) == len(X)
    with pytest.raises(DataError, match="one per person"):
        induce(score, X, y, "best", "follow", chances=lambda X: np.zeros((len(X), 2)))
    with pytest.raises(ParameterError, match="holds no score"):
        induce("blind", X, y, "best")
    with pytest.raises(ParameterError, match="'kept' or 'follow'"):
        induce(score, X, y, "best", "changed")
    with pytest.raises(ParameterError, match="finite"):
        induce(score, X, y, "best", threshold=np.inf)
    with pytest.raises(DataError, match="labels must be"):
        induce(score, X, (y > 0).astype(float), "best")
    with pytest.raises(DataError, match="shape"):
        induce(score, X[:, :1], y, "best")


@pytest.mark.validity
@pytest.mark.quick_validity
def test_true_chances_are_refuted_as_rarely_as_said():
    rng, draws, level = np.random.default_rng(7), 1000, 0.05
    X = rng.normal(size=(draws, 400, 2))
    luck = rng.random((draws, 400))
    refuted = sum(
        calibration(true_chance, x, np.where(u < true_chance(x), 1.0, -1.0), level).supported
        is False
        for x, u in zip(X, luck, strict=True)
    )
    assert refuted <= draws * level + 3 * np.sqrt(draws * level * (1 - level))


@pytest.mark.validity
@pytest.mark.quick_validity
def test_the_error_called_detectable_is_found_with_80_per_cent_power():
    rng, draws = np.random.default_rng(8), 400
    found, seen = 0, 0.0
    for _ in range(draws):
        X = rng.normal(size=(800, 2))
        chance = np.clip(0.2 + 0.15 * X[:, 0], 0.1, 0.5)
        fair = calibration(lambda _, chance=chance: chance, X, drawn(rng, chance))
        told = re.search(r"power: ([0-9.]+)", fair.evidence)
        seen = seen if told is None else float(told.group(1))
        wrong = calibration(lambda _, chance=chance: chance, X, drawn(rng, chance + seen))
        found += wrong.supported is False
    assert 0.74 <= found / draws <= 0.9


def test_errors_that_cancel_are_not_seen_and_the_evidence_says_so():
    """Chances that ignore a column are right on average in every tenth, and pass."""
    rng = np.random.default_rng(9)
    X = rng.normal(size=(4000, 2))
    y = drawn(rng, np.where(X[:, 1] > 0.0, 0.9, 0.1))
    found = calibration(lambda rows: 0.5 + 1e-3 * np.tanh(rows[:, 0]), X, y)
    assert found.supported is None
    assert "errors that cancel within a tenth" in found.evidence


def drawn(rng, chance):
    return np.where(rng.random(len(chance)) < chance, 1.0, -1.0)
