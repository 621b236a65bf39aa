r"""Whether what a model leaves over between two histograms is a wave (Neyman's smooth test).

Pearson's test asks forty bins one by one and overlooks people who are a little off in many
neighbouring bins. Here the residuals are projected on the longest waves, cleared of what fitting
explains.
"""

from __future__ import annotations

import numpy as np

from countermove._types import Floats
from countermove.learning.people_estimation.profile import share_slopes
from countermove.learning.people_estimation.sample_models import SampleModel

WAVES = 12
"""Cosines over the share of people: the shortest is about as long as three bins."""
INDEPENDENT = 1e-2
"""Of the largest singular value: what fitting explains of a wave beyond this is left out."""


def wave_test(model: SampleModel, free: Floats) -> float:
    r"""Return the p-value of a chi-square test of the waves in the residuals of a fit.

    With residuals :math:`r_k = \sqrt{N}(\hat p_k - p_k)/\sqrt{p_k}` and an orthonormal basis
    :math:`V` of the waves cleared of the fit's own directions, :math:`\lVert V^\top r\rVert^2`
    is asymptotically at most a chi-square of as many degrees as :math:`V` has columns, as the
    covariance of two samples is at most the one assumed.

    Parameters
    ----------
    model, free
        A fitted model and its free numbers.
    """
    from scipy.stats import chi2

    levels, shares = model.levels, model.shares(free)
    roots = np.sqrt(shares)
    residuals = np.sqrt(levels.people) * (levels.shares - shares) / roots
    explained = _basis(np.vstack([share_slopes(model, free) / roots, roots]).T, 1e-6)
    middle = np.cumsum(shares) - 0.5 * shares
    waves = roots[:, None] * np.cos(np.pi * np.outer(middle, np.arange(1, WAVES + 1)))
    left = _basis(waves - explained @ (explained.T @ waves), INDEPENDENT)
    return float(chi2.sf(float(np.sum((left.T @ residuals) ** 2)), left.shape[1]))


def _basis(columns: Floats, least: float) -> Floats:
    """Return an orthonormal basis of the columns, weak directions left out."""
    sizes = np.linalg.norm(columns, axis=0)
    left, size, _ = np.linalg.svd(columns[:, sizes > 0.0] / sizes[sizes > 0.0], full_matrices=False)
    basis: Floats = left[:, size > least * size.max()]
    return basis
