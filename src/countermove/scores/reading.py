"""A score as it decides: which one a model holds, and its values (dropout off).

Rows are evaluated in slices, so that a hundred thousand people need no more memory than
a few thousand.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from countermove._types import Floats
from countermove.errors import ParameterError
from countermove.scores.base import Score, deciding

SLICE = 2_048
"""Rows per evaluation: the activations of a 100-wide network then stay in the cache."""


def score_of(model: Any) -> Score:
    """Return the score of a model: a score itself, a fitted classifier's or a stored model's."""
    for candidate in (model, getattr(model, "score_", None), getattr(model, "score", None)):
        if isinstance(candidate, Score):
            return candidate
    raise ParameterError(
        f"{type(model).__name__} holds no score; give a Score, a fitted classifier (call fit "
        "first) or a stored model"
    )


def values(score: Score, X: Floats) -> Floats:
    """Return the score of every row of ``X``, shape (n,)."""
    result = np.empty(len(X))
    with deciding(score), torch.no_grad():
        for start in range(0, len(X), SLICE):
            part = torch.from_numpy(np.array(X[start : start + SLICE]))
            result[start : start + SLICE] = score(part).numpy()
    return result
