"""What the look-ahead paper's code computes for collectives, errors included.

A learner of 200 gradient steps from a model of ones, and an implicit gradient whose
mixed derivative is contracted over the features instead of over the parameters.
"""

from __future__ import annotations

import numpy as np

from countermove._types import Floats
from countermove.dynamics.crowd import Crowd
from countermove.dynamics.learners import LogisticLearner

STEPS, RATE = 200, 0.1
"""The code's learner."""
SMALL = 0.03
"""Below this penalty the code climbs longer and with longer steps."""
USUAL = np.full(5, 2.0)
"""The code climbs 200 steps of 0.05. The column moves little: 5 and 10 steps as long in all led to
utilities within 1e-4 of each other; all 200 were not tried."""
LONG = np.linspace(200.0, 1.0, 50)
"""In place of the code's 500 steps from 20 down to 0.1, likewise."""


def descent(crowd: Crowd) -> Floats:
    """Return the model after 200 gradient steps of 0.1, no penalty.

    The code starts from ones; its label is the opposite of ours, and so is the start.
    """
    chances = LogisticLearner.chances
    theta = -np.ones(crowd.d)
    for _ in range(STEPS):
        theta = theta - RATE * ((chances(crowd.X @ theta) - crowd.y) @ crowd.X) / crowd.n
    return theta


def stackelberg_in_code(crowd: Crowd, column: int, penalty: float) -> float:
    """Return the utility that the code reports for the best strategy."""
    learner = LogisticLearner(intercept=False)
    X = crowd.X.copy()
    for step in LONG if penalty < SMALL else USUAL:
        here = crowd.moved(X)
        theta = descent(here)
        own, _ = learner.loss_slopes(theta, here)
        wrong = contracted_wrongly(here, theta, penalty)
        X[:, column] += step * (own[:, column] / crowd.n - wrong[:, column])
    theta = descent(crowd.moved(X))
    return learner.risk(theta, crowd.moved(X)) - penalty * float(theta @ theta)


def alignment_in_code(crowd: Crowd, theta: Floats, penalty: float) -> float:
    """Return what the code plots as the alignment: a squared length over *all* columns."""
    return float(np.sum(contracted_wrongly(crowd, theta, penalty) ** 2))


def contracted_wrongly(crowd: Crowd, theta: Floats, penalty: float) -> Floats:
    r"""Return :math:`\frac1n (r_i v_j + w_i x_{ij}\, \theta \cdot v)`, shape (n, d).

    The right one has :math:`w_i (x_i \cdot v)\,\theta_j` as its second term.
    """
    learner = LogisticLearner(intercept=False)
    wish = learner.gradient(theta, crowd) - 2.0 * penalty * theta
    v = learner.solve(theta, crowd, wish)
    chance = learner.chances(crowd.X @ theta)
    first, second = chance - crowd.y, chance * (1.0 - chance)
    found: Floats = np.outer(first, v) + (second * float(theta @ v))[:, None] * crowd.X
    return found / crowd.n
