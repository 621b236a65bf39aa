"""The mean of a run's steps: where noisy training hovers, without choosing among its epochs.

Epochs differ by the noise of their batches. Keeping the best of them on validation rows
keeps the luckiest, and a run started there cannot beat its own start.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import torch
from torch import nn

LATENESS = 3
"""How much later steps weigh more: as the cube of their number, so the start is soon forgotten."""


class Average:
    """A running mean of parameters: polynomial-decay averaging."""

    # Shamir and Zhang (2013), section 4. It needs no number of steps in advance, so a run may be
    # resumed and prolonged. Before the first step it is the start.

    def __init__(self, parameters: Sequence[nn.Parameter]) -> None:
        self.parameters = parameters
        self.values = [parameter.detach().clone() for parameter in parameters]
        self.steps = 0

    def take(self) -> None:
        """Count the parameters as they are now."""
        self.steps += 1
        share = (LATENESS + 1) / (self.steps + LATENESS)
        for value, parameter in zip(self.values, self.parameters, strict=True):
            value.lerp_(parameter.detach(), share)

    @contextmanager
    def in_place(self) -> Iterator[None]:
        """Let the parameters hold the mean for a while; afterwards training goes on as it was."""
        current = [parameter.detach().clone() for parameter in self.parameters]
        self._write(self.values)
        try:
            yield
        finally:
            self._write(current)

    def _write(self, values: Sequence[torch.Tensor]) -> None:
        with torch.no_grad():
            for parameter, value in zip(self.parameters, values, strict=True):
                parameter.copy_(value)
