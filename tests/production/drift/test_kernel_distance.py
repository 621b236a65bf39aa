"""The kernel distance: unbiased, and blind to which row is from where."""

import numpy as np
import pytest

from countermove.production.drift.two_samples import (
    SCORE_WIDTHS,
    WIDTHS,
    feature_map,
    permutation_test,
    squared_distance,
)


def test_distance_of_one_population_averages_to_zero():
    rng = np.random.default_rng(0)
    columns = rng.normal(size=(4_000, 4))
    mapped = feature_map(columns, rng)(columns)
    found = [squared_distance(*np.split(part, 2)) for part in np.split(mapped, 40)]
    assert abs(np.mean(found)) < 4.0 * np.std(found) / np.sqrt(len(found))


def test_random_features_approach_the_kernel():
    """Products of two people's features average to Gaussian kernels, one block each."""
    rng = np.random.default_rng(1)
    columns = rng.normal(size=(300, 3))
    two = (feature_map(columns, rng)(columns[:2]) for _ in range(200))
    products = np.mean([part @ part.T for part in two], axis=0)
    apart = (columns[0] - columns[1]) / columns.std(axis=0)
    lengths = np.linalg.norm(apart[:2]), abs(apart[2])
    pairs = (columns[:, None] - columns[None]) / columns.std(axis=0)
    typical = np.median(np.linalg.norm(pairs[..., :2], axis=2)), np.median(np.abs(pairs[..., 2]))
    expected = sum(
        np.mean([np.exp(-0.5 * (length / (width * unit)) ** 2) for width in widths])
        for length, unit, widths in zip(lengths, typical, (WIDTHS, SCORE_WIDTHS), strict=True)
    )
    assert products[0, 0] == pytest.approx(2.0, abs=1e-5)
    assert products[0, 1] == pytest.approx(expected, abs=0.03)


@pytest.mark.parametrize("column", [0, 3])
def test_a_shift_is_found_in_features_and_in_the_score(column):
    rng = np.random.default_rng(2)
    one, other = rng.normal(size=(400, 4)), rng.normal(size=(700, 4))
    other[:, column] += 0.5
    pooled = np.concatenate([one, other])
    mapped = feature_map(pooled, rng)(pooled)
    assert permutation_test(mapped[:400], mapped[400:], 99, rng) == 0.01
    assert permutation_test(mapped[400:], mapped[:400], 99, rng) == 0.01


def test_a_column_without_spread_does_no_harm():
    rng = np.random.default_rng(3)
    pooled = np.column_stack([np.ones(200), rng.normal(size=200), np.zeros(200)])
    mapped = feature_map(pooled, rng)(pooled)
    assert np.isfinite(mapped).all()
    assert permutation_test(mapped[:100], mapped[100:], 99, rng) > 0.01
