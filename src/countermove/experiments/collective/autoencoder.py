r"""A variational auto-encoder: wide rows as short codes.

.. math:: \max \; E_{z \sim q(z \mid x)}[\log p(x \mid z)] - KL(q(z \mid x) \,\|\, N(0, I))

Encoder and decoder are networks of two hidden layers; a row's code is the mean of
:math:`q(z \mid x)`, nothing drawn (Kingma and Welling, 2014).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import binary_cross_entropy_with_logits

from countermove._types import Floats
from countermove.errors import DataError, NotConvergedError, ParameterError
from countermove.randomness import torch_generator


@dataclass(frozen=True)
class VariationalAutoencoder:
    """How a code is learned."""

    dimension: int = 10  # length of a code
    hidden: Sequence[int] = (512, 512)  # widths of the encoder; the decoder has them in reverse
    optimiser: Literal["adam", "sgd"] = "adam"  # sgd with momentum in the paper
    learning_rate: float = 1e-3
    momentum: float = 0.9
    epochs: int = 30
    batch_size: int = 128
    seed: int = 0

    def __post_init__(self) -> None:
        counts = (self.dimension, self.epochs, self.batch_size, *self.hidden)
        if min(counts) < 1 or not self.hidden or not self.learning_rate > 0.0:
            raise ParameterError(
                "an auto-encoder needs dimension, hidden widths, epochs and batch_size >= 1 and a "
                f"learning rate > 0, got {self}"
            )

    def codes(self, X: Floats) -> Floats:
        """Learn from rows with entries in [0, 1], and return their codes, shape (n, dimension)."""
        if X.ndim != 2 or not len(X) or X.min() < 0.0 or X.max() > 1.0:
            raise DataError(
                "an auto-encoder reads rows with entries in [0, 1]; divide by the largest value"
            )
        rows = torch.from_numpy(np.ascontiguousarray(X, dtype=np.float32))
        generator = torch_generator(self.seed, "variational auto-encoder")
        encoder = _network((X.shape[1], *self.hidden, 2 * self.dimension), generator)
        decoder = _network((self.dimension, *reversed(self.hidden), X.shape[1]), generator)
        self._train(rows, encoder, decoder, generator)
        with torch.no_grad():
            found = encoder(rows)[:, : self.dimension].double().numpy()
        if not np.isfinite(found).all():
            raise NotConvergedError("the auto-encoder's codes are not finite; lower learning_rate")
        codes: Floats = found
        return codes

    def _train(
        self, rows: Tensor, encoder: nn.Module, decoder: nn.Module, generator: torch.Generator
    ) -> None:
        parameters = [*encoder.parameters(), *decoder.parameters()]
        optimiser: torch.optim.Optimizer
        if self.optimiser == "adam":
            optimiser = torch.optim.Adam(parameters, self.learning_rate)
        else:
            optimiser = torch.optim.SGD(parameters, self.learning_rate, self.momentum)
        for _ in range(self.epochs):
            order = torch.randperm(len(rows), generator=generator)
            for batch in torch.split(order, self.batch_size):
                optimiser.zero_grad()
                self._loss(rows[batch], encoder, decoder, generator).backward()  # type: ignore[no-untyped-call]
                optimiser.step()

    def _loss(
        self, rows: Tensor, encoder: nn.Module, decoder: nn.Module, generator: torch.Generator
    ) -> Tensor:
        """Return the negative bound on the evidence, per row."""
        mean, log_variance = encoder(rows).split(self.dimension, dim=1)
        noise = torch.randn(mean.shape, generator=generator)
        drawn = mean + torch.exp(0.5 * log_variance) * noise
        rebuilt = binary_cross_entropy_with_logits(decoder(drawn), rows, reduction="sum")
        divergence = 0.5 * (mean**2 + log_variance.exp() - 1.0 - log_variance).sum()
        loss: Tensor = (rebuilt + divergence) / len(rows)
        return loss


def _network(widths: Sequence[int], generator: torch.Generator) -> nn.Sequential:
    """Return linear layers with ReLU between them, drawn from one generator."""
    layers: list[nn.Module] = []
    for fan_in, fan_out in pairwise(widths):
        layer = nn.Linear(fan_in, fan_out)
        with torch.no_grad():
            for part in (layer.weight, layer.bias):
                part.copy_((torch.rand(part.shape, generator=generator) * 2 - 1) / fan_in**0.5)
        layers += [layer, nn.ReLU()]
    return nn.Sequential(*layers[:-1])
