"""People who may move to any of some known places: a surface given by its points.

The referee where the surface is known: no tangent, no first order, every place
tried. It is for judging; the place chosen is a constant to the gradient.
"""

from __future__ import annotations

from typing import Any, Self

import numpy as np
import torch
from torch import Tensor

from countermove._types import Floats, Index
from countermove.errors import ParameterError
from countermove.people import Cost, QuadraticCost
from countermove.response.base import OnFailure, Response, Responses, people
from countermove.response.smoothed import Start, check_choice, check_positive
from countermove.response.smoothing import smoothed_step
from countermove.scores import Score

BLOCK = 2_000_000
"""Pairs of person and place priced at once."""


class PointsResponse(Response):
    r"""The best of finitely many places, and of staying.

    .. math:: \Delta(x) = \arg\max_{x' \in \{x\} \cup P} \mathrm{step}(s(x')) - c(x, x')

    Parameters
    ----------
    points
        :math:`P`, shape (m, d).
    cost
        Any cost with a closed form; ``QuadraticCost(1.0)`` by default.
    temperature
        None: the hard step. Else of the smoothed step, in units of the score.
    start
        ``"global"``: the best place wherever it is. ``"stay"``: people climb along the places,
        which then lie in order on a curve, from the one nearest to them, in the direction in
        which they gain more, until they gain no more.
    """

    name = "points"

    def __init__(
        self,
        points: Floats,
        cost: Cost | None = None,
        temperature: float | None = None,
        start: Start = "global",
    ) -> None:
        super().__init__(cost)
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
        answer = torch.where(kept[:, None], torch.from_numpy(x_new), X)
        return Responses(answer, torch.from_numpy(cost), kept, torch.ones_like(kept))

    def scores_after(self, score: Score, X: Tensor) -> Tensor:
        """Return the score at the place chosen."""
        after: Tensor = score(self.respond(score, X).x_new)
        return after

    def rational(self, unscaled: bool = False) -> Self:
        """Return fully rational people among the places; ``unscaled`` prices squared length."""
        cost = QuadraticCost() if unscaled else self.cost
        return type(self)(self.points, cost)

    def crossing_cost(self, score: Score, X: Any) -> Floats:
        """Return the price of the cheapest favourable place, shape (n,); infinity if none is.

        Zero for those who are favourable already.
        """
        rows = self._rows(score, X)
        with torch.no_grad():
            now, there = (score(torch.from_numpy(z)).numpy() for z in (rows, self.points))
        approved, found = self.points[there >= 0.0], np.full(len(rows), np.inf)
        block = max(1, BLOCK // len(self.points))
        for begin in range(0, len(rows) if len(approved) else 0, block):
            part = slice(begin, begin + block)
            prices = self.cost.price(rows[part, None, :], approved[None, :, :])
            found[part] = prices.min(axis=1)
        return np.where(now >= 0.0, 0.0, found)

    def describe(self) -> dict[str, Any]:
        """Return the cost, the number of places and the temperature."""
        told = {"points": len(self.points), "temperature": self.temperature, "start": self.start}
        return super().describe() | told

    def _rows(self, score: Score, X: Any) -> Floats:
        rows = people(X, score)
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

    def _choose(self, rows: Floats, stay: Floats, there: Floats) -> tuple[Any, Floats]:
        """Return each person's place, -1 for staying, and what it costs; ties stay."""
        chosen, cost = np.full(len(rows), -1), np.zeros(len(rows))
        block = max(1, BLOCK // len(self.points))
        for begin in range(0, len(rows), block):
            part = slice(begin, begin + block)
            prices = self.cost.price(rows[part, None, :], self.points[None, :, :])
            value = there[None, :] - prices
            near = ((rows[part, None, :] - self.points) ** 2).sum(axis=2).argmin(axis=1)
            best = value.argmax(axis=1) if self.start == "global" else _climbed(value, near)
            each = np.arange(len(best))
            better = value[each, best] > stay[part]
            chosen[part] = np.where(better, best, -1)
            cost[part] = np.where(better, prices[each, best], 0.0)
        return chosen, cost


def _climbed(value: Floats, near: Index) -> Index:
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
