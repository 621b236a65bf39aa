"""What every classifier around a score shares: labels in, decisions out, nobody moving.

A subclass trains; it leaves ``score_``, ``classes_`` and ``favourable_`` behind.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from countermove._types import Floats, Index
from countermove.errors import ParameterError
from countermove.randomness import generator
from countermove.scores import LinearScore, Score
from countermove.training import _labels as labelling

Table = Any
"""What scikit-learn calls array-like: arrays, lists, data frames."""


class _ParameterBesideMethod:
    """Let ``score`` be both the parameter (the first axis) and scikit-learn's method."""

    # Reading the attribute gives the method; assigning it, as constructors and set_params do,
    # stores the parameter, which get_params reads back.

    def __init__(self, method: Any) -> None:
        self.method = method

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def __get__(self, instance: Any, owner: type) -> Any:
        return self.method if instance is None else self.method.__get__(instance, owner)

    def __set__(self, instance: Any, value: Any) -> None:
        instance.__dict__[self.name] = value


class ScoreClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    r"""A scikit-learn classifier whose rule is a `Score`; ``score`` is its first parameter.

    Attributes
    ----------
    score_ : Score
        The published rule: :math:`s(x) \ge 0` is the favourable decision.
    classes_ : array
        Both labels, sorted.
    favourable_ : label
        The label people want.
    probability_slope_ : float
        Log-odds per unit of score; 1 for scores trained as log-odds.
    """

    favourable: Any
    random_state: Any
    validation_fraction: float
    score_: Score
    classes_: NDArray[Any]
    favourable_: Any
    probability_slope_: float = 1.0

    score = _ParameterBesideMethod(ClassifierMixin.score)

    @property
    def coef_(self) -> Floats:
        """Weights of a linear score, shape (1, d)."""
        return self._linear().weight.detach().numpy()[None, :].copy()

    @property
    def intercept_(self) -> Floats:
        """Intercept of a linear score, shape (1,)."""
        return self._linear().bias.detach().numpy()[None].copy()

    def decision_function(self, X: Table) -> Floats:
        """Return the score of ``classes_[1]``, nobody moving.

        This is ``score_(X)`` if that class is the favourable one, else its negative.
        """
        values = self._values(X)
        return self._sign() * values

    def predict(self, X: Table) -> NDArray[Any]:
        """Return the labels decided, nobody moving."""
        return self._named(self._values(X) >= 0.0)

    def predict_proba(self, X: Table) -> Floats:
        """Return the probabilities of ``classes_``, nobody moving.

        They are the sigmoid of ``probability_slope_`` times the score: 1/2 on the decision
        boundary, whatever the loss.
        """
        from scipy.special import expit

        values = self.probability_slope_ * self.decision_function(X)
        return np.column_stack([expit(-values), expit(values)])

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the constructor's arguments."""
        parameters: dict[str, Any] = super().get_params(deep=deep)
        return parameters | {"score": self.__dict__["score"]}

    def __sklearn_tags__(self) -> Any:
        """Say what scikit-learn may expect: two classes."""
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags

    def _seed(self) -> int:
        return labelling.seed_from(self.random_state)

    def _people(self, X: Table, y: Table) -> tuple[Floats, Floats]:
        """Return the rows and signs to train on, and remember the labels."""
        X, y = validate_data(self, X, y, dtype=np.float64, copy=True)
        self.classes_, self.favourable_ = labelling.two_classes(y, self.favourable)
        return np.ascontiguousarray(X), labelling.signs(y, self.favourable_)

    def _held_out(self, signs: Floats, seed: int) -> tuple[Index, Index]:
        """Return the positions to train on and those held out for early stopping."""
        shuffler = generator(seed, "validation")
        return labelling.stratified_split(signs, self.validation_fraction, shuffler)

    def _start(self, n_features: int) -> Score | None:
        """Return the score given to start from, after checking that it reads the features."""
        given: Score | None = self.__dict__["score"]
        if given is not None and given.n_features != n_features:
            raise ParameterError(f"the score reads {given.n_features} features, X has {n_features}")
        return given

    def _rows(self, X: Table) -> Floats:
        check_is_fitted(self)
        rows = validate_data(self, X, reset=False, dtype=np.float64)
        return np.require(rows, requirements=["C", "W"])

    def _checked(self, X: Table, y: Table) -> tuple[Floats, Floats]:
        """Return rows and signs of people that were not trained on."""
        rows, given = validate_data(self, X, y, reset=False, dtype=np.float64)
        labelling.check_known(given, self.classes_)
        signs = labelling.signs(given, self.favourable_)
        return np.require(rows, requirements=["C", "W"]), signs

    def _values(self, X: Table) -> Floats:
        rows = self._rows(X)
        with torch.no_grad():
            values: Floats = self.score_(torch.from_numpy(rows)).numpy()
        return values

    def _sign(self) -> float:
        return 1.0 if self.favourable_ == self.classes_[1] else -1.0

    def _named(self, favourable: NDArray[np.bool_]) -> NDArray[Any]:
        positions = favourable if self._sign() > 0 else ~favourable
        named: NDArray[Any] = self.classes_[positions.astype(np.intp)]
        return named

    def _linear(self) -> LinearScore:
        check_is_fitted(self, "score_")
        if isinstance(self.score_, LinearScore):
            return self.score_
        raise AttributeError(f"a {self.score_.kind} score has no coef_; read score_ instead")
