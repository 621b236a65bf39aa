"""Setups 1 to 4 and Lemma A.3: closed forms against draws, and what happens at the edges."""

from __future__ import annotations

import numpy as np
import pytest

from countermove.errors import DataError, ParameterError
from countermove.transfer.uniform_response import UniformResponse

DRAWS, BINS = 300_000, 20
CASES = [(0.5, 0.2), (0.05, 0.2), (0.95, 0.2), (0.3, 0.6), (0.6, 0.9), (0.5, 1.0)]


def binned(people: UniformResponse) -> np.ndarray:
    fine = (np.arange(BINS * 500) + 0.5) / (BINS * 500)
    return people.weights(fine).reshape(BINS, 500).mean(axis=1)


@pytest.mark.parametrize("edge", ["renormalise", "clip"])
@pytest.mark.parametrize(("threshold", "budget"), CASES)
def test_weights_are_the_density_of_the_draws(threshold, budget, edge):
    people = UniformResponse(threshold, budget, edge)
    rng = np.random.default_rng(0)
    landed = people.respond(rng.random(DRAWS), rng)
    counts, _ = np.histogram(landed[landed < 1.0], bins=BINS, range=(0.0, 1.0))
    expected = binned(people)
    error = np.sqrt(expected * BINS / DRAWS)
    assert np.all(np.abs(counts * BINS / DRAWS - expected) <= 4.5 * error + 1e-9)
    assert np.mean(landed == 1.0) == pytest.approx(people.atom, abs=0.005)


@pytest.mark.parametrize(("threshold", "budget"), CASES)
def test_weights_of_a_distribution_have_mean_one(threshold, budget):
    assert UniformResponse(threshold, budget).mean_and_variance()[0] == pytest.approx(1.0)
    assert UniformResponse(threshold, budget, "clip").mean_and_variance()[0] == pytest.approx(1.0)


@pytest.mark.parametrize("budget", [0.05, 0.2, 0.45])
def test_variance_is_two_thirds_of_the_budget_inside(budget):
    for threshold in (budget, 0.5, 1.0 - budget):
        people = UniformResponse(threshold, budget)
        assert people.interior
        x = np.linspace(0.0, 1.0, 999)
        assert people.weights(x) == pytest.approx(people.printed_weights(x))
        assert people.mean_and_variance()[1] == pytest.approx(2.0 * budget / 3.0)


@pytest.mark.parametrize(("threshold", "mean"), [(0.05, 1.05625), (0.95, 0.94375)])
def test_the_lemma_as_printed_is_no_density_near_the_edges(threshold, mean):
    """Reference figures, note 1: E[w] = 1.056 and .944 at B = .2, Var below 2B/3."""
    printed, variance = UniformResponse(threshold, 0.2).mean_and_variance(printed=True)
    assert printed == pytest.approx(mean)
    assert variance < 0.4 / 3.0


def test_stopping_at_one_makes_an_atom_and_no_finite_variance():
    people = UniformResponse(0.95, 0.2, "clip")
    assert people.atom == pytest.approx(0.05625)
    assert people.mean_and_variance()[1] == np.inf


def test_moved_share_is_half_the_budget_inside():
    assert UniformResponse(0.5, 0.2).moved == pytest.approx(0.1)


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
    assert pair.induced.error() == pytest.approx(people.induced_error(rising), abs=0.005)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ((-0.1, 0.2), "threshold must lie in"),
        ((1.0, 0.2), "threshold must lie in"),
        ((0.5, 0.0), "budget must lie in"),
        ((0.5, 1.2), "budget must lie in"),
        ((0.5, 0.2, "wrap"), "edge is"),
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
