r"""The nearest-centroid learner: each class is its mean, in closed form.

.. math:: \mu_c = E[x \mid y = c], \qquad p(c \mid x) \propto e^{-|x - \mu_c|}

The means minimise the mean of :math:`\frac12|x - \mu_y|^2`, which is the learner's risk;
decisions, and what a query loses, follow from the probabilities (see `goals`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch
from numpy.typing import NDArray

from countermove._types import Floats
from countermove.dynamics.crowd import Crowd
from countermove.dynamics.learners.linear import Learner
from countermove.errors import DataError, NotEnoughRowsError, ParameterError, SolverError, shown
from countermove.scores.nearest_centroid import NearestCentroidScore


@dataclass(frozen=True)
class CentroidLearner(Learner):
    """Class means; ``theta`` holds them one after the other, shape (k d,).

    Labels are names of classes, not numbers: derivatives by the label are zero.

    Parameters
    ----------
    classes
        The labels, in the order of the centroids; at least two.
    favourable
        The class that `score` puts against the others; None: the last.
    """

    classes: tuple[float, ...] = (0.0, 1.0)
    favourable: float | None = None
    name: ClassVar[str] = "nearest centroid"

    def __post_init__(self) -> None:
        object.__setattr__(self, "classes", tuple(float(c) for c in self.classes))
        if len(set(self.classes)) != len(self.classes) or len(self.classes) < 2:
            raise ParameterError(
                f"a nearest-centroid learner needs at least two different classes, got "
                f"{list(self.classes)}"
            )
        if self.favourable is not None and self.favourable not in self.classes:
            raise ParameterError(
                f"favourable is one of the classes {list(self.classes)}, got {self.favourable}"
            )

    def centroids(self, theta: Floats) -> Floats:
        """Return the class means, shape (k, d)."""
        return theta.reshape(len(self.classes), -1)

    def codes(self, y: Floats) -> NDArray[np.intp]:
        """Return the position of each label among the classes, shape (n,)."""
        order = np.argsort(self.classes)
        names = np.asarray(self.classes)[order]
        found = np.minimum(np.searchsorted(names, y), len(names) - 1)
        wrong = np.flatnonzero(names[found] != y)
        if wrong.size:
            raise DataError(
                f"labels are among the classes {list(self.classes)}; not so in rows {shown(wrong)}",
                rows=wrong,
            )
        codes: NDArray[np.intp] = order[found]
        return codes

    def masses(self, crowd: Crowd) -> Floats:
        """Return how much each class counts, shape (k,)."""
        counted = np.bincount(self.codes(crowd.y), crowd.mass, len(self.classes))
        return counted.astype(np.float64)

    def fit(self, crowd: Crowd, start: Floats | None = None) -> Floats:
        """Return the class means."""
        codes, masses = self.codes(crowd.y), self.masses(crowd)
        if not (masses > 0.0).all():
            empty = [self.classes[c] for c in np.flatnonzero(~(masses > 0.0))]
            raise NotEnoughRowsError(f"class {shown(empty)} has no rows that count, hence no mean")
        means = np.zeros((len(masses), crowd.d))
        np.add.at(means, codes, crowd.mass[:, None] * crowd.X)
        return (means / masses[:, None]).ravel()

    def losses(self, theta: Floats, crowd: Crowd) -> Floats:
        """Return half the squared distance of each person to the mean of their class."""
        away = self._away(theta, crowd)
        return 0.5 * np.asarray(np.einsum("ij,ij->i", away, away))

    def risk(self, theta: Floats, crowd: Crowd) -> float:
        """Return the mean of the losses."""
        return float(crowd.mean(self.losses(theta, crowd)))

    def row_gradients(self, theta: Floats, crowd: Crowd) -> Floats:
        """Return the gradient of each person's loss, zero but in the block of their class."""
        rows = np.zeros((crowd.n, len(self.classes), crowd.d))
        rows[np.arange(crowd.n), self.codes(crowd.y)] = -self._away(theta, crowd)
        return rows.reshape(crowd.n, -1)

    def gradient(self, theta: Floats, crowd: Crowd) -> Floats:
        """Return the gradient of the risk."""
        blocks = np.zeros((len(self.classes), crowd.d))
        np.add.at(blocks, self.codes(crowd.y), -crowd.mass[:, None] * self._away(theta, crowd))
        return blocks.ravel()

    def solve(self, theta: Floats, crowd: Crowd, v: Floats) -> Floats:
        """Divide each block by what its class counts."""
        masses = self.masses(crowd)
        if not (masses > 0.0).all():
            raise SolverError(
                "the learner's Hessian is singular: no rows that count are of class "
                f"{shown(self.classes[c] for c in np.flatnonzero(~(masses > 0.0)))}; leave it out"
            )
        return (self.centroids(v) / masses[:, None]).ravel()

    def pull(self, theta: Floats, crowd: Crowd, v: Floats) -> tuple[Floats, Floats]:
        r"""Return :math:`-m_i v_{y_i}`, and zeros for labels."""
        by_x = -crowd.mass[:, None] * self.centroids(v)[self.codes(crowd.y)]
        return by_x, np.zeros(crowd.n)

    def loss_slopes(self, theta: Floats, crowd: Crowd) -> tuple[Floats, Floats]:
        r"""Return :math:`x_i - \mu_{y_i}`, and zeros for labels."""
        return self._away(theta, crowd), np.zeros(crowd.n)

    def score(self, theta: Floats) -> NearestCentroidScore:
        """Return the favourable class against all others."""
        means = self.centroids(theta)
        wanted = self.classes[-1] if self.favourable is None else self.favourable
        found = NearestCentroidScore(means.shape[1], len(means), self.classes.index(wanted))
        with torch.no_grad():
            found.centroids.copy_(torch.from_numpy(means.copy()))
        return found

    @property
    def strong_convexity(self) -> float:
        """Return 0: a class may count as little as it likes."""
        return 0.0

    def _away(self, theta: Floats, crowd: Crowd) -> Floats:
        return crowd.X - self.centroids(theta)[self.codes(crowd.y)]
