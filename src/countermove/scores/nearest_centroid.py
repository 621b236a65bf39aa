"""The score of a nearest-centroid rule: one class against others, by distance to class means."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from countermove.errors import ParameterError
from countermove.scores.base import Score


class NearestCentroidScore(Score):
    r"""The log-odds of one class against others when :math:`p(c \mid x) \propto e^{-|x - \mu_c|}`.

    .. math:: s(x) = -|x - \mu_f| - \log \sum_{c \in R} e^{-|x - \mu_c|} + b

    With one rival in :math:`R` a favourable score says that :math:`\mu_f` is the nearer centroid;
    with several it says that class :math:`f` has at least half of the probability among them.

    Parameters
    ----------
    n_features
        Length of a centroid.
    n_classes
        Number of centroids, at least two; they start at zero.
    favourable
        Position of the favourable class.
    against
        Positions of its rivals; None: all other classes.
    """

    kind: ClassVar[str] = "nearest_centroid"

    def __init__(
        self,
        n_features: int,
        n_classes: int = 2,
        favourable: int = 1,
        against: Sequence[int] | None = None,
    ) -> None:
        super().__init__()
        rest = tuple(c for c in range(n_classes) if c != favourable)
        rivals = rest if against is None else tuple(int(c) for c in against)
        if n_classes < 2 or not 0 <= favourable < n_classes:
            raise ParameterError(
                f"a nearest-centroid score needs at least two classes and the position of one, "
                f"got {n_classes} classes and favourable={favourable}"
            )
        if not rivals or not set(rivals) <= set(rest):
            raise ParameterError(f"rivals of class {favourable} are among {rest}, got {rivals}")
        self.favourable, self.rivals = int(favourable), rivals
        self.centroids = nn.Parameter(torch.zeros(n_classes, n_features, dtype=torch.float64))
        self.bias = nn.Parameter(torch.zeros((), dtype=torch.float64))

    @property
    def n_features(self) -> int:
        """Number of features the score reads."""
        return int(self.centroids.shape[1])

    def forward(self, X: Tensor) -> Tensor:
        """Return the log-odds of the favourable class against its rivals."""
        away = torch.linalg.vector_norm(X[:, None, :] - self.centroids, dim=2)
        rivals = torch.logsumexp(-away[:, list(self.rivals)], dim=1)
        found: Tensor = -away[:, self.favourable] - rivals + self.bias
        return found

    def slope(self) -> None:
        """Return None: the score is affine in nothing."""
        return

    def describe(self) -> dict[str, Any]:
        """Return sizes and which class stands against which."""
        return {
            "n_features": self.n_features,
            "n_classes": int(self.centroids.shape[0]),
            "favourable": self.favourable,
            "against": list(self.rivals),
        }
