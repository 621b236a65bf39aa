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
from countermove.scores._layers import checked_activation
from countermove.scores.base import Score

_MODULES: dict[str, type[nn.Module]] = {
    "tanh": nn.Tanh,
    "relu": nn.ReLU,
    "elu": nn.ELU,
    "softplus": nn.Softplus,
}


class PartlyLinearScore(Score):
    r""":math:`s(x) = w \cdot x_{movable} + \phi(x_{fixed}) + b`.

    Parameters
    ----------
    n_features
        Number of features in all.
    movable
        Positions of the features people can change; the network never sees them.
    hidden, activation
        Widths of the layers of :math:`\phi`, and what follows each: ``"tanh"``, ``"relu"``,
        ``"elu"`` or ``"softplus"``.
    generator
        Draws the start; without one ``w`` is zero and the network has torch's default start.
    network
        A module of your own in place of those layers, from (n, number of fixed features) to
        (n, 1), in float64; it is used as it stands, and such a score cannot be stored: a file
        would have to hold code.
    """

    kind: ClassVar[str] = "partly_linear"

    def __init__(
        self,
        n_features: int,
        movable: Sequence[int],
        hidden: Sequence[int] = (16,),
        generator: torch.Generator | None = None,
        activation: str = "tanh",
        network: nn.Module | None = None,
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
        self.activation = checked_activation(activation)
        self.own_network = network is not None
        if network is None:
            network = _network(len(self.fixed), self.hidden, self.activation)
        self.network = network
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

    def linear_columns(self) -> Sequence[int] | None:
        """Return the movable columns once the network is held (``requires_grad_(False)``)."""
        held = not any(parameter.requires_grad for parameter in self.network.parameters())
        return self.movable if held else None

    def describe(self) -> dict[str, Any]:
        """Return sizes, positions and the activation."""
        if self.own_network:
            raise ParameterError(
                "this score holds a network of your own and cannot be stored: loading it would "
                "run code. Store the network yourself, or build it from hidden and activation"
            )
        return {
            "n_features": self.n_features,
            "movable": self.movable,
            "hidden": list(self.hidden),
            "activation": self.activation,
        }

    def _draw(self, generator: torch.Generator) -> None:
        with torch.no_grad():
            drawn = [self.weight, self.bias] if self.own_network else self.parameters()
            for parameter in drawn:
                bound = 1.0 / max(parameter.shape[-1], 1) ** 0.5 if parameter.dim() else 0.0
                parameter.uniform_(-bound, bound, generator=generator)


def _network(n_inputs: int, hidden: Sequence[int], activation: str) -> nn.Sequential:
    widths = [n_inputs, *hidden]
    layers: list[nn.Module] = []
    for width_in, width_out in pairwise(widths):
        layers += [nn.Linear(width_in, width_out, dtype=torch.float64), _MODULES[activation]()]
    return nn.Sequential(*layers, nn.Linear(widths[-1], 1, dtype=torch.float64))
