"""What every classifier around a score shares: labels in, decisions out, nobody moving.

A subclass trains on standardised rows and publishes a score; users give and get rows as they
hold them.
"""

from __future__ import annotations

import copy
import warnings
from inspect import signature
from typing import Any, ClassVar, Self

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.utils.validation import check_is_fitted, validate_data

from countermove._types import Floats, Index
from countermove.data.standardise import Standardiser
from countermove.errors import ParameterError
from countermove.people import ActionSet
from countermove.randomness import generator
from countermove.scores import LinearScore, Score
from countermove.scores.covariance import BootstrapRefits
from countermove.training import _labels as labelling
from countermove.training.units import RowUnits, names_of

Table = Any
"""What scikit-learn calls array-like: arrays, lists, data frames."""


class ParameterBesideMethod:
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
        The published rule: :math:`s(x) \ge 0` is the favourable decision; it reads rows as given.
    standardised_score_ : Score
        The same rule as a score of standardised rows.
    standardiser_ : Standardiser or None
        Means and standard deviations of the training rows; None without standardising.
    classes_ : array
        Both labels, sorted.
    favourable_ : label
        The label people want.
    probability_slope_ : float
        Log-odds per unit of score; 1 for scores trained as log-odds.
    refits_ : BootstrapRefits or None
        The score fitted again to rows drawn with replacement, where ``refits`` asks for it.
    """

    standardise: bool
    refits: int
    favourable: Any
    random_state: Any
    validation_fraction: float
    score_: Score
    standardised_score_: Score
    standardiser_: Standardiser | None = None
    classes_: NDArray[Any]
    favourable_: Any
    probability_slope_: float = 1.0
    refits_: BootstrapRefits | None = None
    _of_epochs: ClassVar[tuple[str, ...]] = (
        "learning_rate",
        "batch_size",
        "max_epochs",
        "patience",
        "validation_fraction",
    )

    score = ParameterBesideMethod(ClassifierMixin.score)

    @property
    def coef_(self) -> Floats:
        """Weights of a linear score per unit of the columns of ``X``, shape (1, d)."""
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

    def of_standardised_rows(self) -> Self:
        """Return the fitted classifier as one that reads standardised rows."""
        inside = copy.copy(self)
        inside.score_, inside.standardiser_ = self.standardised_score_, None
        return inside

    @property
    def _units(self) -> RowUnits:
        return RowUnits(self.standardiser_, columns=names_of(self))

    def _seed(self) -> int:
        return labelling.seed_from(self.random_state)

    def _people(self, X: Table, y: Table, sample_weight: Any) -> tuple[Floats, Floats, Index]:
        """Return the rows (standardised) and signs to train on; remember units and labels.

        The size of a sign is the person's weight. Rows of weight 0 are left out: the positions of
        the others come third.
        """
        if not isinstance(self.standardise, bool | np.bool_):
            raise ParameterError(f"standardise is True or False, got {self.standardise!r}")
        X, y = validate_data(self, X, y, dtype=np.float64, copy=True)
        weight = labelling.checked_weights(sample_weight, len(y))
        kept = np.arange(len(y)) if weight is None else np.flatnonzero(weight)
        if weight is not None:
            X, y, weight = X[kept], y[kept], weight[kept]
        self.classes_, self.favourable_ = labelling.two_classes(y, self.favourable)
        self.standardiser_ = None
        if self.standardise:
            names = getattr(self, "feature_names_in_", [f"x{j}" for j in range(X.shape[1])])
            self.standardiser_ = Standardiser.fit(
                X, tuple(map(str, names)), keep_constant=True, sample_weight=weight
            )
        signs = labelling.signs(y, self.favourable_)
        return self._inside(X), signs if weight is None else signs * weight, kept

    def _inside(self, X: Floats) -> Floats:
        """Return rows as training and responses read them."""
        return np.require(self._units.rows(X), requirements=["C", "W"])

    def _publish(self, score: Score) -> None:
        """Keep a score of standardised rows, and the same rule for rows as they are given."""
        self.standardised_score_ = self.score_ = score
        if self.standardiser_ is not None:
            unit = self.standardiser_
            self.score_ = score.before_standardising(unit.mean, unit.scale)

    def _warn_of_epochs(self) -> None:
        """Say which settings have no effect on a rule that is trained to the optimum."""
        known = signature(type(self)).parameters
        given = [name for name in self._of_epochs if getattr(self, name) != known[name].default]
        if given:
            warnings.warn(
                f"{', '.join(given)} set how epochs are taken; Newton's method takes none and goes "
                "to the optimum. Leave them out, or ask for optimiser='adam'",
                UserWarning,
                stacklevel=3,
            )

    def _refitted(
        self, X: Table, y: Table, sample_weight: Any, validation: tuple[Table, Table] | None
    ) -> BootstrapRefits | None:
        """Return fits to as many rows drawn with replacement, in this one's standardised units."""
        if not self.refits:
            return None
        actions: ActionSet | None = getattr(self, "actions", None)
        if actions is not None and actions.n_people is not None:
            raise ParameterError(
                "refits draw rows with replacement, and the actions hold bounds of each person; "
                "give bounds of shape (d,) for everybody, or refits=0"
            )
        plain: dict[str, Any] = {"refits": 0, "verbose": 0} | (
            {"selection": "none"} if getattr(self, "selection", None) == "guarded" else {}
        )
        seed, found, unit = self._seed(), [], self.standardiser_
        for number in range(self.refits):
            draws = generator(seed, f"refit:{number}")
            other = clone(self).set_params(random_state=int(draws.integers(2**31)), **plain)
            held = None if validation is None else _resampled(*validation, draws=draws)[:2]
            rows, labels, weight = _resampled(X, y, sample_weight, draws=draws)
            score = other.fit(rows, labels, weight, validation=held).score_
            if unit is not None:  # from rows as given back to the units of this fit
                score = score.before_standardising(-unit.mean / unit.scale, 1.0 / unit.scale)
            found.append(score)
        return BootstrapRefits(tuple(found), len(np.asarray(y)))

    def _held_out(self, signs: Floats, seed: int) -> tuple[Index, Index]:
        """Return the positions to train on and those held out for early stopping."""
        shuffler = generator(seed, "validation")
        return labelling.stratified_split(signs, self.validation_fraction, shuffler)

    def _start(self, n_features: int) -> Score | None:
        """Return the score given to start from, after checking that it reads the features."""
        given: Score | None = self.__dict__["score"]
        if not (given is None or isinstance(given, Score)):
            raise ParameterError(f"a score is a Score to start from, or None; got {given!r}")
        if given is not None and given.n_features != n_features:
            raise ParameterError(f"the score reads {given.n_features} features, X has {n_features}")
        return given

    def _rows(self, X: Table) -> Floats:
        """Return rows as they are given, checked."""
        check_is_fitted(self)
        rows = validate_data(self, X, reset=False, dtype=np.float64)
        return np.require(rows, requirements=["C", "W"])

    def _checked(self, X: Table, y: Table) -> tuple[Floats, Floats]:
        """Return rows (standardised) and signs of people that were not trained on."""
        rows, given = validate_data(self, X, y, reset=False, dtype=np.float64)
        labelling.check_known(given, self.classes_)
        signs = labelling.signs(given, self.favourable_)
        return self._inside(rows), signs

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


def _resampled(
    X: Table, y: Table, sample_weight: Any = None, *, draws: np.random.Generator
) -> tuple[Floats, NDArray[Any], Floats | None]:
    """Return as many rows, drawn with replacement within each label, and their weights."""
    rows, labels = np.asarray(X, np.float64), np.asarray(y)
    who = np.arange(len(labels))
    for label in np.unique(labels):
        own = np.flatnonzero(labels == label)
        who[own] = draws.choice(own, len(own))
    weight = labelling.checked_weights(sample_weight, len(labels))
    return rows[who], labels[who], None if weight is None else weight[who]
