"""Target shift: shares that answer a rule, classes that keep their looks."""

from __future__ import annotations

import numpy as np
import pytest

from countermove.errors import NotEnoughRowsError, ParameterError
from countermove.transfer.replicator import Replicator, Transition, shifted_pair
from countermove.transfer.sample import Sample


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
