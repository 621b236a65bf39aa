"""How well a rule decides, F1 with what it must be read against.

On tables with many favourable labels "approve everybody" has a high F1, so F1
alone says little: AUC, the positive rate and that trivial F1 stand beside it.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from countermove._types import Floats, Mask
from countermove.errors import DataError
from countermove.scores import Score
from countermove.scores.base import values

ROUNDING = 1e-9
"""A score this close to the threshold is on it: recourse often ends exactly there."""


@dataclass(frozen=True)
class Performance:
    """Shares over people; None where the denominator is empty."""

    n: int
    accuracy: float
    balanced_accuracy: float | None
    precision: float | None
    recall: float | None
    f1: float
    auc: float | None  # chance that a deserving person outscores another
    positive_rate: float  # share approved
    always_positive_f1: float  # F1 of approving everybody

    def to_json(self) -> dict[str, Any]:
        """Return a JSON-ready description."""
        return asdict(self)


def scores_of(rule: Score, X: Floats) -> Floats:
    """Return the score of every row, 0 where it is within rounding of 0."""
    found = values(rule, X)
    return np.where(np.abs(found) <= ROUNDING, 0.0, found)


def approves(rule: Score, X: Floats) -> Mask:
    """Return who is approved by the rule ``score >= 0``."""
    approved: Mask = scores_of(rule, X) >= 0.0
    return approved


def performance(scores: Floats, favourable: Mask) -> Performance:
    """Measure the rule ``scores >= 0`` against who deserves it."""
    n, approved = len(scores), scores >= 0.0
    if not n or favourable.shape != scores.shape:
        raise DataError(
            f"{n} scores and labels of shape {favourable.shape} do not describe the same people"
        )
    hits = int(np.count_nonzero(approved & favourable))
    n_approved, deserving = int(approved.sum()), int(favourable.sum())
    right_refusals = int(np.count_nonzero(~approved & ~favourable))
    recall, specificity = _share(hits, deserving), _share(right_refusals, n - deserving)
    both = recall is not None and specificity is not None
    return Performance(
        n=n,
        accuracy=(hits + right_refusals) / n,
        balanced_accuracy=0.5 * (recall + specificity) if both else None,  # type: ignore[operator]
        precision=_share(hits, n_approved),
        recall=recall,
        f1=_f1(hits, n_approved, deserving),
        auc=area_under_curve(scores, favourable),
        positive_rate=n_approved / n,
        always_positive_f1=_f1(deserving, n, deserving),
    )


def best_f1(
    scores: Floats, favourable: Mask, sample_weight: Floats | None = None
) -> tuple[float, float]:
    r"""Return the cut with the highest F1 and that F1, over all cuts at a person's score.

    .. math:: \max_t \frac{2\,|\{s \ge t, y = 1\}|}{|\{s \ge t\}| + |\{y = 1\}|}

    Ties go to the highest cut, the strictest rule; people count by ``sample_weight``, (n,).
    """
    size = np.ones(len(scores)) if sample_weight is None else sample_weight
    order = np.argsort(-scores, kind="stable")
    ranked = scores[order]
    hits = np.cumsum((size * favourable)[order])
    # Only the last of equal scores is a cut: a rule decides alike on equal scores.
    last = np.append(ranked[1:] != ranked[:-1], True)
    f1 = np.where(last, 2.0 * hits / (np.cumsum(size[order]) + hits[-1]), -1.0)
    best = int(np.argmax(f1))
    return float(ranked[best]), float(f1[best])


def area_under_curve(scores: Floats, favourable: Mask) -> float | None:
    """Return the area under the ROC curve, ties counted half; None with one class only."""
    from scipy.stats import rankdata

    n_above = int(favourable.sum())
    n_below = len(scores) - n_above
    if not n_above or not n_below:
        return None
    rank_sum = float(rankdata(scores)[favourable].sum())
    return (rank_sum - n_above * (n_above + 1) / 2) / (n_above * n_below)


def _f1(hits: int, n_approved: int, deserving: int) -> float:
    return 2.0 * hits / (n_approved + deserving) if n_approved + deserving else 0.0


def _share(count: int, of: int) -> float | None:
    return count / of if of else None
