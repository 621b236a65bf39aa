r"""What happens on average to people whose prices differ by a log-normal factor.

Rational people cross iff factor times crossing cost is below the gain, so their chance and
their mean cost are values of the normal distribution function. For any other behaviour the
prices at which the decision changes are located by bisection, and costs are averaged over
equally likely prices.
"""

from __future__ import annotations

import math

import numpy as np
from scipy.special import ndtr, ndtri

from countermove._types import Floats, Index, Mask
from countermove.errors import NotConvergedError, shown
from countermove.response.base import GAIN, NoResponse, Response
from countermove.response.best import BestResponse
from countermove.scores import Score

WIDTH, WIDE = 2.0**-12, 2.0**-8
"""Chance to within which a change of decision is located: where everybody may have a price of
their own, and where every price needs a solve of its own."""
CELLS, MOST_CELLS = 16, 256
"""Equally likely ranges of prices in which a change of decision is looked for."""
TAIL = 1e-9
"""Chance of the prices beyond the first and the last that are looked at."""
COST_CELLS, MOST_COST_CELLS, COST_ERROR = 32, 1024, 0.01
"""Equally likely prices a cost is averaged over, doubled until two averages agree to this."""


def chance_of(kind: Response, log_sd: float, score: Score, X: Floats) -> Floats:
    """Return everybody's chance of approval under one behaviour, shape (n,)."""
    # Exact for best responders; else to within WIDTH (WIDE) for every change of decision.
    if log_sd == 0.0 or isinstance(kind, NoResponse):
        return kind.chance_after(score, X)
    if not isinstance(kind, BestResponse):
        return _Priced(kind, log_sd, score, X).chance()
    cost, floor = kind.crossing_and_floor(score, X)
    with np.errstate(divide="ignore"):
        beyond = np.log(np.maximum(cost - floor, 0.0))
    chance: Floats = ndtr((math.log(GAIN) - beyond) / log_sd)
    return chance


def cost_of(kind: Response, log_sd: float, score: Score, X: Floats) -> Floats:
    """Return what everybody pays on average under one behaviour, shape (n,)."""
    # Exact for best responders; else to within COST_ERROR.
    if log_sd == 0.0 or isinstance(kind, NoResponse):
        return kind.expected_cost(score, X)
    if not isinstance(kind, BestResponse):
        return _Priced(kind, log_sd, score, X).cost()
    cost, floor = kind.crossing_and_floor(score, X)
    able = np.isfinite(cost)
    beyond = np.where(able, np.maximum(cost - floor, 0.0), 0.0)
    with np.errstate(divide="ignore"):
        # E[t c ; t c < 2] for a log-normal t of median 1.
        share = ndtr((math.log(GAIN) - np.log(beyond)) / log_sd - log_sd)
    paid: Floats = math.exp(0.5 * log_sd**2) * (floor + np.where(able, beyond * share, 0.0))
    return paid


class _Priced:
    """One behaviour at any price: what it decides and costs, averaged over the prices."""

    def __init__(self, kind: Response, log_sd: float, score: Score, X: Floats) -> None:
        self.kind, self.log_sd, self.score, self.X = kind, log_sd, score, X
        self.width = WIDTH if kind.priced_by_person else WIDE

    def factor(self, level: Floats) -> Floats:
        """Return the factors below which shares ``level`` of the prices lie."""
        found: Floats = np.exp(self.log_sd * ndtri(np.clip(level, TAIL, 1.0 - TAIL)))
        return found

    def approved(self, rows: Index, level: Floats) -> Mask:
        """Return the decisions about the people in ``rows``, each at a price of their own."""
        people, X = self.kind.of_rows(rows), self.X[rows]
        if self.kind.priced_by_person:
            return people.with_factors(self.factor(level)).decisions_after(self.score, X)
        found = np.empty(len(rows), dtype=bool)
        for one in np.unique(level):
            here = np.flatnonzero(level == one)
            priced = self.kind.of_rows(rows[here]).with_price(float(self.factor(one)))
            found[here] = priced.decisions_after(self.score, X[here])
        return found

    def chance(self) -> Floats:
        """Double the ranges until two results agree to twice the width; one, if that is proven."""
        if self.kind.falls_with_price:
            return self._located(1)
        before, cells = self._located(CELLS), 2 * CELLS
        while cells <= MOST_CELLS:
            found = self._located(cells)
            apart = np.abs(found - before)
            if not (apart > 2.0 * self.width).any():
                return found
            before, cells = found, 2 * cells
        rows = np.flatnonzero(apart > 2.0 * self.width)
        raise NotConvergedError(
            f"the chance of approval of the people in rows {shown(rows)} did not settle on "
            f"{MOST_CELLS} prices: under the response {self.kind.name!r} their decision changes "
            "to and fro as the price rises; use BestResponse or ScalarResponse, or log_sd=0",
            rows=rows,
        )

    def _located(self, cells: int) -> Floats:
        """Return the chances, every change of decision between neighbouring levels located."""
        n, levels = len(self.X), np.linspace(0.0, 1.0, cells + 1)
        everybody = np.arange(n)
        edges = np.stack([self.approved(everybody, np.full(n, level)) for level in levels])
        chance: Floats = (edges[:-1] & edges[1:]).mean(axis=0)
        cell, row = np.nonzero(edges[:-1] != edges[1:])
        low, high, first = levels[cell], levels[cell + 1], edges[cell, row]
        width = 1.0 / cells
        while width > self.width and len(row):
            middle = 0.5 * (low + high)
            same = self.approved(row, middle) == first
            low, high = np.where(same, middle, low), np.where(same, high, middle)
            width *= 0.5
        middle = 0.5 * (low + high)
        part = np.where(first, middle - levels[cell], levels[cell + 1] - middle)
        np.add.at(chance, row, part)
        return chance

    def cost(self) -> Floats:
        """Double the prices until two averages agree."""
        before, cells = self._mean_cost(COST_CELLS), 2 * COST_CELLS
        while cells <= MOST_COST_CELLS:
            found = self._mean_cost(cells)
            apart = np.abs(found - before)
            if not (apart > COST_ERROR).any():
                return found
            before, cells = found, 2 * cells
        rows = np.flatnonzero(apart > COST_ERROR)
        raise NotConvergedError(
            f"the mean cost of the people in rows {shown(rows)} did not settle on "
            f"{MOST_COST_CELLS} prices under the response {self.kind.name!r}: lower log_sd",
            rows=rows,
        )

    def _mean_cost(self, cells: int) -> Floats:
        total = np.zeros(len(self.X))
        for level in (np.arange(cells) + 0.5) / cells:
            priced = self.kind.with_price(float(self.factor(level)))
            total += priced.respond(self.score, self.X, on_failure="mask").cost
        return total / cells


def price_nodes(log_sd: float, nodes: int) -> tuple[Floats, Floats]:
    """Return the factors and weights of Gauss and Hermite for a log-normal price of median 1."""
    if log_sd == 0.0:
        return np.ones(1), np.ones(1)
    at, weights = np.polynomial.hermite_e.hermegauss(nodes)
    return np.exp(log_sd * at), weights / weights.sum()
