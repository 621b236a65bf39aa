"""A model somebody else fitted, as a rule that people respond to."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from countermove._types import Floats
from countermove.data.standardise import Standardiser
from countermove.errors import DataError, ParameterError, shown
from countermove.scores.adopted._columns import TableColumns
from countermove.scores.base import Score, values

Probabilities = Callable[[Any], Floats]
"""From a table to the model's own probability of the favourable label, shape (n,)."""


class AdoptedModel:
    """A fitted model of another library; it takes part wherever a fitted classifier does.

    Attributes
    ----------
    score_ : Score
        Log-odds of the favourable label, read off rows in original units (see `encode`).
    standardised_score_ : Score
        The same of standardised rows: a cost of 1 is one standard deviation of the background.
    standardiser_ : Standardiser
        Means and standard deviations of the background rows.
    classes_, favourable_
        Both labels, and the one people want.
    exactness : str
        ``affine`` and ``trees``: crossings are proven cheapest; ``gradient`` and ``black_box``:
        they are searched for.
    """

    probability_slope_ = 1.0
    action_digits = 12
    """Significant digits of actions handed out: what rounding adds must not undo a whole step."""

    def __init__(
        self,
        score: Score,
        standardised: Score,
        standardiser: Standardiser,
        columns: TableColumns,
        classes: NDArray[Any],
        favourable: Any,
        exactness: str,
        source: str,
        own: Probabilities | None = None,
        sees_missing: NDArray[np.bool_] | None = None,
    ) -> None:
        self.score_, self.standardised_score_ = score, standardised
        self.standardiser_: Standardiser | None = standardiser
        self.columns, self.classes_, self.favourable_ = columns, classes, favourable
        self.exactness, self.source, self.own = exactness, source, own
        none = np.zeros(standardiser.n_features, bool)
        self.sees_missing = none if sees_missing is None else sees_missing

    @property
    def feature_names_in_(self) -> NDArray[Any]:
        """The table's columns."""
        return np.array(self.columns.names, object)

    @property
    def n_features_in_(self) -> int:
        """Number of columns of the matrix that `encode` makes."""
        return self.score_.n_features

    def encode(self, X: Any) -> Floats:
        """Return people as a matrix in original units, categories as one-hot columns."""
        rows = self.columns.encode(X)
        missing = np.isnan(rows)
        surprise = missing.any(axis=0) & ~self.sees_missing
        if surprise.any():
            j = int(np.flatnonzero(surprise)[0])
            who = np.flatnonzero(missing[:, j])
            raise DataError(
                f"column {self.columns.matrix_names[j]!r} is missing in rows {shown(who)}, but was "
                "never missing in the background the model was adopted with; fill it in, or adopt "
                "the model with rows that show how it is missing",
                rows=who,
            )
        return rows

    def decision_function(self, X: Any) -> Floats:
        """Return the log-odds of ``classes_[1]``, nobody moving."""
        sign = 1.0 if self.favourable_ == self.classes_[1] else -1.0
        return sign * values(self.score_, self.encode(X))

    def predict_proba(self, X: Any) -> Floats:
        """Return the probabilities of ``classes_``, nobody moving."""
        from scipy.special import expit

        found = self.decision_function(X)
        return np.column_stack([expit(-found), expit(found)])

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the labels decided at a probability of one half, nobody moving."""
        favoured = values(self.score_, self.encode(X)) >= 0.0
        other = self.classes_[1 - self.classes_.tolist().index(self.favourable_)]
        return np.array([other, self.favourable_])[favoured.astype(np.intp)]

    def probability(self, rows: Floats) -> Floats:
        """Return the probability of the favourable label of rows in original units.

        By the fitted model itself where it is at hand, else by its parsed copy.
        """
        from scipy.special import expit

        if self.own is not None:
            return self.own(self.columns.decode(rows))
        found: Floats = expit(values(self.score_, rows))
        return found

    def approves(self, rows: Floats, threshold: float) -> NDArray[np.bool_]:
        """Return whom the model itself approves, by its own probability, in original units."""
        if not len(rows):
            return np.zeros(0, bool)
        return np.asarray(self.probability(rows) >= threshold - 1e-12)

    def of_standardised_rows(self) -> Self:
        """Return the model as one that reads standardised rows."""
        inside = copy.copy(self)
        inside.score_, inside.standardiser_ = self.standardised_score_, None
        return inside

    def allowed(
        self,
        immutable: Iterable[str] = (),
        only_increase: Iterable[str] = (),
        only_decrease: Iterable[str] = (),
        integer: Iterable[str] = (),
        bounds: Mapping[str, tuple[float, float]] | None = None,
    ) -> dict[str, Any]:
        """Return the arguments of an `ActionSet` in original units, from the table's columns.

        Columns of categories are one-hot groups. Use it as ``ActionSet(**model.allowed(...))``.

        Parameters
        ----------
        immutable, only_increase, only_decrease, integer
            Names of the table's columns.
        bounds
            By column: the least and greatest value anybody may have.
        """
        found: dict[str, Any] = {"units": "original", "groups": self.columns.groups}
        named = {
            "immutable": immutable,
            "only_increase": only_increase,
            "only_decrease": only_decrease,
            "integer": integer,
        }
        for key, names in named.items():
            found[key] = [place for name in names for place in self.columns.places(name)]
        if bounds:
            low, high = np.full((2, self.n_features_in_), -np.inf)
            high[:] = np.inf
            for name, (least, most) in bounds.items():
                places = self.columns.places(name)
                if name in self.columns.categories:
                    raise ParameterError(f"column {name!r} holds categories, which have no bounds")
                low[list(places)], high[list(places)] = least, most
            found |= {"min_value": low, "max_value": high}
        return found

    def __repr__(self) -> str:
        return f"AdoptedModel({self.source}, {self.exactness}, {self.n_features_in_} columns)"
