"""The parts networks are made of: activations, widths, and where training starts."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Self

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import elu, softplus

from countermove._types import Floats
from countermove.errors import ParameterError, UnknownNameError, nearest
from countermove.scores.base import Score

Elementwise = Callable[[Tensor], Tensor]

ACTIVATIONS: Mapping[str, tuple[Elementwise, Elementwise]] = {
    "tanh": (torch.tanh, lambda h: 1.0 - h * h),
    "relu": (torch.relu, lambda h: (h > 0.0).to(h.dtype)),
    "elu": (elu, lambda h: h.clamp_max(0.0) + 1.0),
    "softplus": (softplus, lambda h: -torch.expm1(-h)),
}
"""Each activation, and its derivative as a function of its value."""


def checked_activation(activation: str) -> str:
    """Return the name of an activation, or say which there are."""
    if activation not in ACTIVATIONS:
        hint = nearest(str(activation), ACTIVATIONS)
        raise UnknownNameError(f"no activation is called {activation!r}: {hint}")
    return activation


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


def empty(*shape: int) -> nn.Parameter:
    """Return a parameter whose numbers are still to be drawn."""
    return nn.Parameter(torch.empty(shape, dtype=torch.float64))


def empty_layers(sizes: Sequence[int]) -> tuple[nn.ParameterList, nn.ParameterList]:
    """Return the weights and offsets of layers of these sizes, the inputs first."""
    pairs = list(pairwise(sizes))
    weights = nn.ParameterList(empty(n_out, n_in) for n_in, n_out in pairs)
    return weights, nn.ParameterList(empty(n_out) for _, n_out in pairs)


def fold_standardising(
    weight: nn.Parameter, offset: nn.Parameter, mean: Floats, scale: Floats
) -> None:
    """Let weights that read (x - mean) / scale read x, in place."""
    centre, unit = (torch.from_numpy(np.array(part, dtype=np.float64)) for part in (mean, scale))
    with torch.no_grad():
        weight.div_(unit)
        offset.sub_(weight @ centre)


def draw(
    generator: torch.Generator,
    weights: Iterable[nn.Parameter],
    offsets: Iterable[nn.Parameter],
    weight: nn.Parameter,
    bias: nn.Parameter,
) -> None:
    r"""Draw every layer and the head from :math:`U(-1, 1)/\sqrt{\text{fan-in}}`, in place."""
    with torch.no_grad():
        for layer, offset in zip((*weights, weight), (*offsets, bias), strict=True):
            bound = layer.shape[-1] ** -0.5
            layer.uniform_(-bound, bound, generator=generator)
            offset.uniform_(-bound, bound, generator=generator)


class DenseScore(Score):
    r"""A score of dense layers, :math:`s(x) = w\cdot h_L + b`, each followed by one activation."""

    def __init__(self, n_features: int, hidden: Sequence[int], activation: str) -> None:
        super().__init__()
        self.hidden, self.activation = checked_widths(hidden), checked_activation(activation)
        self.weights, self.offsets = empty_layers((int(n_features), *self.hidden))
        self.weight, self.bias = empty(self.hidden[-1]), empty()

    @property
    def n_features(self) -> int:
        """Number of features the score reads."""
        return int(self.weights[0].shape[1])

    def slope(self) -> None:
        """Return None: the score is affine in nothing that people can change."""
        return

    def before_standardising(self, mean: Floats, scale: Floats) -> Self:
        """Return the same network of the rows before they were standardised."""
        other = copy.deepcopy(self)
        fold_standardising(other.weights[0], other.offsets[0], mean, scale)
        return other
