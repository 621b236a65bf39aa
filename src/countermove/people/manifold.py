r"""The surface people live on, learned: which directions are open to each of them.

A contractive auto-encoder keeps only what it needs to rebuild a row, so its code
moves along the surface and is still across it; the row space of the code's
Jacobian is the tangent space (SERM, section 3.3.4; Rifai et al., 2011).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Protocol

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import linear

from countermove._types import Floats
from countermove.errors import DataError, NotConvergedError, ParameterError, shown
from countermove.randomness import torch_generator

START_SPREAD = 2.0
"""Spread of the start: sigmoids flatten whatever passes, so a narrow one leaves the code flat."""
FLAT = 1e-9
"""A Jacobian this small, next to the largest of the sample, says nothing about directions."""


class Tangents(Protocol):
    """Anything that knows the directions open to people."""

    def tangents(self, X: Floats) -> Floats:
        """Return orthonormal directions as columns, shape (n, d, r)."""


@dataclass(frozen=True)
class ContractiveAutoencoder:
    """A code c(x) that rebuilds x and changes as little as it can."""

    # min mean |x - r(c(x))|² + contraction * sum |∇c(x)|² / sum |c(x) - mean c|²: all layers are
    # sigmoid but the last of the decoder, rows are centred and scaled. The contraction is
    # relative to the spread of the code: an absolute one (Rifai et al.) is escaped by a small
    # code that the decoder amplifies. On SERM's parabola one start in four ended in a code whose
    # tangents say nothing; five starts leave that to one draw in a thousand.

    dimension: int = 1  # of the surface, the width of the code
    hidden: Sequence[int] = (20,)  # widths of the encoder; the decoder has two of the last
    contraction: float = 0.1
    max_iterations: int = 200  # of L-BFGS
    starts: int = 5
    seed: int = 0

    def fit(self, X: Floats) -> LearnedManifold:
        """Learn the surface from rows, shape (n, d)."""
        rows = np.asarray(X, dtype=np.float64)
        if rows.ndim != 2 or not np.isfinite(rows).all():
            raise DataError(f"a surface is learned from finite rows (n, d), got {rows.shape}")
        if not 1 <= self.dimension < rows.shape[1]:
            raise ParameterError(
                f"a surface among {rows.shape[1]} features has between 1 and "
                f"{rows.shape[1] - 1} dimensions, got {self.dimension}; with all of them "
                "people may go anywhere and need no surface"
            )
        centre, scale = rows.mean(axis=0), rows.std(axis=0)
        if not (scale > 0.0).all():
            still = np.flatnonzero(scale == 0.0)
            raise DataError(f"columns {shown(still)} never vary: leave them out of the surface")
        unit = torch.from_numpy((rows - centre) / scale)
        fits = [self._fit_once(unit, start) for start in range(self.starts)]
        loss, weights = min(fits, key=lambda fit: fit[0])
        if not np.isfinite(loss):
            raise NotConvergedError("no start of the auto-encoder led to a finite loss")
        depth = len(self.hidden) + 1
        largest = float(_jacobian(unit, weights[: 2 * depth]).abs().max())
        return LearnedManifold(weights[: 2 * depth], centre, scale, largest, loss)

    def _fit_once(self, unit: Tensor, start: int) -> tuple[float, list[Tensor]]:
        weights = self._start(unit.shape[1], start)
        depth = 2 * (len(self.hidden) + 1)
        optimiser = torch.optim.LBFGS(
            weights, max_iter=self.max_iterations, history_size=30, line_search_fn="strong_wolfe"
        )

        def closure() -> Tensor:
            optimiser.zero_grad()
            code = _layers(unit, weights[:depth], last_is_linear=False)
            rebuilt = _layers(code, weights[depth:], last_is_linear=True)
            steepness = _jacobian(unit, weights[:depth]).square().sum(dim=(1, 2)).mean()
            penalty = steepness / code.var(dim=0, correction=0).sum()
            loss = (rebuilt - unit).square().sum(dim=1).mean() + self.contraction * penalty
            loss.backward()  # type: ignore[no-untyped-call]
            return loss

        optimiser.step(closure)  # type: ignore[no-untyped-call]
        with torch.enable_grad():
            loss = float(closure().detach())
        return loss, [weight.detach() for weight in weights]

    def _start(self, n_features: int, start: int) -> list[Tensor]:
        """Return weights and offsets of encoder and decoder, uniform by the width they read."""
        draw = torch_generator(self.seed, f"auto-encoder:{start}")
        encoder = [n_features, *self.hidden, self.dimension]
        decoder = [self.dimension, self.hidden[-1], self.hidden[-1], n_features]
        weights: list[Tensor] = []
        for width_in, width_out in (*pairwise(encoder), *pairwise(decoder)):
            for shape in ((width_out, width_in), (width_out,)):
                drawn = torch.rand(shape, dtype=torch.float64, generator=draw)
                weights.append(
                    ((2.0 * drawn - 1.0) * START_SPREAD / width_in**0.5).requires_grad_()
                )
        return weights


@dataclass(frozen=True)
class LearnedManifold:
    """The encoder of a fitted surface."""

    encoder: list[Tensor]  # weights and offsets, layer by layer
    centre: Floats  # of the rows it was fitted to
    scale: Floats
    steepest: float  # the largest entry of the code's Jacobian on those rows
    loss: float  # reconstruction and contraction together

    def tangents(self, X: Floats) -> Floats:
        """Return the row space of the code's Jacobian as orthonormal columns, shape (n, d, r)."""
        # In the units of X: a direction of the scaled rows times ``scale``.
        unit = torch.from_numpy((np.asarray(X, dtype=np.float64) - self.centre) / self.scale)
        jacobian = _jacobian(unit, self.encoder)
        across, sizes, _ = torch.linalg.svd(jacobian.mT, full_matrices=False)
        flat = np.flatnonzero((sizes[:, -1] <= FLAT * self.steepest).numpy())
        if len(flat):
            raise DataError(
                f"the learned surface has no tangent of rank {sizes.shape[1]} at rows "
                f"{shown(flat)}: its code does not change there; fit it to rows like these, with "
                "fewer dimensions or a smaller contraction",
                rows=flat,
            )
        directions = across * torch.from_numpy(self.scale)[:, None]
        orthonormal: Floats = torch.linalg.qr(directions)[0].numpy()
        return orthonormal


@dataclass(frozen=True)
class StandardisedTangents:
    """The tangents of rows x, as directions of the rows (x - mean) / scale."""

    inner: Tangents
    mean: Floats
    scale: Floats

    def tangents(self, X: Floats) -> Floats:
        """Return orthonormal directions as columns, shape (n, d, r)."""
        directions = self.inner.tangents(X * self.scale + self.mean) / self.scale[:, None]
        orthonormal: Floats = np.linalg.qr(directions)[0]
        return orthonormal


def _layers(h: Tensor, weights: Sequence[Tensor], last_is_linear: bool) -> Tensor:
    layers = list(zip(weights[::2], weights[1::2], strict=True))
    for number, (weight, offset) in enumerate(layers):
        h = linear(h, weight, offset)
        if not (last_is_linear and number == len(layers) - 1):
            h = torch.sigmoid(h)
    return h


def _jacobian(X: Tensor, weights: Sequence[Tensor]) -> Tensor:
    """Return the derivative of a stack of sigmoid layers at every row, shape (n, r, d)."""
    h, product = X, torch.eye(X.shape[1], dtype=torch.float64).expand(len(X), -1, -1)
    for weight, offset in zip(weights[::2], weights[1::2], strict=True):
        h = torch.sigmoid(linear(h, weight, offset))
        product = (h * (1.0 - h))[:, :, None] * (weight @ product)
    return product
