"""Replicator dynamics and the paper's strategic people against the formulas of the paper."""

from __future__ import annotations

import numpy as np
import pytest
from tests.transfer.populations import induced_error

from countermove.errors import DataError, NotEnoughRowsError, ParameterError
from countermove.transfer.sample import Sample
from countermove.transfer.shifts import Replicator, Transition, UniformResponse, shifted_pair


def test_accuracy_as_fitness_is_section_5_3():
    """p(h)/p = TPR / (1 - Err), with 1 - Err and not Err (App. B.2 misprints it)."""
    p, tpr, fpr = 0.3, 0.8, 0.1
    error = p * (1 - tpr) + (1 - p) * fpr
    assert Replicator().share(p, tpr, fpr) == pytest.approx(p * tpr / (1 - error))


def test_rows_are_labels_and_columns_decisions():
    reward_accepted_good = Replicator(((1.0, 1.0), (1.0, 3.0)))
    bad, good = reward_accepted_good.fitness(0.5, 0.9)
    assert (bad, good) == (pytest.approx(1.0), pytest.approx(2.0))


def test_equal_fitness_changes_nothing():
    assert Replicator(((0.7, 0.7), (0.7, 0.7))).share(0.42, 0.9, 0.3) == pytest.approx(0.42)


@pytest.mark.parametrize(("rates", "label"), [((0.0, 0.2), r"\+1"), ((1.0, 1.0), "-1")])
def test_a_class_that_would_vanish_is_an_error(rates, label):
    with pytest.raises(ParameterError, match=f"label {label} is 0, so that class vanishes"):
        Replicator().share(0.4, *rates)


@pytest.mark.parametrize(
    "utility",
    [((1.0, -0.1), (0.0, 1.0)), ((1.0, np.nan), (0.0, 1.0)), ((1.0,), (0.0,))],
)
def test_utilities_that_make_no_sense_are_refused(utility):
    with pytest.raises(ParameterError, match="2 by 2"):
        Replicator(utility)


@pytest.mark.parametrize(
    "numbers", [(0.0, 0.5, 0.5), (1.2, 0.5, 0.5), (0.5, -0.1, 0.5), (0.5, 0.5, 1.1)]
)
def test_probabilities_outside_their_range_are_refused(numbers):
    with pytest.raises(ParameterError, match=r"must lie"):
        Replicator().share(*numbers)


@pytest.mark.parametrize("chance", [-0.1, 1.1, np.nan])
def test_chances_outside_their_range_are_refused(chance):
    with pytest.raises(ParameterError, match="values in"):
        Transition(((0.1, 0.2), (0.3, chance)))


def test_transition_mixes_the_four_chances():
    table = Transition(((0.15, 0.0), (0.8, 1.0)))
    assert table.share(0.5, 1.0, 0.0) == pytest.approx(0.5 * 1.0 + 0.5 * 0.15)


def test_the_rate_at_which_a_class_vanishes_is_named():
    with pytest.raises(ParameterError, match="at a true positive rate of 0"):
        Replicator().share(0.4, np.array([0.7, 0.0]), 0.2)
    with pytest.raises(ParameterError, match="false positive rate must lie"):
        Transition(((0.1, 0.2), (0.3, 0.4))).share(0.5, 0.5, 1.5)


def two_classes(n: int = 4_000) -> Sample:
    rng = np.random.default_rng(0)
    y = np.where(rng.random(n) < 0.4, 1.0, -1.0)
    return Sample(rng.normal(0.8 * y, 1.0), y)


def test_a_shifted_pair_has_the_new_share_and_the_old_classes():
    source = two_classes()
    pair = shifted_pair(source, Replicator())
    p = source.share(source.favourable)
    expected = Replicator().share(p, source.true_positive_rate(), source.false_positive_rate())
    assert pair.induced.share(pair.induced.favourable) == pytest.approx(expected)
    assert pair.induced.true_positive_rate() == pytest.approx(source.true_positive_rate())
    assert pair.induced.false_positive_rate() == pytest.approx(source.false_positive_rate())


def test_a_class_without_rows_is_an_error():
    with pytest.raises((NotEnoughRowsError, ParameterError)):
        shifted_pair(Sample(np.array([0.3, -0.2]), np.array([1.0, 1.0])), Replicator())


DRAWS, BINS = 300_000, 20
CASES = [(0.5, 0.2), (0.05, 0.2), (0.95, 0.2), (0.3, 0.6), (0.6, 0.9), (0.5, 1.0)]


def binned(people: UniformResponse) -> np.ndarray:
    fine = (np.arange(BINS * 500) + 0.5) / (BINS * 500)
    return people.weights(fine).reshape(BINS, 500).mean(axis=1)


@pytest.mark.parametrize(("threshold", "budget"), CASES)
def test_weights_are_the_density_of_the_draws(threshold, budget):
    people = UniformResponse(threshold, budget)
    rng = np.random.default_rng(0)
    landed = people.respond(rng.random(DRAWS), rng)
    counts, _ = np.histogram(landed, bins=BINS, range=(0.0, 1.0))
    expected = binned(people)
    error = np.sqrt(expected * BINS / DRAWS)
    assert np.all(np.abs(counts * BINS / DRAWS - expected) <= 4.5 * error + 1e-9)


@pytest.mark.parametrize(("threshold", "budget"), CASES)
def test_weights_of_a_distribution_have_mean_one(threshold, budget):
    assert UniformResponse(threshold, budget).mean_and_variance()[0] == pytest.approx(1.0)


@pytest.mark.parametrize("budget", [0.05, 0.2, 0.45])
def test_variance_is_two_thirds_of_the_budget_inside(budget):
    for threshold in (budget, 0.5, 1.0 - budget):
        people = UniformResponse(threshold, budget)
        x = np.linspace(0.0, 1.0, 999)
        assert people.weights(x) == pytest.approx(people.printed_weights(x))
        assert people.mean_and_variance()[1] == pytest.approx(2.0 * budget / 3.0)


@pytest.mark.parametrize(("threshold", "mean"), [(0.05, 1.05625), (0.95, 0.94375)])
def test_the_lemma_as_printed_is_no_density_near_the_edges(threshold, mean):
    """Reference figures, note 1: E[w] = 1.056 and .944 at B = .2, Var below 2B/3."""
    printed, variance = UniformResponse(threshold, 0.2).mean_and_variance(printed=True)
    assert printed == pytest.approx(mean)
    assert variance < 0.4 / 3.0


def rising(x):
    return np.clip(0.1 + 0.8 * x, 0.0, 1.0)


def test_labels_are_kept_or_follow():
    people = UniformResponse(0.5, 0.4)
    x = np.random.default_rng(1).random(50_000)
    pairs = {
        labels: people.pair(x, rising, np.random.default_rng(2), labels)
        for labels in ("kept", "follow")
    }
    kept, followed = pairs["kept"], pairs["follow"]
    assert np.array_equal(kept.source.label, kept.induced.label)
    stayed = kept.source.score == kept.induced.score
    assert np.array_equal(followed.source.label[stayed], followed.induced.label[stayed])
    # The chances rise, and everybody who moves moves up.
    assert followed.induced.share(followed.induced.favourable) > kept.induced.share(
        kept.induced.favourable
    )


@pytest.mark.parametrize("threshold", [0.5, 0.1, 0.95])
def test_induced_error_is_that_of_many_draws(threshold):
    people = UniformResponse(threshold, 0.2)
    rng = np.random.default_rng(3)
    pair = people.pair(rng.random(200_000), rising, rng)
    assert pair.induced.error() == pytest.approx(induced_error(people, rising), abs=0.005)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ((-0.1, 0.2), "threshold must lie in"),
        ((1.0, 0.2), "threshold must lie in"),
        ((0.5, 0.0), "budget must lie in"),
        ((0.5, 1.2), "budget must lie in"),
    ],
)
def test_thresholds_and_budgets_out_of_range_are_refused(arguments, says):
    with pytest.raises(ParameterError, match=says):
        UniformResponse(*arguments)


def test_features_and_chances_out_of_range_name_their_rows():
    people = UniformResponse(0.5, 0.2)
    with pytest.raises(DataError) as outside:
        people.weights(np.array([0.2, 1.3, np.nan]))
    assert outside.value.rows == (1, 2)
    with pytest.raises(DataError, match="chances"):
        people.pair(np.array([0.2, 0.9]), lambda x: 2.0 * x, np.random.default_rng(0))
