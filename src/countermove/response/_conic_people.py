"""People as the convex layers take them: in boxes, or each in a branch of possible actions."""

from __future__ import annotations

import copy
from dataclasses import replace

import numpy as np
import torch
from torch import Tensor

from countermove._types import Floats, Index
from countermove.response._conic_layers import ConicBatch, Layer, LayerShape
from countermove.response._possible import BranchList
from countermove.response.reduction import ActionPlan

WIDE = 1e3
"""Stands for a bound one person lacks and another has, relative to the largest finite one."""


class ConicPeople:
    """People with their constraints as tensors, as the layers take them."""

    def __init__(
        self, X: Tensor, columns: Index, lo: Tensor, hi: Tensor, rows: Floats, offsets: Floats
    ) -> None:
        # ``lo`` and ``hi`` have shape (n, d); rows (m, len(columns)) and offsets (n, m).
        here, there = lo.detach().numpy()[:, columns], hi.detach().numpy()[:, columns]
        below, above = (np.flatnonzero(np.isfinite(part).any(axis=0)) for part in (here, there))
        wide = _wide(here, there)
        self.shape = LayerShape(
            X.shape[1],
            tuple(columns.tolist()),
            tuple(below.tolist()),
            tuple(above.tolist()),
            tuple(np.flatnonzero((here == there).any(axis=0)).tolist()),
            tuple(tuple(row) for row in rows.tolist()),
        )
        self.batch = ConicBatch(
            X, lo.clamp(min=-wide), hi.clamp(max=wide), torch.from_numpy(offsets), {}
        )
        self.columns = torch.from_numpy(columns)

    @classmethod
    def in_boxes(cls, plan: ActionPlan, X: Tensor) -> ConicPeople:
        """Return people whom bounds and the constraints of the action set hold."""
        lo, hi = plan.box(X)
        columns, actions = np.flatnonzero(plan.moving), plan.actions
        offsets = np.zeros((len(X), 0)) if actions.b is None else actions.b
        offsets = np.broadcast_to(offsets, (len(X), offsets.shape[-1])).copy()
        rows = np.zeros((0, len(columns))) if actions.A is None else actions.A[:, columns]
        return cls(X, columns, lo, hi, rows, offsets)

    @classmethod
    def in_branches(cls, X: Tensor, branches: BranchList) -> ConicPeople:
        """Return people of whom each stays in one branch; several times whoever has several."""
        people = branches.people
        lo, hi = (torch.from_numpy(people.full(part)) for part in (branches.lo, branches.hi))
        offsets = branches.offsets(_wide(branches.lo, branches.hi))
        own = X[torch.from_numpy(branches.who)]
        return cls(own, people.used, lo, hi, people.A, offsets)

    def of_rows(self, who: Tensor) -> ConicPeople:
        """Return some of the people."""
        other, batch = copy.copy(self), self.batch
        other.batch = ConicBatch(batch.X[who], batch.lo[who], batch.hi[who], batch.offsets[who], {})
        return other

    def solve(self, layer: Layer, **more: Tensor) -> tuple[Tensor, Tensor]:
        """Solve a sub-problem for everybody; return full actions and costs."""
        part, cost = layer.solve(replace(self.batch, more=more))
        # What a branch settles is settled to the last digit.
        lo, hi = self.batch.lo[:, self.columns], self.batch.hi[:, self.columns]
        part = torch.where(lo == hi, lo, part)
        d = self.shape.n_features
        if len(self.columns) < d:
            part = part.new_zeros(len(part), d).index_copy(1, self.columns, part)
        return part, cost


def _wide(lo: Floats, hi: Floats) -> float:
    """Return what stands for a bound that one person lacks."""
    sizes = np.abs(np.concatenate([lo.ravel(), hi.ravel(), [1.0]]))
    return WIDE * float(sizes[np.isfinite(sizes)].max())
