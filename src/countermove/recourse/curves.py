"""How decisions and recourse change with the weight of recourse and the size of actions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from countermove._types import Floats, Mask
from countermove.errors import ParameterError
from countermove.people import ActionSet
from countermove.recourse.classifier import RecourseClassifier
from countermove.recourse.intervals import Share, share
from countermove.recourse.limits import LARGEST_ACTION, narrowed, with_limits
from countermove.recourse.objective import RecourseRisk
from countermove.recourse.one_hot import movable_groups
from countermove.recourse.performance import Performance, approves, performance, scores_of
from countermove.scores import Score

if TYPE_CHECKING:
    import pandas as pd

Finder = Callable[[Score, Floats, ActionSet], Floats]
"""Return an action per person, shape (n, d), NaN where none is known, for a rule (score ≥ 0)."""


@dataclass(frozen=True)
class CurvePoint:
    """One model of the grid, measured on held-out people at one threshold."""

    recourse_weight: float
    largest_action: float
    performance: Performance
    recourse_neg: Share
    recourse_all: Share


def recourse_curves(
    classifier: RecourseClassifier,
    train: tuple[Any, Any],
    test: tuple[Any, Any],
    *,
    weights: Sequence[float] = (0.0, 0.8),
    largest_actions: Sequence[float] = (LARGEST_ACTION,),
    threshold: float = 0.5,
    find: Finder | None = None,
    level: float = 0.95,
) -> tuple[CurvePoint, ...]:
    """Train and measure one model per pair of weight and largest action.

    Parameters
    ----------
    classifier
        Settings of all models; its actions are narrowed, its weight replaced.
    train, test
        People and labels to learn from and to measure on.
    weights, largest_actions
        The grid.
    threshold
        Probability that is favourable.
    find
        Search for recourse; None: the single step the training itself takes, which can
        miss recourse that exists.
    """
    from sklearn.base import clone

    if not weights or not largest_actions:
        raise ParameterError("the grid needs at least one weight and one largest action")
    X, y = np.asarray(test[0], np.float64), np.asarray(test[1])
    points = []
    for largest in largest_actions:
        actions = narrowed(classifier.actions or ActionSet(), largest, X.shape[1])
        for weight in weights:
            model = clone(classifier).set_params(actions=actions, recourse_weight=weight)
            model.fit(*train)
            rule = model.score_.at_threshold(threshold)
            scores, has = _measured(rule, X, actions, find or single_step)
            refused = scores < 0.0
            points.append(
                CurvePoint(
                    recourse_weight=float(weight),
                    largest_action=float(largest),
                    performance=performance(scores, y == model.favourable_),
                    recourse_neg=share(has[refused], level),
                    recourse_all=share(has | ~refused, level),
                )
            )
    return tuple(points)


def single_step(rule: Score, X: Floats, actions: ActionSet) -> Floats:
    """Return the step of the linearised problem, the action training counts on."""
    groups = movable_groups(actions, X.shape[1])
    risk = RecourseRisk(X.shape[1], constraints=actions.A, groups=groups)
    step: Floats = risk.action(rule, torch.from_numpy(with_limits(X, actions))).numpy()
    return step


def curves_frame(points: Sequence[CurvePoint]) -> pd.DataFrame:
    """Return one row per model, shares with their intervals."""
    import pandas as pd

    return pd.json_normalize([asdict(point) for point in points], sep="_")


def _measured(rule: Score, X: Floats, actions: ActionSet, find: Finder) -> tuple[Floats, Mask]:
    scores = scores_of(rule, X)
    after = X + find(rule, X, actions)
    known = np.isfinite(after).all(axis=1)
    has = np.zeros(len(X), bool)
    has[known] = approves(rule, after[known])
    return scores, has & (scores < 0.0)
