"""One recourse search: people, what they may do, what it costs, and the score to reach.

Every method reads a `Problem` and proposes actions; what a proposal is worth is
decided here, on the true model, and nowhere else.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from countermove._types import Floats, Index, Mask
from countermove.people import ActionSet, Cost
from countermove.recourse.make_room import LARGEST_MOVE, home_of, room_of
from countermove.recourse.models import SLICE, affine_slope, values
from countermove.recourse.room import Room
from countermove.scores import Score, deciding

Consequences = Callable[[Tensor, Tensor], Tensor]
"""``consequences(X, action)`` returns the people after an action, shape (n, d)."""


@dataclass(frozen=True)
class Problem:
    r"""Find allowed actions with :math:`s(x \oplus \delta) \ge target`, the cheaper the better.

    Parameters
    ----------
    score
        The model's score :math:`s`.
    X
        People, shape (n, d), standardised units.
    room
        What they may do.
    home
        The allowed action nearest to doing nothing, shape (n, d).
    cost
        What actions cost.
    target
        The score to reach; infinite when the best score itself is wanted.
    slope
        The gradient in the action where the score is affine in it, else None.
    consequences
        What an action leads to; None when :math:`x \oplus \delta = x + \delta`.
    seed
        Seed of the starts and samples of a search.
    """

    score: Score
    X: Floats
    room: Room
    home: Floats
    cost: Cost
    target: float
    slope: Floats | None = None
    consequences: Consequences | None = None
    seed: int = 0

    def rows(self, who: Index | Mask) -> Problem:
        """Return the problem of some of the people."""
        return replace(self, X=self.X[who], room=self.room.rows(who), home=self.home[who])

    def repeated(self, times: int) -> Problem:
        """Return the problem with every person ``times`` over, each in a row."""
        return self.rows(np.repeat(np.arange(len(self.X)), times))

    def inside(self, room: Room) -> Problem:
        """Return the problem of the same people in a narrower room."""
        return replace(self, room=room, home=home_of(room))

    def place(self, action: Floats) -> Floats:
        """Return the people after an action and its consequences."""
        if self.consequences is None:
            return self.X + action
        with torch.no_grad():
            after = self.consequences(torch.tensor(self.X), torch.tensor(action))
        return np.asarray(after.numpy(), np.float64)

    def values(self, action: Floats) -> Floats:
        """Return the score after the action, shape (n,)."""
        return values(self.score, self.place(action))

    def values_of_each(self, actions: Floats) -> Floats:
        """Return the score after each of k actions per person, (n, k) for (n, k, d)."""
        n, k, d = actions.shape
        return self.repeated(k).values(actions.reshape(n * k, d)).reshape(n, k)

    def slopes(self, action: Floats) -> tuple[Floats, Floats]:
        """Return score and gradient in the action, shapes (n,) and (n, d)."""
        if self.slope is not None:
            return self.values(action), np.broadcast_to(self.slope, action.shape)
        found, gradient = np.empty(len(action)), np.empty_like(action)
        with deciding(self.score):
            for start in range(0, len(action), SLICE):
                part = slice(start, start + SLICE)
                scores, slope = self._slopes_of(self.X[part], action[part])
                found[part], gradient[part] = scores.numpy(), slope.numpy()
        return found, gradient

    def _slopes_of(self, X: Floats, action: Floats) -> tuple[Tensor, Tensor]:
        if self.consequences is None:
            return self.score.value_and_gradient(torch.from_numpy(X + action))
        delta = torch.from_numpy(np.array(action)).requires_grad_()
        scores = self.score(self.consequences(torch.from_numpy(np.array(X)), delta))
        (slope,) = torch.autograd.grad(scores.sum(), delta)
        return scores.detach(), slope

    def price(self, action: Floats) -> Floats:
        """Return what the action costs."""
        return self.cost.price(self.X, self.X + action)

    def reaches(self, action: Floats, scores: Floats | None = None) -> Mask:
        """Return whose action reaches the target within A δ + b ≥ 0."""
        scores = self.values(action) if scores is None else scores
        mask: Mask = (scores >= self.target) & self.room.meets(action)
        return mask


def make_problem(
    score: Score,
    X: Floats,
    actions: ActionSet,
    cost: Cost,
    target: float,
    *,
    consequences: Consequences | None = None,
    effect: Floats | None = None,
    seed: int = 0,
) -> Problem:
    r"""Return the search of these people.

    Parameters
    ----------
    score, X, actions, cost, target, consequences, seed
        As in `Problem`.
    effect
        The matrix of linear consequences, :math:`x \oplus \delta = x + T\delta`, shape (d, d);
        None when they are not linear.
    """
    movable = actions.movable_among(X.shape[1])
    reached = movable if effect is None else (np.abs(effect[:, movable]).sum(axis=1) > 0.0)
    slope = affine_slope(score, reached)
    if consequences is not None:
        slope = None if slope is None or effect is None else effect.T @ slope
    largest: Floats | float = LARGEST_MOVE
    if slope is not None and np.isfinite(target):
        # An affine score is reached by one unbounded feature alone: let it go far enough.
        need = np.maximum(target - values(score, X), 0.0)[:, None]
        far = np.where(slope != 0.0, 1.01 * need / np.where(slope != 0.0, np.abs(slope), 1.0), 0.0)
        largest = np.clip(far, LARGEST_MOVE, 1e6)
    room = room_of(actions, X, largest)
    return Problem(score, X, room, home_of(room), cost, target, slope, consequences, seed)
