"""How far apart two populations are, as a class of rules sees it."""

from __future__ import annotations

import numpy as np

from countermove._types import Floats
from countermove.certificates.intervals import distribution_function_radius
from countermove.errors import DataError, NotEnoughRowsError, ParameterError
from countermove.transfer.sample import Sample


def threshold_divergence(one: Sample, other: Sample) -> float:
    r"""Return the H∆H-divergence for thresholds on the score, exactly, by one sort.

    Two thresholds disagree on an interval of scores, so

    .. math:: d = 2 \sup_{t \le u} |P(t \le s < u) - Q(t \le s < u)|
        = 2\,\bigl(\sup (F - G) - \inf (F - G)\bigr),

    twice Kuiper's statistic of the two score distributions.
    """
    gap = _gaps(one, other)
    return float(2.0 * (gap.max() - gap.min()))


def kolmogorov_distance(one: Sample, other: Sample) -> float:
    r"""Return :math:`\sup_t |F(t) - G(t)|` of the two score distributions."""
    return float(np.abs(_gaps(one, other)).max())


def threshold_divergence_upper(one: Sample, other: Sample, failure_probability: float) -> float:
    """Return a bound the true divergence exceeds with at most the failure probability.

    Both distribution functions stay within a band (Dvoretzky, Kiefer, Wolfowitz), each with
    half of the probability; the supremum and the infimum move by both bands.
    """
    half = 0.5 * failure_probability
    bands = sum(distribution_function_radius(sample.n, half) for sample in (one, other))
    return min(2.0, threshold_divergence(one, other) + 4.0 * bands)


def linear_divergence_estimate(one: Floats, other: Floats, paired: bool, seed: int = 0) -> float:
    r"""Return a *lower estimate* of the H∆H-divergence for linear rules.

    A logistic regression learns on one half to tell the populations apart and errs by
    :math:`\epsilon` (mean over both) on the other; the estimate is
    :math:`2 (1 - 2\epsilon)`, at least 0. The true divergence takes a supremum over pairs of
    rules and may be larger; no finite-sample bound follows.

    Parameters
    ----------
    one, other
        Features, shapes (n, d) and (m, d).
    paired
        Whether row i of both is the same person, who then stays in one half.
    seed
        Of the halves.
    """
    from sklearn.linear_model import LogisticRegression

    if one.ndim != 2 or other.ndim != 2 or one.shape[1] != other.shape[1]:
        raise DataError(f"expected features of the same columns, got {one.shape}, {other.shape}")
    if min(len(one), len(other)) < 4:
        raise NotEnoughRowsError(
            f"telling two populations apart needs 4 rows each, got {len(one)} and {len(other)}"
        )
    rng = np.random.default_rng(seed)
    first = rng.permutation(len(one)) < len(one) // 2
    second = first if paired else rng.permutation(len(other)) < len(other) // 2
    X = np.concatenate([one[first], other[second]])
    which = np.repeat([0.0, 1.0], [first.sum(), second.sum()])
    told = LogisticRegression(max_iter=500, class_weight="balanced").fit(X, which)
    missed = np.mean(told.predict(one[~first]) != 0.0), np.mean(told.predict(other[~second]) != 1.0)
    return float(max(0.0, 2.0 * (1.0 - sum(missed))))


def binned_total_variation(
    one: Sample, other: Sample, edges: Floats, threshold: float = 0.0
) -> float:
    r"""Return :math:`\tfrac12 \sum_k |p_k - q_k|` over bins of the score.

    It is below the total variation of the features; a bound on a rule may use it only if
    the rule is constant on every bin, so ``threshold`` must be one of the ``edges``.
    """
    if threshold not in edges:
        raise ParameterError(
            f"the bins must refine the rule: its threshold {threshold:g} is none of the edges"
        )
    shares = [
        np.bincount(np.searchsorted(edges, s.score, "right"), s.mass, len(edges) + 1)
        for s in (one, other)
    ]
    return float(0.5 * np.abs(shares[0] - shares[1]).sum())


def _gaps(one: Sample, other: Sample) -> Floats:
    """Return F - G before the first score and after every distinct one."""
    values = np.concatenate([one.score, other.score])
    steps = np.concatenate([one.mass, -other.mass])
    order = np.argsort(values, kind="stable")
    ends = np.append(values[order][1:] != values[order][:-1], True)
    return np.append(0.0, np.cumsum(steps[order])[ends])
