"""The step of one-hot columns: a person changes category, or stays.

Changing from category c to k moves two columns at once, so the linearised problem
over a group has one candidate per category and the best is read off.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from countermove.people import ActionSet

TOLERANCE = 1e-9  # rounding of bounds in standardised units


@dataclass(frozen=True)
class Group:
    """One-hot columns: positions, original units per standardised unit, and the means."""

    columns: Tensor
    unit: Tensor
    offset: Tensor

    def step(self, X: Tensor, gradient: Tensor, low: Tensor, high: Tensor) -> Tensor:
        r"""Return the change of the group's columns, shape (n, k), that gains most.

        .. math:: \arg\max_k \; g_k / u_k - g_c / u_c

        over the categories the bounds allow, staying included; u is the unit, c the
        present category. People in no category stay.
        """
        at, low, high = X[:, self.columns], low[:, self.columns], high[:, self.columns]
        bits, worth = at * self.unit + self.offset, gradient[:, self.columns] / self.unit
        present = bits.argmax(dim=1, keepdim=True)
        in_one = bits.gather(1, present) > 0.5
        may_leave = (low * self.unit).gather(1, present) <= -1.0 + TOLERANCE
        may_enter = high * self.unit >= 1.0 - TOLERANCE
        gain = (worth - worth.gather(1, present)).masked_fill(
            ~(may_enter & may_leave & in_one), -torch.inf
        )
        gain = gain.scatter(1, present, 0.0)
        best = gain.argmax(dim=1, keepdim=True)
        # Equal gains: stay.
        best = torch.where(gain.gather(1, best) > 0.0, best, present)
        change = torch.zeros_like(worth)
        change.scatter_add_(1, best, torch.ones_like(worth[:, :1]))
        change.scatter_add_(1, present, -torch.ones_like(worth[:, :1]))
        return change / self.unit


def movable_groups(actions: ActionSet, n_features: int) -> tuple[Group, ...]:
    """Return the groups of which some column may move; none beside A δ + b ≥ 0, where all stay."""
    if actions.A is not None:
        return ()
    movable = actions.movable_among(n_features)
    unit = np.ones(n_features) if actions.unit is None else actions.unit
    offset = np.zeros(n_features) if actions.offset is None else actions.offset
    columns = [np.array(group) for group in actions.groups if movable[[*group]].any()]
    return tuple(
        Group(*map(torch.from_numpy, (part, unit[part], offset[part]))) for part in columns
    )
