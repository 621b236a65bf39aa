"""Bounds beside the truth in populations whose every quantity is known."""

from __future__ import annotations

import numpy as np
import pytest
from tests.transfer.populations import induced_error

from countermove.errors import DataError, ParameterError
from countermove.experiments.transfer.known_answers import (
    GRID,
    Checked,
    proposition_5_3_both,
    random_law,
    strategic_bounds,
    strategic_weights,
    target_bounds,
)
from countermove.transfer.minimise import GaussianClasses
from countermove.transfer.shifts import Replicator, UniformResponse

MIDDLES = (np.arange(GRID) + 0.5) / GRID


def logistic(slope: float) -> np.ndarray:
    return 1.0 / (1.0 + np.exp(-slope * (MIDDLES - 0.5)))


def named(held: list[Checked]) -> dict[str, Checked]:
    return {one.name: one for one in held}


def test_weights_on_cells_are_exact():
    thresholds, weights = strategic_weights(0.2)
    assert weights.mean(axis=1) == pytest.approx(1.0)
    assert (thresholds[0], thresholds[-1]) == pytest.approx((0.2, 0.8))


def test_the_loss_is_that_of_the_continuous_population():
    held = named(strategic_bounds(logistic(12.0), 0.2))["4.2"]
    law = lambda x: 1.0 / (1.0 + np.exp(-12.0 * (x - 0.5)))  # noqa: E731
    errors = [induced_error(UniformResponse(k / GRID, 0.2), law) for k in range(40, 161)]
    assert held.truth == pytest.approx(errors[60] - min(errors), abs=1e-4)


def test_prop_4_7_as_printed_is_false_for_a_logistic_law():
    """Reference, note 2: B = .2, Diff .0194 > .0177; the factor 2 and the root put it right."""
    found = named(strategic_bounds(logistic(12.0), 0.2))
    printed, right = found["4.7 as printed"], found["4.7"]
    assert printed.truth == pytest.approx(0.0194, abs=5e-4)
    assert printed.bound == pytest.approx(0.0177, abs=5e-4)
    assert printed.violated
    assert not right.violated


def test_no_bound_is_violated_and_the_tighter_ones_are_tighter():
    rng = np.random.default_rng(0)
    for _ in range(200):
        found = named(strategic_bounds(random_law(rng), 0.2))
        assert not [h.name for h in found.values() if h.violated and not h.printed_false]
        assert found["4.2 tighter"].bound <= found["4.2"].bound + 1e-12


def test_theorem_4_6_says_nothing_about_strategic_people():
    """Reference, note 5: the accepted share rises by B/2, the label's by less."""
    rng = np.random.default_rng(1)
    values = [named(strategic_bounds(random_law(rng), 0.2))["3.3"].bound for _ in range(100)]
    assert max(values) == 0.0


def test_target_shift_bounds_hold():
    rng = np.random.default_rng(2)
    for _ in range(150):
        table = rng.uniform(0.05, 1.0, (2, 2)).tolist()
        held = target_bounds(
            rng.uniform(0.05, 0.95),
            Replicator((tuple(table[0]), tuple(table[1]))),
            GaussianClasses((0.0, rng.uniform(0.2, 4.0))),
            np.linspace(-2.0, 5.0, 71),
        )
        assert not [h.name for h in held if h.violated]
        found = named(held)
        assert found["5.1 sharper"].bound <= found["5.1"].bound + 1e-12


def test_prop_5_3_is_a_sum_and_no_product():
    rng, products = np.random.default_rng(3), 0
    for _ in range(500):
        (tpr_a, fpr_a), (tpr_b, fpr_b) = rng.uniform(0.02, 0.98, (2, 2))
        right, printed = proposition_5_3_both(
            rng.uniform(0.05, 0.95), ((tpr_a, fpr_a), (tpr_b, fpr_b))
        )
        assert not right.violated
        products += printed.violated
    assert products > 200


@pytest.mark.parametrize("budget", [0.0, 0.5, 0.123])
def test_budgets_off_the_grid_are_refused(budget):
    with pytest.raises(ParameterError, match="multiple"):
        strategic_weights(budget)


def test_laws_must_be_chances():
    with pytest.raises(DataError, match="chances"):
        strategic_bounds(np.full(GRID, 1.2), 0.2)
