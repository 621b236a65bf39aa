"""A network of all features: the score of the recourse experiments.

It has no slope, so closed-form responses cannot read it; recourse only needs
its gradient. Dropout is noise of training: off until a trainer turns it on.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import torch
from torch import Tensor
from torch.nn.functional import linear

from countermove.errors import ParameterError
from countermove.randomness import torch_generator
from countermove.scores._layers import ACTIVATIONS, DenseScore, draw


class MLPScore(DenseScore):
    r"""A network, :math:`s(x) = w \cdot h_L + b`.

    .. math:: h_0 = x, \qquad h_l = m_l \odot \phi(W_l h_{l-1} + c_l)

    The masks :math:`m_l` are one, and while training is on (``score.train()``) each
    entry is 0 with probability ``dropout``, else :math:`1/(1 - \text{dropout})`.

    Parameters
    ----------
    n_features
        Number of features.
    hidden
        Widths of the hidden layers, at least one.
    activation
        :math:`\phi`: ``"tanh"``, ``"relu"``, ``"elu"`` or ``"softplus"``.
    dropout
        Share of the hidden units left out at random in training, in [0, 1).
    generator
        Draws every weight of a layer from :math:`U(-1, 1)/\sqrt{\text{fan-in}}`;
        without one the draws are those of seed 0, the same every time.
    """

    kind: ClassVar[str] = "mlp"

    def __init__(
        self,
        n_features: int,
        hidden: Sequence[int] = (100, 100, 100),
        activation: str = "tanh",
        dropout: float = 0.3,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__(n_features, hidden, activation)
        if not 0.0 <= dropout < 1.0:
            raise ParameterError(f"dropout is a share in [0, 1), got {dropout!r}")
        self.dropout = float(dropout)
        self._noise: torch.Generator | None = None
        start = torch_generator(0, "mlp start") if generator is None else generator
        draw(start, self.weights, self.offsets, self.weight, self.bias)
        self.eval()

    def forward(self, X: Tensor) -> Tensor:
        """Return the network's value, with dropout only while training is on."""
        masks = self._masks(len(X)) if self.training and self.dropout else None
        act, h = ACTIVATIONS[self.activation][0], X
        for layer, (weight, offset) in enumerate(zip(self.weights, self.offsets, strict=True)):
            h = act(linear(h, weight, offset))
            if masks is not None:
                h = h * masks[layer]
        return h @ self.weight + self.bias

    def value_and_gradient(self, X: Tensor) -> tuple[Tensor, Tensor]:
        """Return score and gradient by the chain rule, layer by layer, dropout off."""
        act, slope = ACTIVATIONS[self.activation]
        weights, values = list(self.weights), [X]
        with torch.no_grad():
            for weight, offset in zip(weights, self.offsets, strict=True):
                values.append(act(linear(values[-1], weight, offset)))
            value: Tensor = values[-1] @ self.weight + self.bias
            back: Tensor = slope(values.pop()) * self.weight
            while len(weights) > 1:
                back = (back @ weights.pop()) * slope(values.pop())
            gradient: Tensor = back @ weights[0]
        return value, gradient

    def noise_from(self, generator: torch.Generator | None) -> None:
        """Draw dropout from ``generator``; None: from torch's global one."""
        self._noise = generator

    def describe(self) -> dict[str, Any]:
        """Return sizes, activation and dropout."""
        return {
            "n_features": self.n_features,
            "hidden": list(self.hidden),
            "activation": self.activation,
            "dropout": self.dropout,
        }

    def _masks(self, n_rows: int) -> tuple[Tensor, ...]:
        """Draw the masks of all layers at once: calls, not numbers, are the price."""
        kept = 1.0 - self.dropout
        # Single precision decides who is left out: half the price of drawing doubles.
        drawn = torch.rand(n_rows, sum(self.hidden), dtype=torch.float32, generator=self._noise)
        masks = (drawn < kept).to(torch.float64).div_(kept)
        return torch.split(masks, list(self.hidden), dim=1)
