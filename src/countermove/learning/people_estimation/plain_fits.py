"""The candidates without an answer to the rule: nobody moves, or everybody drifts."""

from __future__ import annotations

import numpy as np

from countermove.learning.people_estimation.candidates import Candidate
from countermove.learning.people_estimation.noise import Advances, Noise, fit_noise


def fit_none(seen: Advances, start: Noise) -> Candidate:
    """Fit measurement noise and strays to people of whom none answers the rule."""
    nobody, nowhere = np.zeros(len(seen.values), dtype=bool), np.zeros(len(seen.values))
    noise, likelihood = fit_noise(seen, nowhere, nobody, start)
    quiet = Noise(measurement=noise.measurement, strays=noise.strays)
    parameters = 1 if seen.exact else 2
    return Candidate("none", likelihood, parameters, quiet, nowhere, nobody)


def fit_drift(seen: Advances) -> Candidate:
    r"""Fit :math:`a \sim N(\mu, \sigma^2)`, whoever and wherever they are; some may stand still.

    Who wins against this moved because of the rule, not because time passed.
    """
    moved = seen.values[~seen.still] if seen.exact else seen.values
    n, k = len(seen.values), len(moved)
    centre = float(moved.mean()) if k else 0.0
    deviation = max(float(moved.std()) if k else 0.0, 1e-9 * seen.spread)
    likelihood = -k * (np.log(deviation * np.sqrt(2 * np.pi)) + 0.5)
    for count in (k, n - k):
        likelihood += count * np.log(count / n) if count else 0.0
    mean = np.full(n, centre)
    noise = Noise(non_movers=1.0 - k / n, measurement=deviation)
    everybody = np.ones(n, dtype=bool)
    # One parameter more than "nobody moves", of which it is the shifted version.
    return Candidate("drift", float(likelihood), 3, noise, mean, everybody)
