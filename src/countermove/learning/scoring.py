"""Scorers for scikit-learn: accuracy after response, under one population for every candidate.

Cost, actions and response are assumptions about people, not settings to tune: a search that judged
each candidate by its own would choose the one whose people cannot move.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from typing import Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.metadata_routing import UNUSED

from countermove.errors import ParameterError, shown
from countermove.learning._populations import population
from countermove.people import ActionSet, Cost
from countermove.people.actions import checked_actions

ASSUMPTIONS = ("cost", "actions", "response", "temperature", "eval_temperature")
"""Parameters of a classifier that say who its people are."""


def after_response(
    response: Any = None,
    *,
    cost: Cost | None = None,
    actions: ActionSet | None = None,
    temperature: float = 0.5,
    background: Any = None,
) -> AfterResponse:
    """Return a scorer: the accuracy once one and the same people have responded to a rule.

    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> X, y = X[50:], y[50:]
    >>> from sklearn.model_selection import cross_val_score
    >>> from countermove import StrategicClassifier, after_response
    >>> scorer = after_response("best")
    >>> cross_val_score(StrategicClassifier(selection="none"), X, y, scoring=scorer, cv=2).shape
    (2,)

    Use it as ``scoring=`` of ``cross_val_score``, ``GridSearchCV`` and the like, with any
    classifier or Pipeline that `adopt` takes. People move in the columns of the table that is
    scored; transformers in front are part of the rule. Scaling, encoding, imputation and principal
    components are followed exactly, other transformers are only asked (a black box).

    Parameters
    ----------
    response
        How people respond: a name, a `Response` or a `Population`, as `StrategicClassifier` takes
        it. None: each classifier's own people, for one classifier at a time; a search over its
        cost, actions or response is then refused.
    cost, actions, temperature
        Of people given by name. Columns of categories are one-hot: ``adopt(model, X).allowed()``
        names them.
    background
        Rows whose means and standard deviations are the units of people; None: the rows scored.

    Returns
    -------
    AfterResponse
        Call it as ``scorer(estimator, X, y, sample_weight=None)``.
    """
    return AfterResponse(response, cost, actions, temperature, background)


class AfterResponse(BaseEstimator):  # type: ignore[misc]
    """The scorer that `after_response` returns."""

    __metadata_request__score: ClassVar[dict[str, str]] = {"estimator": UNUSED}

    def __init__(
        self,
        response: Any,
        cost: Cost | None,
        actions: ActionSet | None,
        temperature: float,
        background: Any,
    ) -> None:
        if response is None and (cost is not None or actions is not None):
            raise ParameterError(
                "cost and actions are those of people given by name; say how they respond, for "
                "example after_response('best', cost=...)"
            )
        self.response, self.cost, self.actions = response, cost, actions
        self.temperature, self.background = temperature, background
        if response is not None:
            population(response, cost, actions, temperature)  # a wrong name is refused here

    def score(self, estimator: Any, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the accuracy of a fitted classifier once people have moved."""
        from countermove.learning.evaluation import judged_accuracy
        from countermove.scores.adopted import adopt

        if self.response is None:
            return self._by_own_people(estimator, X, y, sample_weight)
        rule = adopt(estimator, X if self.background is None else self.background)
        unit = rule.standardiser_
        assert unit is not None
        actions = checked_actions(self.actions, unit.names)
        if actions is None and rule.columns.groups:
            actions = ActionSet(**rule.allowed())
        people = population(self.response, self.cost, actions, self.temperature)
        members = [one.after_standardising(unit.mean, unit.scale) for one in people.members]
        signs = np.where(np.asarray(y) == rule.favourable_, 1.0, -1.0)
        rows = unit.transform(rule.encode(X))
        score = rule.standardised_score_
        return judged_accuracy(score, rows, signs, members, people.weights, sample_weight)

    __call__ = score

    def _by_own_people(self, estimator: Any, X: Any, y: Any, sample_weight: Any) -> float:
        judge = getattr(estimator, "score_after_response", None)
        if judge is None:
            raise ParameterError(
                f"{type(estimator).__name__} does not say who its people are; name them, for "
                "example scoring=after_response('best')"
            )
        return float(judge(X, y, sample_weight=sample_weight))

    def _accept_sample_weight(self) -> bool:
        return True

    def __repr__(self) -> str:
        return "after_response()" if self.response is None else f"after_response({self.response!r})"


def searched_assumptions(given: Iterable[str]) -> list[str]:
    """Return the assumptions among parameters that a search of scikit-learn is just setting.

    Raises
    ------
    ParameterError
        Where that search judges each candidate by its own people.
    """
    names = sorted(set(given) & set(ASSUMPTIONS))
    frame: Any = sys._getframe(1) if names else None
    # Candidates of every search are set, fitted and scored in this function of scikit-learn.
    while frame is not None and frame.f_code.co_name != "_fit_and_score":
        frame = frame.f_back
    if frame is None or frame.f_locals.get("parameters") is None:
        return []
    scorer = frame.f_locals.get("scorer")
    held = getattr(scorer, "_scorers", {}) if not isinstance(scorer, dict) else scorer
    for one in (scorer, *held.values()):
        if isinstance(one, AfterResponse) and one.response is None:
            raise own_people_error(names)
    return names


def own_people_error(names: Sequence[str]) -> ParameterError:
    """Return why candidates that differ in their people are not compared under their own."""
    return ParameterError(
        f"the search varies {shown(names)}, which say who people are, and scores each candidate "
        "under its own: the one whose people cannot move would win. Score all of them under the "
        "same people: scoring=after_response('best', cost=..., actions=...)"
    )
