r"""What the look-ahead paper's code computes, errors included, to reproduce its curves.

Neither of its learners reaches the minimiser: the descent stops where the loss falls by less than
1e-7 a step, the quasi-Newton fit where its gradient is below 1e-5. What the paper reads as dynamics
in Figure 1 is the tolerance of these fits; `LogisticLearner` is the exact one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from countermove._types import Floats
from countermove.dynamics.crowd import Crowd
from countermove.dynamics.learners.linear import LogisticLearner
from countermove.errors import DataError, NotConvergedError, ParameterError


@dataclass(frozen=True)
class PublishedDescent(LogisticLearner):
    r"""Gradient descent from zero with step :math:`1/(\frac14 E|x|^2 + \lambda)`.

    It ends when the reported loss, whose penalty is :math:`\frac\lambda2|w|` instead of
    :math:`\frac\lambda2|w|^2`, falls by less than ``loss_decrease``; a step that raises it is
    repeated a tenth as long. The bias is not penalised.
    """

    loss_decrease: float = 1e-7  # as published
    max_descents: int = 1_000_000  # the published loop has no end
    name: ClassVar[str] = "published_descent"

    def fit(self, crowd: Crowd, start: Floats | None = None) -> Floats:
        """Return where the descent stops; it starts at zero, whatever ``start`` says."""
        self._check(crowd)
        columns = np.ascontiguousarray(self.design(crowd.X).T)
        mass, ridge = crowd.mass, self._ridge(len(columns))
        longest = 1.0 / (0.25 * float(mass @ (columns**2).sum(axis=0)) + self.penalty)

        def local(theta: Floats) -> tuple[float, Floats]:
            losses, first, _ = self._curve(theta @ columns, crowd.y)
            size = float(np.sqrt((ridge > 0.0) @ theta**2))
            return float(mass @ losses()) + 0.5 * self.penalty * size, mass * first

        theta, step = np.zeros(len(columns)), longest
        before, weighed = local(theta)
        for _ in range(self.max_descents):
            there = theta - step * (columns @ weighed + ridge * theta)
            loss, slopes = local(there)
            if loss > before:
                step *= 0.1
                continue
            fallen, theta, before, weighed, step = before - loss, there, loss, slopes, longest
            if fallen <= self.loss_decrease:
                return theta
        raise NotConvergedError(
            f"the published descent still falls by {fallen:.2g} a step after {self.max_descents} "
            f"steps; it stops at {self.loss_decrease:.2g}"
        )


@dataclass(frozen=True)
class PublishedQuasiNewton(LogisticLearner):
    """scikit-learn's lbfgs, started at zero each time; the bias is penalised too."""

    penalise_intercept: bool = True
    fit_tolerance: float = 1e-5  # as published
    name: ClassVar[str] = "published_quasi_newton"

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.penalise_intercept or not self.penalty > 0.0:
            raise ParameterError("the published fit has a penalty > 0, on the bias too")

    def fit(self, crowd: Crowd, start: Floats | None = None) -> Floats:
        """Return what lbfgs returns; it starts at zero, whatever ``start`` says."""
        from sklearn.linear_model import LogisticRegression

        self._check(crowd)
        if not np.isin(crowd.y, (0.0, 1.0)).all():
            raise DataError("the published fit reads labels 0 and 1")
        model = LogisticRegression(
            C=1.0 / (self.penalty * crowd.n), fit_intercept=False, tol=self.fit_tolerance,
            max_iter=10_000,
        )  # fmt: skip
        weight = None if crowd.weight is None else crowd.weight * crowd.n
        model.fit(self.design(crowd.X), crowd.y > 0.5, sample_weight=weight)
        return np.asarray(model.coef_[0], dtype=np.float64)


# Figure 2: a learner of 200 gradient steps from a model of
# ones, and an implicit gradient whose mixed derivative is contracted over the features instead of
# over the parameters.

DESCENT_STEPS, DESCENT_RATE = 200, 0.1
"""The code's learner."""
SMALL = 0.03
"""Below this penalty the code climbs longer and with longer steps."""
USUAL = np.full(5, 2.0)
"""The code climbs 200 steps of 0.05. The column moves little: 5 and 10 steps as long in all led to
utilities within 1e-4 of each other; all 200 were not tried."""
LONG = np.linspace(200.0, 1.0, 50)
"""In place of the code's 500 steps from 20 down to 0.1, likewise."""


def descent_in_code(crowd: Crowd) -> Floats:
    """Return the model after 200 gradient steps of 0.1, no penalty."""
    # The code starts from ones; its label is the opposite of ours, and so is the start.
    chances = LogisticLearner.chances
    theta = -np.ones(crowd.d)
    for _ in range(DESCENT_STEPS):
        theta = theta - DESCENT_RATE * ((chances(crowd.X @ theta) - crowd.y) @ crowd.X) / crowd.n
    return theta


def stackelberg_in_code(crowd: Crowd, column: int, penalty: float) -> float:
    """Return the utility that the code reports for the best strategy."""
    learner = LogisticLearner(intercept=False)
    X = crowd.X.copy()
    for step in LONG if penalty < SMALL else USUAL:
        here = crowd.moved(X)
        theta = descent_in_code(here)
        own, _ = learner.loss_slopes(theta, here)
        wrong = contracted_wrongly(here, theta, penalty)
        X[:, column] += step * (own[:, column] / crowd.n - wrong[:, column])
    theta = descent_in_code(crowd.moved(X))
    return learner.risk(theta, crowd.moved(X)) - penalty * float(theta @ theta)


def alignment_in_code(crowd: Crowd, theta: Floats, penalty: float) -> float:
    """Return what the code plots as the alignment: a squared length over *all* columns."""
    return float(np.sum(contracted_wrongly(crowd, theta, penalty) ** 2))


def contracted_wrongly(crowd: Crowd, theta: Floats, penalty: float) -> Floats:
    r"""Return :math:`\frac1n (r_i v_j + w_i x_{ij}\, \theta \cdot v)`, shape (n, d).

    The right one has :math:`w_i (x_i \cdot v)\,\theta_j` as its second term.
    """
    learner = LogisticLearner(intercept=False)
    slope = learner.gradient(theta, crowd) - 2.0 * penalty * theta
    v = learner.solve(theta, crowd, slope)
    chance = learner.chances(crowd.X @ theta)
    first, second = chance - crowd.y, chance * (1.0 - chance)
    found: Floats = np.outer(first, v) + (second * float(theta @ v))[:, None] * crowd.X
    return found / crowd.n


# Figure 3: a learner of 100 steps, unrolled,
#     theta_{t+1} = theta_t - a_t grad risk(theta_t), theta_0 = 0, a_t = max(0.001, 1/(t+1)).
# The gradient goes backwards through all steps; nothing here has converged.

RATES = np.maximum(0.001, 1.0 / np.arange(1, 101))
"""The learner's steps."""
CLIMBS, LENGTH = 25, 0.1
"""The code climbs 250 Adam steps of 0.01. A tenth as many of ten times the length come within a few
hundredths of its archived utilities; all 250 were not tried."""


def unrolled_descent(crowd: Crowd) -> list[Floats]:
    """Return all models of the learner's 100 steps."""
    path = [np.zeros(crowd.d)]
    for rate in RATES:
        residual = LogisticLearner.chances(crowd.X @ path[-1]) - crowd.y
        path.append(path[-1] - rate * (residual @ crowd.X) / crowd.n)
    return path


def utility_and_slope(crowd: Crowd, column: int, rows: NDArray[np.intp]) -> tuple[float, Floats]:
    """Return the members' mean loss at the last model, and its slope in their column."""
    learner, path = LogisticLearner(intercept=False), unrolled_descent(crowd)
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
    return float(np.mean(learner.losses(unrolled_descent(after)[-1], after.of_rows(rows))))
