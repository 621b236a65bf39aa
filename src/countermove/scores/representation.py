"""A linear head on a learned representation.

People are assumed to move in the representation: from z = φ(x) to z', at a price
for z' - z (SERM, equation 6). Then the head is all they see, and it is linear.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import torch
from torch import Tensor
from torch.nn.functional import linear

from countermove.randomness import torch_generator
from countermove.scores._layers import ACTIVATIONS, DenseScore, draw
from countermove.scores.linear import LinearScore


class RepresentationScore(DenseScore):
    r""":math:`s(x) = w \cdot \phi(x) + b`, with :math:`\phi` a network learned with the head.

    .. math:: \phi(x) = \phi_L, \qquad \phi_0 = x, \qquad
              \phi_l = \operatorname{act}(W_l \phi_{l-1} + c_l)

    Use it with `countermove.response.RepresentationResponse`, which lets people move in the
    space of :math:`\phi`.

    Parameters
    ----------
    n_features
        Number of features.
    hidden
        Widths of the layers; the last is the dimension of the representation.
    activation
        ``"tanh"``, ``"relu"``, ``"elu"`` or ``"softplus"``.
    generator
        Draws every weight of a layer from :math:`U(-1, 1)/\sqrt{\text{fan-in}}`;
        without one the draws are those of seed 0, the same every time.
    """

    kind: ClassVar[str] = "representation"

    def __init__(
        self,
        n_features: int,
        hidden: Sequence[int] = (16, 4),
        activation: str = "tanh",
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__(n_features, hidden, activation)
        start = torch_generator(0, "representation start") if generator is None else generator
        draw(start, self.weights, self.offsets, self.weight, self.bias)

    def represent(self, X: Tensor) -> Tensor:
        """Return the representation of every row, shape (n, hidden[-1])."""
        act, z = ACTIVATIONS[self.activation][0], X
        for weight, offset in zip(self.weights, self.offsets, strict=True):
            z = act(linear(z, weight, offset))
        return z

    def head(self) -> LinearScore:
        """Return the score of the representation; it shares this score's parameters."""
        head = LinearScore(self.hidden[-1])
        head.weight, head.bias = self.weight, self.bias
        return head

    def forward(self, X: Tensor) -> Tensor:
        """Return the head's score of the representation."""
        return self.represent(X) @ self.weight + self.bias

    def describe(self) -> dict[str, Any]:
        """Return sizes and activation."""
        return {
            "n_features": self.n_features,
            "hidden": list(self.hidden),
            "activation": self.activation,
        }
