"""The exact distribution of Kolmogorov and Smirnov's distance, ties and all."""

from itertools import combinations

import numpy as np
import pytest

from countermove.production.drift.two_samples import chance_to_stray, kolmogorov_test, snapped


def enumerated(one, other):
    """The p-value by trying every choice of who belongs to the first sample."""
    pooled = np.concatenate([one, other])
    places = np.unique(pooled)

    def distance(mark):
        first, second = np.sort(pooled[mark]), np.sort(pooled[~mark])
        sides = [np.searchsorted(part, places, "right") / len(part) for part in (first, second)]
        return np.abs(sides[0] - sides[1]).max()

    marks = []
    for chosen in combinations(range(len(pooled)), len(one)):
        mark = np.zeros(len(pooled), dtype=bool)
        mark[list(chosen)] = True
        marks.append(distance(mark))
    found = distance(np.arange(len(pooled)) < len(one))
    return found, np.mean(np.array(marks) >= found - 1e-12)


@pytest.mark.parametrize("levels", [2, 3, 50])
def test_p_value_is_that_of_all_rearrangements(levels):
    rng = np.random.default_rng(levels)
    for n, m in ((4, 7), (6, 5), (1, 8)):
        one, other = rng.integers(0, levels, n), rng.integers(0, levels, m)
        found = kolmogorov_test(one, other)
        distance, p = enumerated(one, other)
        assert found.distance == pytest.approx(distance)
        assert found.p_value == pytest.approx(p)


def test_without_ties_it_is_scipys_exact_test():
    from scipy.stats import ks_2samp

    rng = np.random.default_rng(0)
    one, other = rng.normal(size=60), rng.normal(0.5, size=45)
    expected = ks_2samp(one, other, method="exact")
    found = kolmogorov_test(one, other)
    assert found.distance == pytest.approx(expected.statistic)
    assert found.p_value == pytest.approx(expected.pvalue)


def test_far_tails_stay_positive_and_ordered():
    """What is no longer followed is counted: a p-value is never too small, and never zero."""
    base = np.arange(2_000)
    p_values = [kolmogorov_test(base, base + shift).p_value for shift in (100, 300, 900)]
    assert p_values == sorted(p_values, reverse=True)
    assert 0.0 < p_values[-1] < 1e-10


def test_equal_samples_do_not_differ():
    values = np.array([1, 1, 2, 5])
    assert kolmogorov_test(values, np.tile(values, 3)).p_value == 1.0


def test_compiled_and_plain_agree():
    ends = np.array([2, 3, 7, 12])
    one, other = np.array([0, 1, 2, 2, 3]), np.array([0, 2, 2, 3, 3, 3, 3])
    largest = round(kolmogorov_test(one, other).distance * 35)
    assert chance_to_stray(ends, 5, 7, largest) == pytest.approx(
        kolmogorov_test(one, other).p_value
    )


def test_people_on_the_boundary_stay_together():
    scores = np.array([[-2e-14], [0.0], [3e-13], [1.0]])
    steps = snapped(scores, np.ones(1), 1e-3)
    assert steps[:, 0].tolist() == [0, 0, 0, 1000]
