"""Bets on means and on shares in clusters."""

from __future__ import annotations

import numpy as np
import pytest

from countermove.certificates.betting import (
    RATIOS,
    betting_p_values,
    fewest_clusters,
    ratio_interval,
    ratio_p_values,
    upper_ratios,
)


def test_clusters_of_one_full_row_are_people():
    """With one row a cluster a share is a mean: one function bets on both."""
    misses = (np.random.default_rng(0).random((3, 200)) < 0.02).astype(float)
    rows = np.ones(misses.shape)
    np.testing.assert_allclose(
        ratio_p_values(misses, rows, 1, 0.1), betting_p_values(misses, 0.1), rtol=1e-9
    )


def test_clusters_without_a_row_to_count_change_nothing_but_the_order():
    rng = np.random.default_rng(1)
    sizes = rng.integers(1, 6, 150).astype(float)
    sums = np.zeros(150)
    padded = [np.concatenate([each, np.zeros(50)])[None] for each in (sums, sizes)]
    alone = ratio_p_values(sums[None], sizes[None], 5, 0.1)
    assert ratio_p_values(*padded, 5, 0.1)[0] == pytest.approx(alone[0], rel=1e-9)


@pytest.mark.parametrize("ratio", [0.05, 0.2])
def test_fewest_clusters_is_where_bets_begin_to_win(ratio):
    least = fewest_clusters(ratio, 0.05)
    for n, wins in ((least, True), (least - 1, False)):
        found = ratio_p_values(np.zeros((1, n)), np.full((1, n), 5.0), 5, ratio)[0]
        assert (found <= 0.05) == wins


def test_an_upper_ratio_lies_above_the_share_and_closes_in_on_it():
    rng = np.random.default_rng(2)
    bounds = []
    for n in (100, 1000, 10_000):
        sizes = rng.integers(1, 6, n).astype(float)
        sums = rng.binomial(sizes.astype(int), 0.2).astype(float)
        bounds.append(upper_ratios(sums[None], sizes[None], 5, 0.05)[0])
        assert bounds[-1] > sums.sum() / sizes.sum()
        assert bounds[-1] in RATIOS
    assert bounds[0] > bounds[1] > bounds[2]
    assert bounds[2] < 0.23


def test_nothing_counted_bounds_nothing():
    assert upper_ratios(np.zeros((1, 9)), np.zeros((1, 9)), 5, 0.05).tolist() == [1.0]


def test_an_interval_of_a_ratio_counts_clusters():
    """Households that answer as one are so many answers, however many rows they have."""
    rng = np.random.default_rng(2)
    hits, sizes = (rng.random(80) < 0.2).astype(float), rng.integers(1, 6, 80).astype(float)
    alone = ratio_interval(hits, np.ones(80), 0.05)
    assert ratio_interval(4.0 * hits, np.full(80, 4.0), 0.05) == pytest.approx(alone)
    low, high = ratio_interval(hits * sizes, sizes, 0.05)
    assert low < (hits * sizes).sum() / sizes.sum() < high
    assert ratio_interval(sizes - hits * sizes, sizes, 0.05) == pytest.approx((1 - high, 1 - low))


@pytest.mark.parametrize("correlation", [0.0, 0.5, 0.95])
def test_intervals_of_ratios_cover_in_clusters(correlation):
    """Of 200 draws of 200 households of up to 5 rows at least 184 at 95 %."""
    rng, held = np.random.default_rng(3), 0
    for _ in range(200):
        sizes = rng.integers(1, 6, 200)
        house = np.repeat(np.arange(200), sizes)
        alike = rng.random(200)[house] < correlation
        hit = np.where(alike, (rng.random(200) < 0.1)[house], rng.random(len(house)) < 0.1)
        low, high = ratio_interval(np.bincount(house, hit), sizes.astype(float), 0.05)
        held += low <= 0.1 <= high
    assert held >= 184
