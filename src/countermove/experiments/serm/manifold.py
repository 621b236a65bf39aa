r"""People who can only move along a surface (SERM, section 3.3.4 and Figure 3): learned, or known.

A contractive auto-encoder keeps only what it needs to rebuild a row, so its code moves along the
surface and is still across it; the row space of the code's Jacobian is the tangent space (Rifai et
al., 2011). With :math:`x' = x + T u` and the cost :math:`t \lVert x' - x \rVert^2` a gain :math:`g`
in score costs at least :math:`g^2/\rho^2`, :math:`\rho^2 = \lVert T^\top w \rVert^2 / t`, a number
of each person's own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import linear

from countermove._types import Floats, Index
from countermove.data.storage import object_digest
from countermove.errors import DataError, NotConvergedError, ParameterError, shown
from countermove.people import QuadraticCost
from countermove.randomness import generator, torch_generator
from countermove.response.base import OnFailure, Response, Responses, checked_rows
from countermove.response.reduction import slope_of
from countermove.response.step import pull_at, smoothed_step
from countermove.scores import Score

START_SPREAD = 2.0
"""Spread of the start: sigmoids flatten whatever passes, so a narrow one leaves the code flat."""
FLAT = 1e-9
"""A Jacobian this small, next to the largest of the sample, says nothing about directions."""


HALVINGS = 100
"""Of the interval that a root is known to lie in: to the last digit."""


def on_parabola(n: int, seed: int) -> tuple[Floats, Floats]:
    """Return n people on x2 = -x1², x1 evenly over [-5, 5], favourable on the left, shuffled."""
    half = n // 2
    left = np.linspace(-5.0, 0.0, half)
    right = np.linspace(5.0, 0.0, n - half, endpoint=False)
    y = np.where(np.arange(n) < half, 1.0, -1.0)
    order = generator(seed, "parabola").permutation(n)
    return parabola(np.concatenate([left, right]))[order], y[order]


def parabola(x: Floats) -> Floats:
    """Return the points of the curve at ``x``, shape (n, 2)."""
    return np.column_stack([x, -(x**2)])


class Tangents(Protocol):
    """Anything that knows the directions open to people."""

    def tangents(self, X: Floats) -> Floats:
        """Return orthonormal directions as columns, shape (n, d, r)."""


class ParabolaTangents:
    """The true tangents of the curve."""

    def tangents(self, X: Floats) -> Floats:
        """Return the unit tangents, shape (n, 2, 1)."""
        directions = np.column_stack([np.ones(len(X)), -2.0 * X[:, 0]])
        lengths = np.linalg.norm(directions, axis=1, keepdims=True)
        unit: Floats = (directions / lengths)[:, :, None]
        return unit


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


class TangentResponse(Response):
    r"""People within their tangent space, who climb the smoothed step to its first maximum.

    .. math:: \max_g \; \mathrm{step}(s(x) + g) - g^2 / \rho(x)^2

    Exact for the tangent plane; a surface that bends within a person's reach is met only to first
    order (compare with `CurveResponse` where the surface is known).
    """

    name = "tangent smooth"

    def __init__(self, tangents: Tangents, cost: QuadraticCost) -> None:
        super().__init__(cost)
        self.tangents, self._price = tangents, cost.scale

    def respond(self, score: Score, X: Any, on_failure: OnFailure = "raise") -> Responses[Any]:
        """Return where people move to; tensors carry gradients to the score and the cost."""
        given = X if isinstance(X, Tensor) else torch.from_numpy(checked_rows(X, score))
        with torch.set_grad_enabled(isinstance(X, Tensor) and torch.is_grad_enabled()):
            now, reach, direction = self._open(score, given)
            gain = _climbed(now, reach)
            x_new = given + gain[:, None] * direction
            cost = (gain / reach.clamp_min(1e-300)) ** 2
        moved, done = gain.detach() > 0.0, torch.ones(len(given), dtype=torch.bool)
        return Responses.like(X, x_new, cost, moved, done)

    def scores_after(self, score: Score, X: Tensor) -> Tensor:
        """Return the score at the response."""
        now, reach, _ = self._open(score, X)
        return now + _climbed(now, reach)

    def describe(self) -> dict[str, Any]:
        """Return the cost, and of the surface a digest."""
        return super().describe() | {"surface": object_digest(self.tangents)}

    def _open(self, score: Score, X: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return the score now, what a unit of root cost gains, and the direction of a gain."""
        basis = torch.from_numpy(self.tangents.tangents(checked_rows(X, score)))
        slope = torch.einsum("ndr,d->nr", basis, slope_of(score))
        squared = slope.square().sum(dim=1)
        # Where the score does not grow along the surface nobody gains by moving.
        reach = torch.where(squared > 0.0, squared / self._price, 1.0).sqrt() * (squared > 0.0)
        way = torch.einsum("ndr,nr->nd", basis, slope) / squared.clamp_min(1e-300)[:, None]
        return score(X), reach, way


def _climbed(now: Tensor, reach: Tensor) -> Tensor:
    """Return the gain at the smoothed response, with the gradient of its stationarity."""
    gain = first_maximum(now.detach(), reach.detach())
    if not torch.is_grad_enabled():
        return gain
    # One Newton step on the stationarity: zero in value, the implicit derivative in gradient.
    at = gain.clone().requires_grad_()
    (slope,) = torch.autograd.grad(_uphill(at, now.detach(), reach.detach()).sum(), at)
    steps = _uphill(gain, now, reach) / slope
    return gain - torch.where(reach.detach() > 0.0, steps - steps.detach(), 0.0)


def first_maximum(now: Tensor, reach: Tensor) -> Tensor:
    r"""Return the least gain at which :math:`\rho^2\,\mathrm{step}'(s + g) = 2g`, from above.

    The slope of the step rises ever faster up to `_STEEPENING` and falls behind its top. So the
    difference falls from zero gain on to a valley, where the slope has the slope of the line; if it
    is negative there the root lies before the valley, else behind it, and is the only one there.
    """
    line = 2.0 / reach.square().clamp_min(1e-300)
    low, high = torch.full_like(now, -1e8), torch.full_like(now, _STEEPENING)
    for _ in range(HALVINGS):
        middle = 0.5 * (low + high)
        steep = _bend(middle) > line
        low, high = torch.where(steep, low, middle), torch.where(steep, middle, high)
    valley = (0.5 * (low + high) - now).clamp_min(0.0)
    before = _uphill(valley, now, reach) < 0.0
    low = torch.where(before, 0.0, valley)
    high = torch.where(before, valley, reach.square())  # the step's slope is at most 0.71
    for _ in range(HALVINGS):
        middle = 0.5 * (low + high)
        up = _uphill(middle, now, reach) > 0.0
        low, high = torch.where(up, middle, low), torch.where(up, high, middle)
    return torch.where(reach > 0.0, 0.5 * (low + high), 0.0)


def _uphill(gain: Tensor, now: Tensor, reach: Tensor) -> Tensor:
    """Return the marginal utility of gain times the squared reach: zero where people stop."""
    one, after = torch.ones((), dtype=torch.float64), now + gain
    # The concave half of the step is the convex one, upside down and two step units on.
    return reach.square() * (pull_at(one, after) - pull_at(one, after - 2.0)) - 2.0 * gain


def _bend(y: Tensor) -> Tensor:
    """Return the second derivative of the step."""
    return 0.5 * (((y + 1.0) ** 2 + 1.0) ** -1.5 - ((y - 1.0) ** 2 + 1.0) ** -1.5)


_PLACES = torch.linspace(-2.0, 0.0, 200_001, dtype=torch.float64)
_STEEPENING = float(_PLACES[_bend(_PLACES).argmax()])
"""Where the slope of the step rises fastest."""


class CurveResponse(Response):
    """People who may go to the places of a known curve, shape (m, d), and may stay.

    ``climbing``: from the nearest place in the direction in which they gain more of the smoothed
    step, until they gain no more; else to the best place of all, by the hard step.
    """

    name = "points"

    def __init__(self, points: Floats, cost: QuadraticCost, climbing: bool = False) -> None:
        super().__init__(cost)
        self.points, self.climbing = points, climbing

    def respond(self, score: Score, X: Any, on_failure: OnFailure = "raise") -> Responses[Any]:
        """Return the place of each person."""
        rows = checked_rows(X, score)
        with torch.no_grad():
            stay, there = (self._worth(score(torch.from_numpy(z))) for z in (rows, self.points))
        prices = self.cost.price(rows[:, None, :], self.points[None, :, :])
        value, each = there[None, :] - prices, np.arange(len(rows))
        best = value.argmax(axis=1)
        if self.climbing:
            near = ((rows[:, None, :] - self.points) ** 2).sum(axis=2).argmin(axis=1)
            best = _end_of_climb(value, near)
        moved = value[each, best] > stay
        x_new = np.where(moved[:, None], self.points[best], rows)
        cost = np.where(moved, prices[each, best], 0.0)
        return Responses(x_new, cost, moved, np.ones(len(rows), bool))

    def scores_after(self, score: Score, X: Tensor) -> Tensor:
        """Return the score at the place chosen."""
        after: Tensor = score(torch.from_numpy(self.respond(score, X).x_new))
        return after

    def _worth(self, scores: Tensor) -> Floats:
        """Return what the decision at a place is worth, in (-1, 1)."""
        if self.climbing:
            return smoothed_step(scores).numpy()
        return torch.where(scores >= 0.0, 1.0, -1.0).to(torch.float64).numpy()


def _end_of_climb(value: Floats, near: Index) -> Index:
    """Return where climbing along the columns from ``near`` ends, the steeper way first."""
    n, m = value.shape
    each, columns = np.arange(n), np.arange(m)
    down_next = np.diff(value, axis=1) <= 0.0
    # The first place to the right, or to the left, whose next one is no better.
    stop_right = np.pad(down_next, ((0, 0), (0, 1)), constant_values=True)
    stop_left = np.pad(
        ~down_next | (np.diff(value, axis=1) == 0.0), ((0, 0), (1, 0)), constant_values=True
    )
    right = np.where(stop_right & (columns >= near[:, None]), columns, m).min(axis=1)
    left = np.where(stop_left & (columns <= near[:, None]), columns, -1).max(axis=1)
    to_right = value[each, np.minimum(near + 1, m - 1)] > value[each, np.maximum(near - 1, 0)]
    ends: Index = np.where(to_right, right, left)
    return ends


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
