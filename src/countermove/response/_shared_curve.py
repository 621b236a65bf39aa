r"""The smoothed response as a function of the rule, where directions alone bound people.

All share one curve then. With :math:`T = \tau N(w)` and :math:`c = T^{-2}\sum_j w_j^2/2q_j` over
what can move the way it should, a person with score s ends at :math:`z = T\,Y(s/T, c)`, where
:math:`Y - c\,\sigma^{*\prime}(Y) = s/T`: the rule enters through s, T and c alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch

from countermove._types import Floats
from countermove.errors import NotConvergedError
from countermove.response.base import Response
from countermove.response.compilation import jit
from countermove.response.smooth import ScalarResponse
from countermove.response.step import follow_block, half_bend, make_curve, make_grid, rise_and_bend
from countermove.response.training_signal import constant_weights, only_directions

FEW = 512
"""People up to whom tabulating the curve first does not pay."""


class Curved(NamedTuple):
    """A function of the slope: its value, gradient (d,) and Hessian (d, d)."""

    value: float
    gradient: Floats
    hessian: Floats


class AfterCurve(NamedTuple):
    """Everybody's score after response and its derivatives in s, T and c, each (n,)."""

    start: Floats  # s/T, of which the derivatives left out are multiples
    after: Floats
    by_score: Floats
    by_width: Floats
    by_constant: Floats
    by_score_twice: Floats
    by_score_and_constant: Floats
    by_constant_twice: Floats


@dataclass(frozen=True)
class SharedCurve:
    """The curve of one rule, as it changes with the slope."""

    width: Curved  # T
    constant: Curved  # c
    stays: bool  # whether the first stationary point counts, not the best

    @classmethod
    def of(cls, response: Response, slope: Floats, X: Floats) -> SharedCurve | None:
        """Read it off a response; None where people do not share one."""
        if not isinstance(response, ScalarResponse) or response.name != "smooth":
            return None
        response = response.for_people(X)
        plan = response.plan(len(slope))
        price = constant_weights(response.cost, len(slope))
        alone = response.actions.A is None and only_directions(plan.bounds(len(X)))
        alone &= not plan.possible
        if price is None or not alone or response.prices(torch.from_numpy(X)) is not None:
            return None
        usable = plan.usable(slope * plan.ones)
        held = np.diag((usable != 0.0).astype(np.float64))
        rate = Curved(0.5 * float(usable @ (usable / price)), usable / price, held / price)
        width = _width(response, usable, held)
        return cls(width, _per_square(rate, width), response.start == "stay")

    def after(self, scores: Floats) -> AfterCurve:
        """Return where people with these scores end."""
        parts = np.empty((8, len(scores)))
        if not _follow(scores, self.width.value, self.constant.value, self.stays, parts):
            raise NotConvergedError("the smoothed response to a rule met in training diverged")
        return AfterCurve(*parts)


def _width(response: ScalarResponse, usable: Floats, held: Floats) -> Curved:
    """Return the temperature times the unit of the score."""
    size, tau = float(np.linalg.norm(usable)), response.temperature
    if response.unit is not None or not response.normalised or size == 0.0:
        size = 1.0 if response.unit is None else response.unit
        return Curved(tau * size, np.zeros_like(usable), np.zeros_like(held))
    along = usable / size
    return Curved(tau * size, tau * along, tau / size * (held - np.outer(along, along)))


def _per_square(rate: Curved, width: Curved) -> Curved:
    """Return rate / width²."""
    size, value = width.value, rate.value / width.value**2
    crossed = np.outer(rate.gradient, width.gradient) / size**3
    gradient = rate.gradient / size**2 - 2.0 * value / size * width.gradient
    hessian = rate.hessian / size**2 - 2.0 * (crossed + crossed.T + value / size * width.hessian)
    hessian += 6.0 * value / size**2 * np.outer(width.gradient, width.gradient)
    return Curved(value, gradient, hessian)


@jit
def _third(y):  # type: ignore[no-untyped-def]
    """Return the third derivative of the step."""
    up, down = y + 1.0, y - 1.0
    above, below = half_bend(up) / (1.0 + up * up), half_bend(down) / (1.0 + down * down)
    return 3.0 * (down * below - up * above)


@jit
def _follow(scores, width, c, stays, parts):  # type: ignore[no-untyped-def]
    """Write the parts of `AfterCurve`; say whether everybody was followed to the end."""
    n = scores.shape[0]
    curve, done = make_curve(c, stays), np.empty(n, np.bool_)
    start, end = parts[0], parts[1]
    for i in range(n):
        start[i] = scores[i] / width
    follow_block(curve, make_grid(curve, n > FEW), start, n, end, done)
    for i in range(n):
        y = end[i]
        risen, bent = rise_and_bend(y)
        pace = 1.0 / (1.0 - c * bent)
        turn = c * _third(y) * pace
        square = pace * pace
        parts[1, i], parts[2, i], parts[3, i] = width * y, pace, y - start[i] * pace
        parts[4, i], parts[5, i] = width * risen * pace, turn * square / width
        parts[6, i] = square * (bent + turn * risen)
        parts[7, i] = width * risen * square * (2.0 * bent + turn * risen)
    return done.all()
