"""The compiled rows of the logistic loss for kinds of people who move along one direction each."""

from __future__ import annotations

import math

import numba


@numba.njit(cache=True, error_model="numpy", nogil=True)
def mixed_rows(y, scores, heed, shares, factors, reaches, first, second, bent, sums):  # type: ignore[no-untyped-def]
    """Add everybody's loss and its derivatives over the kinds; return the sum of the losses.

    ``factors`` is (K, n) or (K, 1); ``first`` and ``second`` (n,) and ``bent`` (n, K), the second
    derivative times the factor, are written; so are, per kind, the ``sums`` (K, 2) of the first
    derivative times the factor and of the second times its square.
    """
    total = 0.0
    many = factors.shape[1] > 1
    for i in range(y.shape[0]):
        first[i], second[i] = 0.0, 0.0
        care = heed[i] if heed.shape[0] > 1 else heed[0]
        for k in range(shares.shape[0]):
            factor = factors[k, i] if many else factors[k, 0]
            after = scores[i] + factor * reaches[k]
            odds = math.exp(-abs(after))
            likely = 1.0 / (1.0 + odds)
            right = y[i] * after >= 0.0
            weight = shares[k] * care
            total += weight * (math.log1p(odds) + (0.0 if right else abs(after)))
            slope = -y[i] * weight * likely * (odds if right else 1.0)
            bend = weight * odds * likely * likely
            first[i] += slope
            second[i] += bend
            bent[i, k] = bend * factor
            sums[k, 0] += slope * factor
            sums[k, 1] += bend * factor * factor
    return total
