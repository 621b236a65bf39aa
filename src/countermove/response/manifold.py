r"""People who can only move along a surface: within their tangent space, or among its points.

With :math:`x' = x + T u` and a quadratic cost, what matters is again the score gained:
a gain :math:`g` costs at least :math:`g^2/\rho^2` with :math:`\rho^2 = a^\top M^{-1} a`,
:math:`a = T^\top w`, :math:`M = T^\top H T`. Each person has a :math:`\rho` of their own. Where
the surface is known by its points every place is tried; that serves as the reference.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal, Self

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Tensor

from countermove._types import Floats, Index, Mask
from countermove.data.storage import object_digest
from countermove.errors import CostError, DataError, ParameterError, shown
from countermove.people import ActionSet, Cost, QuadraticCost
from countermove.people.manifold import StandardisedTangents, Tangents
from countermove.response._polyline import peak_rows
from countermove.response.base import GAIN, Crossing, OnFailure, Response, Responses, checked_rows
from countermove.response.reduction import slope_of
from countermove.response.smooth import Start, check_choice, check_positive
from countermove.response.step import pull_at, smoothed_step
from countermove.scores import Score

Behaviour = Literal["best", "smooth"]

RANK = 1e-9
"""Directions shorter than this, next to the longest, are none."""
BLOCK = 2_000_000
"""Pairs of person and place priced at once."""


@dataclass(frozen=True)
class _Open:
    """What a surface leaves open: score now, gain per unit of root cost, and its direction."""

    now: Tensor
    reach: Tensor
    direction: Tensor
    unit: Tensor


class TangentResponse(Response):
    """The response confined to each person's tangent space, under a quadratic cost."""

    # Who can exist plays no part: a surface that was learnt from people says where they are. Where
    # relations are to hold, PointsResponse with the table's people as places obeys them. Exact
    # for the tangent plane; a surface that bends within a person's reach is met only to
    # first order (compare with PointsResponse where the surface is known). With ``normalised``
    # the unit is the length of the slope within the tangent space, each person's own.

    def __init__(
        self,
        tangents: Tangents,
        cost: Cost | None = None,
        behaviour: Behaviour = "best",
        temperature: float = 0.5,
        start: Start = "global",
        normalised: bool = True,
    ) -> None:
        super().__init__(cost)
        check_choice("behaviour", behaviour, Behaviour)
        check_choice("start", start, Start)
        check_positive(temperature=temperature)
        self.tangents, self.behaviour = tangents, behaviour
        self.temperature, self.start = float(temperature), start
        self.normalised = bool(normalised)

    @property
    def name(self) -> str:  # type: ignore[override]
        """``"tangent best"`` or ``"tangent smooth"``."""
        return f"tangent {self.behaviour}"

    def respond(self, score: Score, X: Any, on_failure: OnFailure = "raise") -> Responses[Any]:
        """Return where people move to; tensors carry gradients to the score and the cost."""
        given = X if isinstance(X, Tensor) else torch.from_numpy(checked_rows(X, score))
        with torch.set_grad_enabled(isinstance(X, Tensor) and torch.is_grad_enabled()):
            open_ = self._open(score, given)
            gain = self._crossing(open_) if self.behaviour == "best" else self._climbed(open_)
            x_new = given + gain[:, None] * open_.direction
            cost = (gain / open_.reach.clamp_min(1e-300)) ** 2
        moved, done = gain.detach() > 0.0, torch.ones(len(given), dtype=torch.bool)
        return Responses.like(X, x_new, cost, moved, done)

    def scores_after(self, score: Score, X: Tensor) -> Tensor:
        """Return score plus reach for rational people, else the score at the response."""
        open_ = self._open(score, X)
        if self.behaviour == "best":
            return torch.add(open_.now, open_.reach, alpha=GAIN**0.5)
        return open_.now + self._climbed(open_)

    def rational(self, unscaled: bool = False) -> Self:
        """Return fully rational people on the same surface; ``unscaled`` prices squared length."""
        other = copy.copy(self)
        other.behaviour = "best"
        other.cost = QuadraticCost() if unscaled else self.cost
        return other

    def crossing_cost(self, score: Score, X: Any) -> Floats:
        """Return what the cheapest favourable decision costs, (n,); infinity if out of reach."""
        with torch.no_grad():
            found = self.crossing(score, torch.from_numpy(checked_rows(X, score)))
        return np.where(found.possible.numpy(), found.cost.numpy(), np.inf)

    def crossing(self, score: Score, X: Tensor) -> Crossing:
        r"""Return the same with its gradient: :math:`(s(x)_-/\rho)^2`, whatever the gain."""
        open_ = self._open(score, X)
        refused, way = open_.now < 0.0, open_.reach > 0.0
        # Chosen before dividing: a zero reach would otherwise poison the gradient.
        cost = torch.where(way, open_.now, 0.0) / torch.where(way, open_.reach, 1.0)
        return Crossing(torch.where(refused, cost.square(), 0.0), way | ~refused)

    def after_standardising(self, mean: ArrayLike, scale: ArrayLike) -> Self:
        """Return the same people as standardised rows, their tangents turned with them."""
        other = super().after_standardising(mean, scale)
        other.tangents = StandardisedTangents(self.tangents, np.asarray(mean), np.asarray(scale))
        return other

    def describe(self) -> dict[str, Any]:
        """Return the arguments, JSON-ready; of the surface a digest."""
        names = ("behaviour", "temperature", "start", "normalised")
        described = {name: getattr(self, name) for name in names}
        return super().describe() | described | {"surface": object_digest(self.tangents)}

    def _open(self, score: Score, X: Tensor) -> _Open:
        basis = _checked(self.tangents.tangents(checked_rows(X, score)), tuple(X.shape))
        slope = torch.einsum("ndr,d->nr", basis, slope_of(score))
        prices = _priced(self.cost, basis)
        best = torch.linalg.solve(prices, slope[:, :, None])[:, :, 0]
        squared = (slope * best).sum(dim=1)
        # Where the score does not grow along the surface nobody gains by moving.
        reach = torch.where(squared > 0.0, squared, 1.0).sqrt() * (squared > 0.0)
        direction = torch.einsum("ndr,nr->nd", basis, best) / squared.clamp_min(1e-300)[:, None]
        unit = torch.where(reach > 0.0, torch.linalg.vector_norm(slope, dim=1), 1.0)
        return _Open(score(X), reach, direction, unit if self.normalised else torch.ones_like(unit))

    def _crossing(self, open_: _Open) -> Tensor:
        """Return the gain of whoever can afford to cross, else zero."""
        affordable = (open_.now < 0.0) & (open_.now + GAIN**0.5 * open_.reach > 0.0)
        # A hair beyond, so that the score of x_new is favourable in floating point too.
        needed = -open_.now + 1e-12 * (1.0 + open_.now.detach().abs())
        return torch.where(affordable, needed, 0.0)

    def _climbed(self, open_: _Open) -> Tensor:
        """Return the gain at the smoothed response, with the gradient of its stationarity."""
        sharpness = 1.0 / (self.temperature * open_.unit)
        now, reach, sharp = (part.detach().numpy() for part in (open_.now, open_.reach, sharpness))
        gain = torch.from_numpy(_smoothed_gain(now, reach, sharp, self.start == "stay"))
        if not torch.is_grad_enabled():
            return gain
        # One Newton step on the stationarity: zero in value, the implicit derivative in gradient.
        at = gain.clone().requires_grad_()
        (slope,) = torch.autograd.grad(_uphill(at, *_held(open_, sharpness)).sum(), at)
        steps = _uphill(gain, open_.now, open_.reach, sharpness) / slope
        return gain - torch.where(open_.reach.detach() > 0.0, steps - steps.detach(), 0.0)


def _smoothed_gain(now: Floats, reach: Floats, sharpness: Floats, first: bool) -> Floats:
    """Return everybody's gain: that of the first local maximum, or of the highest."""
    n = len(now)
    gain, price, done = np.empty(n), np.empty(n), np.empty(n, dtype=bool)
    # In step units a gain of y costs (y / (sharpness * reach))^2: a polyline of one knot at zero.
    knot, rate = np.zeros((n, 1)), 0.5 * (sharpness * reach) ** 2
    counts = np.ones(n, dtype=np.int64)
    alike = np.ones(1)
    peak_rows(knot, knot, knot, counts, rate, sharpness * now, 1.0, first, alike, gain, price, done)
    return gain / sharpness


def _checked(given: Floats, shape: tuple[int, ...]) -> Tensor:
    """Return the directions as a tensor, or say what is wrong with them."""
    basis = np.asarray(given, dtype=np.float64)
    if basis.ndim != 3 or basis.shape[:2] != shape or basis.shape[2] < 1:
        raise ParameterError(
            f"tangents are directions as columns, shape (n, d, r) with r of at least 1; for "
            f"people of shape {shape} got {basis.shape}"
        )
    broken = np.flatnonzero(~np.isfinite(basis).all(axis=(1, 2)))
    if len(broken):
        raise DataError(f"the tangents at rows {shown(broken)} are not finite", rows=broken)
    lengths = np.linalg.svd(basis, compute_uv=False)
    flat = np.flatnonzero(lengths[:, -1] <= RANK * lengths[:, 0])
    if len(flat):
        raise DataError(
            f"the tangents at rows {shown(flat)} have a rank below {basis.shape[2]}: a direction "
            "is zero or lies along the others; give fewer directions, or leave these people out",
            rows=flat,
        )
    return torch.from_numpy(basis)


def _held(open_: _Open, sharpness: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    return open_.now.detach(), open_.reach.detach(), sharpness.detach()


def _uphill(gain: Tensor, now: Tensor, reach: Tensor, sharpness: Tensor) -> Tensor:
    """Return the marginal utility of gain times the squared reach: zero where people stop."""
    after = now + gain
    # The concave half of the step is the convex one, upside down and two step units on.
    price = pull_at(sharpness, after) - pull_at(sharpness, after - 2.0 / sharpness)
    return reach.square() * price - 2.0 * gain


def _priced(cost: Cost, basis: Tensor) -> Tensor:
    """Return the quadratic cost within every tangent space, shape (n, r, r)."""
    shape = cost.canonical(basis.shape[1])
    if shape is None or shape.kink is not None:
        raise CostError(
            f"moves within a tangent space have quadratic costs, got a {cost.kind} cost"
        )
    if shape.matrix is not None:
        return torch.einsum("ndr,de,nes->nrs", basis, shape.matrix, basis)
    assert shape.weights is not None
    return torch.einsum("ndr,d,nds->nrs", basis, shape.weights, basis)


class PointsResponse(Response):
    """The best of finitely many places, shape (m, d), that a person may go to, and of staying."""

    # Which those are ``actions`` says, as it does for recourse: whole steps and who can exist
    # included. Without a temperature the step is hard; with one it is smoothed, in units of the
    # score. With start="stay" the places lie in order on a curve, and people climb from the
    # nearest one in the direction in which they gain more, until they gain no more.

    name = "points"

    def __init__(
        self,
        points: Floats,
        cost: Cost | None = None,
        temperature: float | None = None,
        start: Start = "global",
        actions: ActionSet | None = None,
    ) -> None:
        super().__init__(cost, actions)
        check_choice("start", start, Start)
        self.points = np.ascontiguousarray(points, dtype=np.float64)
        if self.points.ndim != 2 or not len(self.points) or not np.isfinite(self.points).all():
            raise ParameterError(
                f"places to move to are finite rows (m, d), at least one, got {self.points.shape}"
            )
        if temperature is not None:
            check_positive(temperature=temperature)
        self.temperature, self.start = temperature, start

    def respond(self, score: Score, X: Any, on_failure: OnFailure = "raise") -> Responses[Any]:
        """Return the best place of each person."""
        rows = self._rows(score, X)
        with torch.no_grad():
            stay, there = (self._worth(score, torch.from_numpy(z)) for z in (rows, self.points))
        chosen, cost = self._choose(rows, stay, there)
        moved = chosen >= 0
        x_new = np.where(moved[:, None], self.points[chosen], rows)
        if not isinstance(X, Tensor):
            return Responses(x_new, cost, moved, np.ones(len(rows), dtype=bool))
        kept = torch.from_numpy(moved)
        places = torch.where(kept[:, None], torch.from_numpy(x_new), X)
        return Responses(places, torch.from_numpy(cost), kept, torch.ones_like(kept))

    def answers(self, score: Score) -> bool:
        """Return True: places are compared by their values alone."""
        return True

    def after_standardising(self, mean: ArrayLike, scale: ArrayLike) -> Self:
        """Return the same people and places as standardised rows."""
        other = super().after_standardising(mean, scale)
        other.points = (self.points - np.asarray(mean)) / np.asarray(scale)
        return other

    def scores_after(self, score: Score, X: Tensor) -> Tensor:
        """Return the score at the place chosen."""
        after: Tensor = score(self.respond(score, X).x_new)
        return after

    def rational(self, unscaled: bool = False) -> Self:
        """Return fully rational people among the places; ``unscaled`` prices squared length."""
        cost = QuadraticCost() if unscaled else self.cost
        return type(self)(self.points, cost, actions=self.actions)

    def crossing_cost(self, score: Score, X: Any) -> Floats:
        """Return the price of the cheapest favourable place, (n,); infinity if none is."""
        rows = self._rows(score, X)
        with torch.no_grad():
            now, there = (score(torch.from_numpy(z)).numpy() for z in (rows, self.points))
        found = np.full(len(rows), np.inf)
        for part, prices in self._prices(rows, there >= 0.0):
            found[part] = prices.min(axis=1)
        return np.where(now >= 0.0, 0.0, found)

    def describe(self) -> dict[str, Any]:
        """Return the cost, the number of places with a digest, and the temperature."""
        described = {name: getattr(self, name) for name in ("temperature", "start")}
        places = {"points": len(self.points), "places": object_digest(self.points)}
        return super().describe() | described | places

    def _rows(self, score: Score, X: Any) -> Floats:
        rows = checked_rows(X, score)
        if self.points.shape[1] != rows.shape[1]:
            raise ParameterError(
                f"people have {rows.shape[1]} features, the places {self.points.shape[1]}"
            )
        return rows

    def _worth(self, score: Score, Z: Tensor) -> Floats:
        """Return what the decision at a place is worth, in (-1, 1)."""
        values: Tensor = score(Z)
        if self.temperature is None:
            return torch.where(values >= 0.0, 1.0, -1.0).to(torch.float64).numpy()
        return smoothed_step(values / self.temperature).numpy()

    def _prices(self, rows: Floats, offered: Mask) -> Iterator[tuple[Index, Floats]]:
        """Yield some people, and what the places offered cost them; infinite: not allowed."""
        points = self.points[offered]
        block = max(1, BLOCK // len(self.points))
        free = not self.actions.describe()
        for begin in range(0, len(rows) if len(points) else 0, block):
            part = np.arange(begin, min(begin + block, len(rows)))
            here = rows[part]
            prices: Floats = self.cost.price(here[:, None, :], points[None, :, :])
            if not free:
                pair = np.repeat(np.arange(len(part)), len(points))
                moves = (points[None, :, :] - here[:, None, :]).reshape(-1, rows.shape[1])
                allowed = self.actions.of_rows(part[pair]).contains(here[pair], moves)
                prices = np.where(allowed.reshape(prices.shape), prices, np.inf)
            yield part, prices

    def _choose(self, rows: Floats, stay: Floats, there: Floats) -> tuple[Any, Floats]:
        """Return each person's place, -1 for staying, and what it costs; ties stay."""
        chosen, cost = np.full(len(rows), -1), np.zeros(len(rows))
        for part, prices in self._prices(rows, np.ones(len(self.points), bool)):
            value = there[None, :] - prices
            near = ((rows[part, None, :] - self.points) ** 2).sum(axis=2).argmin(axis=1)
            best = value.argmax(axis=1) if self.start == "global" else _end_of_climb(value, near)
            each = np.arange(len(best))
            better = value[each, best] > stay[part]
            chosen[part] = np.where(better, best, -1)
            cost[part] = np.where(better, prices[each, best], 0.0)
        return chosen, cost


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
