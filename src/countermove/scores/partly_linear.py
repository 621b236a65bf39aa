"""Linear in what people can change, any network in what they cannot.

The form under which strategic training stays exact for non-linear scores
(SERM, section 3.3.1): movement happens in the linear part only.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from countermove.errors import ParameterError
from countermove.scores.base import Score


class PartlyLinearScore(Score):
    r""":math:`s(x) = w \cdot x_{movable} + \phi(x_{fixed}) + b`.

    Parameters
    ----------
    n_features
        Number of features in all.
    movable
        Positions of the features people can change; the network never sees them.
    hidden
        Widths of the tanh layers of :math:`\phi`.
    generator
        Draws the start; without one ``w`` is zero and the network has torch's default start.
    """

    kind: ClassVar[str] = "partly_linear"

    def __init__(
        self,
        n_features: int,
        movable: Sequence[int],
        hidden: Sequence[int] = (16,),
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        self.movable = sorted({int(position) for position in movable})
        self.fixed = [j for j in range(n_features) if j not in self.movable]
        if any(not 0 <= j < n_features for j in self.movable) or not self.fixed:
            raise ParameterError(
                f"movable positions must lie in 0…{n_features - 1} and leave at least one fixed "
                f"feature for the network, got {list(movable)}; use LinearScore if all can move"
            )
        self.hidden = tuple(int(width) for width in hidden)
        self.weight = nn.Parameter(torch.zeros(len(self.movable), dtype=torch.float64))
        self.bias = nn.Parameter(torch.zeros((), dtype=torch.float64))
        self.network = _tanh_network(len(self.fixed), self.hidden)
        if generator is not None:
            self._draw(generator)

    @property
    def n_features(self) -> int:
        """Number of features the score reads."""
        return len(self.movable) + len(self.fixed)

    def forward(self, X: Tensor) -> Tensor:
        """Return the linear part plus the network of the fixed features."""
        fixed: Tensor = self.network(X[:, self.fixed])
        return X[:, self.movable] @ self.weight + fixed.squeeze(-1) + self.bias

    def slope(self) -> Tensor:
        """Return the weights, zero on the fixed features."""
        return self.weight.new_zeros(self.n_features).index_put(
            (torch.tensor(self.movable, dtype=torch.long),), self.weight
        )

    def describe(self) -> dict[str, Any]:
        """Return sizes and positions."""
        return {
            "n_features": self.n_features,
            "movable": self.movable,
            "hidden": list(self.hidden),
        }

    def _draw(self, generator: torch.Generator) -> None:
        with torch.no_grad():
            for parameter in self.parameters():
                bound = 1.0 / max(parameter.shape[-1], 1) ** 0.5 if parameter.dim() else 0.0
                parameter.uniform_(-bound, bound, generator=generator)


def _tanh_network(n_inputs: int, hidden: Sequence[int]) -> nn.Sequential:
    widths = [n_inputs, *hidden]
    layers: list[nn.Module] = []
    for width_in, width_out in pairwise(widths):
        layers += [nn.Linear(width_in, width_out, dtype=torch.float64), nn.Tanh()]
    return nn.Sequential(*layers, nn.Linear(widths[-1], 1, dtype=torch.float64))
