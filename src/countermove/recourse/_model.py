"""What a recourse search reads of a model: its score, its slopes, its actions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from countermove._types import Floats, Mask
from countermove.errors import ParameterError
from countermove.people import ActionSet
from countermove.scores import Score
from countermove.scores.base import probability

MARGIN = 1e-9
"""Searches aim this share beyond the threshold, so that rounding cannot take it back."""


def actions_of_model(model: Any, actions: ActionSet | None) -> ActionSet:
    """Return the actions given, else those the model was made with."""
    for candidate in (
        actions,
        getattr(model, "actions_", None),
        getattr(model, "actions", None),
    ):
        if isinstance(candidate, ActionSet):
            return candidate
    raise ParameterError(
        f"what may people change? {type(model).__name__} knows no actions; pass "
        "actions=ActionSet(...) or ActionSet.from_schema(schema, standardiser)"
    )


def affine_slope(score: Score, movable: Mask) -> Floats | None:
    """Return the slope where the score is affine in everything that can move, else None."""
    slope = score.slope()
    if slope is None:
        return None
    if movable[list(score.fixed)].any():
        return None
    weights: Floats = slope.detach().numpy().astype(np.float64)
    return weights


def probability_slope(model: Any) -> float:
    """Return the factor between a model's score and its log-odds; 1 unless it says otherwise."""
    stored = getattr(model, "probability_slope", 1.0)
    return float(getattr(model, "probability_slope_", stored))


@dataclass(frozen=True)
class ApprovalThreshold:
    r"""Who is approved: :math:`\sigma(a\,s(x)) \ge p`."""

    threshold: float
    slope: float = 1.0

    def __post_init__(self) -> None:
        if not 0.0 < self.threshold < 1.0:
            raise ParameterError(
                f"a probability threshold lies strictly between 0 and 1, got {self.threshold!r}"
            )

    @property
    def aim(self) -> float:
        """The score the threshold asks for."""
        return float(np.log(self.threshold) - np.log1p(-self.threshold)) / self.slope

    @property
    def slack(self) -> float:
        """How far beyond the aim a search goes, and short of it a proof stays."""
        return MARGIN * (1.0 + abs(self.aim))

    def probability(self, scores: Floats) -> Floats:
        """Return the probabilities of scores."""
        return probability(scores, self.slope)

    def approved(self, scores: Floats) -> Mask:
        """Return who reaches the threshold, on the score's scale or (to the last digit) on p's."""
        mask: Mask = (scores >= self.aim) | (self.probability(scores) >= self.threshold)
        return mask
