"""Divergences are what they are defined as, and say which are estimates."""

import numpy as np
import pytest

from countermove.errors import DataError, NotEnoughRowsError, ParameterError
from countermove.transfer.estimates import (
    binned_total_variation,
    kolmogorov_distance,
    linear_divergence_estimate,
    threshold_divergence,
    threshold_divergence_upper,
)
from countermove.transfer.sample import Sample


def sample(rng, n, centre=0.0, weighted=False):
    score = np.round(rng.normal(centre, 1.0, n), 1)
    return Sample(score, np.ones(n), weight=rng.random(n) if weighted else None)


@pytest.mark.parametrize("weighted", [False, True])
def test_threshold_divergence_is_the_supremum_over_pairs_of_thresholds(weighted):
    rng = np.random.default_rng(0)
    for _ in range(8):
        one, other = sample(rng, 15, 0.0, weighted), sample(rng, 10, 0.5)
        cuts = np.append(np.union1d(one.score, other.score), np.inf)
        brute = max(
            abs(
                one.share((one.score >= low) & (one.score < high))
                - other.share((other.score >= low) & (other.score < high))
            )
            for low in cuts
            for high in cuts
        )
        assert threshold_divergence(one, other) == pytest.approx(2 * brute)


def test_divergence_of_a_sample_with_itself_is_nothing_and_never_above_two():
    rng = np.random.default_rng(1)
    one, far = sample(rng, 50), sample(rng, 50, 100.0)
    assert threshold_divergence(one, one) == pytest.approx(0.0, abs=1e-12)
    assert threshold_divergence(one, far) == pytest.approx(2.0)
    assert threshold_divergence_upper(one, far, 0.05) == 2.0
    assert kolmogorov_distance(one, far) == pytest.approx(1.0)


def test_linear_estimate_lies_below_the_truth():
    """Two Gaussians a apart: linear rules see 2 (2 Phi(a/2) - 1), pairs of them at least that."""
    rng = np.random.default_rng(2)
    one, other = rng.normal(size=(4000, 3)), rng.normal([1.0, 0.0, 0.0], 1.0, size=(4000, 3))
    estimate = linear_divergence_estimate(one, other, paired=False)
    assert estimate == pytest.approx(2 * 0.3829, abs=0.08)
    assert linear_divergence_estimate(one, one.copy(), paired=True) < 0.15
    with pytest.raises(DataError, match="same columns"):
        linear_divergence_estimate(one, other[:, :2], paired=False)
    with pytest.raises(NotEnoughRowsError):
        linear_divergence_estimate(one[:3], other, paired=False)


def test_total_variation_needs_bins_that_refine_the_rule():
    rng = np.random.default_rng(3)
    one, other = sample(rng, 400), sample(rng, 400, 1.0)
    fine = binned_total_variation(one, other, np.array([-1.0, 0.0, 1.0]))
    coarse = binned_total_variation(one, other, np.array([0.0]))
    assert coarse == pytest.approx(abs(one.share(one.accepted()) - other.share(other.accepted())))
    assert fine >= coarse
    with pytest.raises(ParameterError, match="refine the rule"):
        binned_total_variation(one, other, np.array([-1.0, 1.0]))
