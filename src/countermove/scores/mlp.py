"""A network of all features: the score of the recourse experiments.

It has no slope, so closed-form responses cannot read it; recourse only needs
its gradient. Dropout is noise of training: off until a trainer turns it on.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import Any, ClassVar

import torch
from torch import Tensor, nn
from torch.nn.functional import elu, linear, softplus

from countermove.errors import ParameterError, UnknownNameError, nearest
from countermove.randomness import torch_generator
from countermove.scores.base import Score

Elementwise = Callable[[Tensor], Tensor]

ACTIVATIONS: Mapping[str, tuple[Elementwise, Elementwise]] = {
    "tanh": (torch.tanh, lambda h: 1.0 - h * h),
    "relu": (torch.relu, lambda h: (h > 0.0).to(h.dtype)),
    "elu": (elu, lambda h: h.clamp_max(0.0) + 1.0),
    "softplus": (softplus, lambda h: -torch.expm1(-h)),
}
"""Each activation, and its derivative as a function of its value."""


class MLPScore(Score):
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
        super().__init__()
        self.hidden = checked_widths(hidden)
        if activation not in ACTIVATIONS:
            hint = nearest(str(activation), ACTIVATIONS)
            raise UnknownNameError(f"no activation is called {activation!r}: {hint}")
        if not 0.0 <= dropout < 1.0:
            raise ParameterError(f"dropout is a share in [0, 1), got {dropout!r}")
        self.activation, self.dropout = activation, float(dropout)
        sizes = list(pairwise((int(n_features), *self.hidden)))
        self.weights = nn.ParameterList(_empty(n_out, n_in) for n_in, n_out in sizes)
        self.offsets = nn.ParameterList(_empty(n_out) for _, n_out in sizes)
        self.weight, self.bias = _empty(self.hidden[-1]), _empty()
        self._noise: torch.Generator | None = None
        self._draw(torch_generator(0, "mlp start") if generator is None else generator)
        self.eval()

    @property
    def n_features(self) -> int:
        """Number of features the score reads."""
        return int(self.weights[0].shape[1])

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

    def slope(self) -> None:
        """Return None: the score is affine in nothing."""
        return

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

    def _draw(self, generator: torch.Generator) -> None:
        with torch.no_grad():
            for weight, offset in zip(self.weights, self.offsets, strict=True):
                bound = weight.shape[1] ** -0.5
                weight.uniform_(-bound, bound, generator=generator)
                offset.uniform_(-bound, bound, generator=generator)
            bound = self.hidden[-1] ** -0.5
            self.weight.uniform_(-bound, bound, generator=generator)
            self.bias.uniform_(-bound, bound, generator=generator)


def checked_widths(hidden: Sequence[int]) -> tuple[int, ...]:
    """Return the widths of the hidden layers, or say which is no width."""
    try:
        widths = tuple(hidden)
    except TypeError as error:
        raise ParameterError(
            f"hidden lists the widths of the layers, for example (100, 100), got {hidden!r}"
        ) from error
    wrong = [width for width in widths if isinstance(width, bool) or width != int(width)]
    wrong += [width for width in widths if width < 1]
    if not widths or wrong:
        raise ParameterError(
            f"hidden holds at least one width and all of them whole and positive, got {hidden!r}; "
            "use LinearScore for a score without hidden layers"
        )
    return tuple(int(width) for width in widths)


def _empty(*shape: int) -> nn.Parameter:
    return nn.Parameter(torch.empty(shape, dtype=torch.float64))
