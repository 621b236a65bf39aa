r"""The look-ahead paper's Figure 3 as its code computes it: a learner of 100 steps, unrolled.

.. math:: \theta_{t+1} = \theta_t - a_t \nabla \mathrm{risk}(\theta_t), \quad \theta_0 = 0,
          \quad a_t = \max(0.001, 1/(t+1))

The gradient goes backwards through all steps; nothing here has converged.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from countermove._types import Floats
from countermove.dynamics.crowd import Crowd
from countermove.dynamics.learners import LogisticLearner

RATES = np.maximum(0.001, 1.0 / np.arange(1, 101))
"""The learner's steps."""
CLIMBS, LENGTH = 25, 0.1
"""The code climbs 250 Adam steps of 0.01. A tenth as many of ten times the length come within a few
hundredths of its archived utilities; all 250 were not tried."""


def descent(crowd: Crowd) -> list[Floats]:
    """Return all models of the learner's 100 steps."""
    path = [np.zeros(crowd.d)]
    for rate in RATES:
        residual = LogisticLearner.chances(crowd.X @ path[-1]) - crowd.y
        path.append(path[-1] - rate * (residual @ crowd.X) / crowd.n)
    return path


def utility_and_slope(crowd: Crowd, column: int, rows: NDArray[np.intp]) -> tuple[float, Floats]:
    """Return the members' mean loss at the last model, and its slope in their column."""
    learner, path = LogisticLearner(intercept=False), descent(crowd)
    members = crowd.of_rows(rows)
    theta = path[-1]
    own, _ = learner.loss_slopes(theta, members)
    slope = own[:, column] / len(rows)
    adjoint: Floats = members.mean(learner.row_gradients(theta, members))
    for rate, before in zip(RATES[::-1], path[-2::-1], strict=True):
        chance = LogisticLearner.chances(crowd.X @ before)
        first, second = chance - crowd.y, chance * (1.0 - chance)
        along = crowd.X @ adjoint
        bent = second * along
        pull = first[rows] * adjoint[column] + bent[rows] * before[column]
        slope -= rate * pull / crowd.n
        adjoint = adjoint - rate * (bent @ crowd.X) / crowd.n
    return float(np.mean(learner.losses(theta, members))), slope


def climb_in_code(crowd: Crowd, column: int, rows: NDArray[np.intp]) -> float:
    """Return the members' utility after the code's search, with Adam."""
    X = crowd.X.copy()
    first, second = np.zeros(len(rows)), np.zeros(len(rows))
    for step in range(1, CLIMBS + 1):
        _, slope = utility_and_slope(crowd.moved(X), column, rows)
        first = 0.9 * first + 0.1 * slope
        second = 0.999 * second + 0.001 * slope**2
        mean, spread = first / (1.0 - 0.9**step), np.sqrt(second / (1.0 - 0.999**step))
        X[rows, column] += LENGTH * mean / (spread + 1e-8)
    learner, after = LogisticLearner(intercept=False), crowd.moved(X)
    return float(np.mean(learner.losses(descent(after)[-1], after.of_rows(rows))))
