"""Standard errors from the outer product of people's scores (derivatives of log-likelihoods)."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from countermove._types import Floats
from countermove.learning.people_estimation.noise import Advances, Noise, from_free, to_free

STEP = 1e-4
"""Of the central differences, in logarithms and log-odds."""
DEAD = 1e-8
"""Information per person below this says nothing: the parameter sits on its floor."""


def standard_errors(
    seen: Advances,
    rows: Callable[[Floats, Noise], Floats],
    noise: Noise,
    free: Floats | None = None,
    valid: NDArray[np.bool_] | None = None,
) -> Floats:
    """Return standard errors: first those of ``free``, then those of the noise.

    Parameters
    ----------
    seen
        The people.
    rows
        Log-likelihood per person as a function of the free parameters and the noise.
    noise, free
        The fit; ``free`` are logarithms of further parameters.
    valid
        People whose likelihood is smooth in ``free``; the others are left out, which
        can only widen.
    """
    scores = gradients(seen, rows, noise, free)
    if valid is not None:
        scores = scores[valid]
    live = np.flatnonzero((scores**2).mean(axis=0) > DEAD)
    errors = np.full(scores.shape[1], np.inf)
    if live.size:
        information = scores[:, live].T @ scores[:, live]
        errors[live] = np.sqrt(np.diag(np.linalg.pinv(information, hermitian=True)))
    return errors


def gradients(
    seen: Advances,
    rows: Callable[[Floats, Noise], Floats],
    noise: Noise,
    free: Floats | None = None,
) -> Floats:
    """Return every person's derivative of the log-likelihood, shape (n, parameters)."""
    own = np.empty(0) if free is None else free
    at = np.concatenate([own, to_free(noise, seen)])

    def value(point: Floats) -> Floats:
        return rows(point[: len(own)], from_free(point[len(own) :], seen))

    columns = []
    for j in range(len(at)):
        step = np.zeros(len(at))
        step[j] = STEP
        columns.append((value(at + step) - value(at - step)) / (2.0 * STEP))
    return np.column_stack(columns)
