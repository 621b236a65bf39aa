"""Intervals cover as often as they say."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import binom, binomtest

from countermove.errors import ParameterError
from countermove.recourse.audit_shares import contrast, share, share_of

LEVEL = 0.9


@pytest.mark.parametrize("count", [0, 3, 40])
def test_the_interval_of_a_share_is_clopper_and_pearsons(count):
    wanted = binomtest(count, 40).proportion_ci(LEVEL, method="exact")
    found = share_of(count, 40, LEVEL)
    assert (found.low, found.high) == pytest.approx((wanted.low, wanted.high))


@pytest.mark.parametrize("truth", [0.03, 0.4, 0.95])
def test_the_interval_of_a_share_covers_by_exact_enumeration(truth):
    n = 40
    covered = [
        binom.pmf(k, n, truth)
        for k in range(n + 1)
        if share_of(k, n, LEVEL).low <= truth <= share_of(k, n, LEVEL).high
    ]
    assert sum(covered) >= LEVEL


def test_difference_and_ratio_cover_by_exact_enumeration():
    n, m, p, q = 25, 30, 0.7, 0.5
    shares = [share_of(k, n, LEVEL) for k in range(n + 1)]
    others = [share_of(k, m, LEVEL) for k in range(m + 1)]
    difference = ratio = 0.0
    for i, one in enumerate(shares):
        for j, other in enumerate(others):
            weight = binom.pmf(i, n, p) * binom.pmf(j, m, q)
            if weight < 1e-6:
                continue
            found = contrast(one, other)
            difference += weight * (found.difference_low <= p - q <= found.difference_high)
            top = np.inf if found.ratio_high is None else found.ratio_high
            ratio += weight * (found.ratio_low <= p / q <= top)
    assert difference >= LEVEL
    assert ratio >= LEVEL


def test_shares_know_when_there_is_nobody():
    nobody = share(np.zeros(0, bool))
    assert nobody.value is None
    assert (nobody.low, nobody.high) == (0.0, 1.0)
    assert contrast(nobody, share(np.ones(5, bool))).difference is None
    assert contrast(share(np.ones(5, bool)), share(np.zeros(5, bool))).ratio_high is None


def test_a_level_that_is_none_is_refused():
    with pytest.raises(ParameterError, match="level"):
        share_of(1, 2, 1.0)
