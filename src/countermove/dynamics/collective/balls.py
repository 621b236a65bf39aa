r"""How far one person may go: weighted balls, projected onto exactly.

.. math:: \{\delta : \|c \circ \delta\|_p \le r\}, \qquad p \in \{1, 2, \infty\}

Met with a box, the nearest point still depends on one number per person: the
multiplier of the ball, which is found by bisection to rounding.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

import numpy as np
from numpy.typing import ArrayLike

from countermove._types import Floats
from countermove.errors import ParameterError, shown

ORDERS = (1.0, 2.0, float("inf"))
BISECTIONS = 200
"""Halvings of a multiplier's bracket at most; it ends once the ends are neighbours in floats."""


@dataclass(frozen=True, eq=False)
class Ball:
    r"""Moves of size :math:`\|c \circ \delta\|_p \le r`, person by person.

    Parameters
    ----------
    radius
        :math:`r \ge 0`: one number, or one per person, shape (n,).
    p
        1, 2 or infinity.
    prices
        :math:`c > 0`, what a unit of each feature costs, shape (k,); None: 1 for each.
    """

    radius: float | Floats
    p: float = 2.0
    prices: Floats | None = None

    def __post_init__(self) -> None:
        if float(self.p) not in ORDERS:
            raise ParameterError(f"a ball has p = 1, 2 or infinity, got {self.p}")
        radius = np.asarray(self.radius, dtype=np.float64)
        wrong = np.flatnonzero(~(np.isfinite(radius) & (radius >= 0.0)))
        if radius.ndim > 1 or wrong.size:
            raise ParameterError(
                f"the radius of a ball is a number >= 0, or one per person; got {self.radius}",
                rows=wrong,
            )
        object.__setattr__(self, "radius", radius if radius.ndim else float(radius))
        if self.prices is not None:
            prices = np.asarray(self.prices, dtype=np.float64)
            if prices.ndim != 1 or not (np.isfinite(prices) & (prices > 0.0)).all():
                raise ParameterError(
                    f"prices are numbers > 0, one per feature; got {shown(np.ravel(prices))} "
                    "(leave a feature out instead of giving it an infinite price)"
                )
            object.__setattr__(self, "prices", prices)

    def size(self, actions: Floats) -> Floats:
        r"""Return :math:`\|c \circ \delta_i\|_p` of each row, shape (n,)."""
        priced = np.abs(self._checked(actions) * self._prices(actions.shape[1]))
        if self.p == 1.0:
            return cast(Floats, priced.sum(axis=1))
        if self.p == 2.0:
            return cast(Floats, np.sqrt((priced**2).sum(axis=1)))
        return cast(Floats, priced.max(axis=1, initial=0.0))

    def of_rows(self, rows: ArrayLike) -> Ball:
        """Return the balls of some people."""
        if isinstance(self.radius, float):
            return self
        return Ball(self.radius[np.asarray(rows)], self.p, self.prices)

    def project(
        self, actions: Floats, lower: Floats | None = None, upper: Floats | None = None
    ) -> Floats:
        r"""Return the nearest point of ball and box, row by row.

        .. math:: \arg\min_\delta \tfrac12 |\delta - a_i|^2 \;:\; \|c \circ \delta\|_p \le r_i,
                  \; l_i \le \delta \le u_i

        Parameters
        ----------
        actions
            The points :math:`a_i`, shape (n, k).
        lower, upper
            The box, any shapes that broadcast to (n, k), with 0 inside; None: no bound.
        """
        actions = self._checked(actions)
        low = -np.inf if lower is None else np.asarray(lower)
        high = np.inf if upper is None else np.asarray(upper)
        outside = np.broadcast_to((low > high) | (low > 0.0) | (high < 0.0), actions.shape)
        if outside.any():
            rows = np.flatnonzero(outside.any(axis=1))
            raise ParameterError(
                "a box that meets a ball must hold 0, the choice to stay; not so for the people in "
                f"rows {shown(rows)}",
                rows=rows,
            )
        if self.p == float("inf"):
            reach = self._radii(len(actions))[:, None] / self._prices(actions.shape[1])
            return np.clip(actions, np.maximum(low, -reach), np.minimum(high, reach))
        found: Floats = np.clip(actions, low, high)
        found[self._radii(len(actions)) == 0.0] = 0.0
        outside = self.size(found) > self._radii(len(actions))
        if not outside.any():
            return found
        box = [np.broadcast_to(end, actions.shape)[outside] for end in (low, high)]
        radii = self._radii(len(actions))[outside]
        found[outside] = self._shrink(actions[outside], radii, box[0], box[1])
        return found

    def _shrink(self, a: Floats, radii: Floats, low: Floats, high: Floats) -> Floats:
        """Find each row's multiplier: the size of the shrunk point falls as it grows."""
        prices = self._prices(a.shape[1])
        if not np.isfinite([low, high]).any():
            if self.p == 1.0:
                return self._at(a, _soft_threshold(a, radii, prices), prices, low, high)
            if self.prices is None:
                return cast(Floats, a * (radii / np.sqrt((a**2).sum(axis=1)))[:, None])
        below = np.zeros(len(a))
        above = self._largest(a, radii, prices)
        for _ in range(BISECTIONS):
            middle = 0.5 * (below + above)
            if ((middle <= below) | (middle >= above)).all():
                break
            far = self.size(self._at(a, middle, prices, low, high)) > radii
            below, above = np.where(far, middle, below), np.where(far, above, middle)
        return self._at(a, above, prices, low, high)

    def _at(
        self, a: Floats, multiplier: Floats, prices: Floats, low: Floats, high: Floats
    ) -> Floats:
        """Minimise the distance and the multiplier's price of size, feature by feature."""
        mu = multiplier[:, None]
        if self.p == 1.0:
            free = np.sign(a) * np.maximum(np.abs(a) - mu * prices, 0.0)
        else:
            free = a / (1.0 + mu * prices**2)
        return cast(Floats, np.clip(free, low, high))

    def _largest(self, a: Floats, radii: Floats, prices: Floats) -> Floats:
        """Return a multiplier beyond which a row is inside its ball."""
        if self.p == 1.0:
            return cast(Floats, (np.abs(a) / prices).max(axis=1))
        length = np.sqrt(((a / prices) ** 2).sum(axis=1))
        return cast(Floats, length / radii)

    def _prices(self, k: int) -> Floats:
        if self.prices is None:
            return np.ones(k)
        if len(self.prices) != k:
            raise ParameterError(f"{len(self.prices)} prices were given for {k} features that move")
        return self.prices

    def _radii(self, n: int) -> Floats:
        radii = np.asarray(self.radius)
        if radii.ndim and len(radii) != n:
            raise ParameterError(f"{len(radii)} radii were given for {n} people")
        return np.broadcast_to(radii, (n,))

    @staticmethod
    def _checked(actions: Floats) -> Floats:
        actions = np.asarray(actions, dtype=np.float64)
        if actions.ndim != 2:
            raise ParameterError(f"actions have shape (n, k), got {actions.shape}")
        return actions


def _soft_threshold(a: Floats, radii: Floats, prices: Floats) -> Floats:
    r"""Solve :math:`\sum_j c_j \max(|a_j| - \mu c_j, 0) = r` per row, by its breakpoints."""
    order = np.argsort(-np.abs(a) / prices, axis=1)
    breaks = np.take_along_axis(np.abs(a) / prices, order, axis=1)
    price = prices[order]
    spent = np.cumsum(price**2 * breaks, axis=1) - radii[:, None]
    candidates = spent / np.cumsum(price**2, axis=1)
    last = np.maximum((breaks > candidates).sum(axis=1) - 1, 0)
    return np.asarray(candidates[np.arange(len(a)), last])


def project_to_simplex(weights: Floats) -> Floats:
    r"""Return the nearest point of :math:`\{w \ge 0, \sum_k w_k = 1\}`, by sorting."""
    ordered = np.sort(weights)[::-1]
    excess = (np.cumsum(ordered) - 1.0) / np.arange(1, len(weights) + 1)
    kept = int(np.flatnonzero(ordered > excess)[-1])
    found: Floats = np.maximum(weights - excess[kept], 0.0)
    return cast(Floats, found / found.sum())
