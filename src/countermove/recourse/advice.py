"""What a recourse search hands back."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from countermove._types import Floats
from countermove.errors import DataError

FOUND = "FOUND"
PROVEN_NONE = "PROVEN_NONE"
NOT_FOUND = "NOT_FOUND"
NOT_NEEDED = "NOT_NEEDED"
STATUSES = (FOUND, PROVEN_NONE, NOT_FOUND, NOT_NEEDED)


@dataclass(frozen=True)
class Advice:
    """What each person can do to be approved.

    Parameters
    ----------
    action
        What to change, shape (n, d), standardised units. Zeros where nothing is
        needed; NaN where no action is known, which is not the same.
    status
        ``FOUND`` (verified on the model), ``PROVEN_NONE`` (no allowed action
        reaches the threshold), ``NOT_FOUND`` (the search failed, without proof)
        or ``NOT_NEEDED`` (approved as they are), shape (n,).
    probability_before, probability_after
        The model's probability now and after the action, shape (n,); NaN after
        where no action is known.
    cost
        What the action costs, shape (n,); NaN where no action is known.
    n_changed
        How many features the action touches (a one-hot group counts once).
    effect
        What changes in all, shape (n, d), when actions have consequences (a
        causal model); None when the action is all that changes.
    alternatives
        Further, different ways (``options`` of `recommend`), in the order found.
    """

    action: Floats
    status: NDArray[np.str_]
    probability_before: Floats
    probability_after: Floats
    cost: Floats
    n_changed: NDArray[np.int64]
    effect: Floats | None = None
    alternatives: tuple[Advice, ...] = ()

    def with_alternatives(self, others: tuple[Advice, ...]) -> Advice:
        """Return this advice with further ways beside it."""
        return replace(self, alternatives=others)

    def x_new(self, X: Floats) -> Floats:
        """Return the people after the action and its consequences; NaN where none is known."""
        X = np.asarray(X, np.float64)
        if X.shape != self.action.shape:
            raise DataError(
                f"this advice is for people of shape {self.action.shape}, got {X.shape}"
            )
        moved: Floats = X + (self.action if self.effect is None else self.effect)
        return moved


@dataclass(frozen=True)
class Reached:
    """The best score a search reaches for each person, whatever the threshold.

    Parameters
    ----------
    action
        The allowed action that reaches it, shape (n, d), standardised units.
    score
        The score after the action, never below the present one where staying is
        allowed, shape (n,).
    """

    action: Floats
    score: Floats
