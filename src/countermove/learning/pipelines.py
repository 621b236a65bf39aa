r"""Transformers in front of a strategic classifier, inside the score that people respond to.

In scikit-learn's own `Pipeline` the last step sees transformed rows only, and is trained for people
who move in those. Here people move in the columns of the table: an affine transformer
:math:`z = Mx + c` that loses nothing has the same rules as the columns themselves,
:math:`v\cdot z + b' = w\cdot x + b`, so the rule is trained on those and then written in z.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from countermove._types import Floats
from countermove.errors import ParameterError, shown
from countermove.learning.classifier import StrategicClassifier
from countermove.learning.simple_rules import linear_score
from countermove.people import ActionSet
from countermove.response.base import Responses
from countermove.scores import LinearScore
from countermove.scores.adopted._columns import TableColumns
from countermove.scores.adopted._pipelines import NotFoldedError, unfold
from countermove.scores.adopted._readers import affine_features, names_of

SAME = 1e-9
"""Directions that transformers shrink to less than this share count as lost."""


class StrategicPipeline(Pipeline):  # type: ignore[misc]
    r"""A `Pipeline` that ends in a `StrategicClassifier`, trained for people who move in its table.

    >>> from sklearn.datasets import load_iris
    >>> from sklearn.decomposition import PCA
    >>> X, y = load_iris(return_X_y=True)
    >>> X, y = X[50:], y[50:]
    >>> from countermove import StrategicClassifier, StrategicPipeline
    >>> rule = StrategicPipeline([("turn", PCA()), ("rule", StrategicClassifier())]).fit(X, y)
    >>> plain = StrategicClassifier().fit(X, y)
    >>> bool(abs(rule.decision_function(X) - plain.decision_function(X)).max() < 1e-9)
    True

    Scaling, one-hot encoding, all principal components and their combinations by column may stand
    in front: the rule is the one that the columns they read give. What `adopt` does not follow
    exactly, or what loses a direction, is refused with what to do instead.

    Parameters
    ----------
    steps, transform_input, memory, verbose
        Of `Pipeline`. The classifier's cost and actions are about ``columns_``: numbers as they
        are, categories one-hot and held by whoever is in them.

    Attributes
    ----------
    rule_ : StrategicClassifier
        The rule in the columns of the table: its ``coef_``, ``choice_``, ``respond``.
    columns_ : tuple of str
        What those are: columns of numbers, and ``name=category``.
    """

    steps: list[tuple[str, Any]]
    rule_: StrategicClassifier
    columns_: tuple[str, ...]
    _read: _AffineSteps

    def fit(self, X: Any, y: Any = None, **params: Any) -> Self:
        """Fit the transformers, and train the rule on the columns they read.

        ``<classifier>__sample_weight`` goes to the classifier, as in a `Pipeline`.
        """
        name, last = self.steps[-1]
        if not isinstance(last, StrategicClassifier) or last.get_params(deep=False)["score"]:
            raise ParameterError(
                "a StrategicPipeline ends in a StrategicClassifier of a linear score (score=None)"
            )
        own = {key: params.pop(key) for key in [*params] if key.startswith(f"{name}__")}
        front = [(each, clone(step)) for each, step in self.steps[:-1] if step is not None]
        if front:
            Pipeline(front).fit(X, y, **params)
        self._read = _read([*front, (name, last)], X)
        self.columns_ = self._read.table.matrix_names
        rule = clone(last)
        if rule.actions is None and self._read.table.groups:
            rule.actions = ActionSet(groups=self._read.table.groups)
        given = {key.removeprefix(f"{name}__"): value for key, value in own.items()}
        self.rule_ = rule.fit(self._read.encode(X), y, **given)
        self.steps = [*front, (name, self._read.written(self.rule_))]
        return self

    def respond(self, X: Any, response: Any = None) -> Responses[Any]:
        """Return where people move to in response to the rule, in ``columns_``."""
        return self.rule_.respond(self._encoded(X), response)

    def predict_after_response(self, X: Any, response: Any = None) -> NDArray[Any]:
        """Return the labels decided once people have moved."""
        return self.rule_.predict_after_response(self._encoded(X), response)

    def score_after_response(
        self, X: Any, y: Any, response: Any = None, sample_weight: Any = None
    ) -> float:
        """Return the accuracy once people have moved (see `StrategicClassifier`)."""
        return self.rule_.score_after_response(self._encoded(X), y, response, sample_weight)

    def _encoded(self, X: Any) -> Floats:
        check_is_fitted(self, "rule_")
        return self._read.encode(X)


@dataclass(frozen=True)
class _AffineSteps:
    """The columns of a table that transformers read, and what the last step reads of them."""

    table: TableColumns
    places: list[int]  # of those columns in a table without names
    matrix: Floats
    shift: Floats

    def encode(self, X: Any) -> Floats:
        """Return people as a matrix, categories one-hot."""
        named = getattr(X, "columns", None) is not None and self.table.named
        return self.table.encode(X if named else np.asarray(X)[:, self.places])

    @property
    def system(self) -> Floats:
        """What rules are made of: the matrix, and the constants, (k + groups, n)."""
        # The columns of a category add up to one: what all of them have in common is a constant.
        whole = np.zeros((len(self.table.groups), self.matrix.shape[1]))
        for row, group in zip(whole, self.table.groups, strict=True):
            row[list(group)] = 1.0
        return np.vstack([self.matrix, whole])

    def check_whole(self) -> None:
        """Refuse transformers that lose a direction in which people differ."""
        size = np.abs(self.system).max(axis=0)
        _, values, directions = np.linalg.svd(self.system / np.where(size > 0.0, size, 1.0))
        kept = int((values > SAME * values.max(initial=0.0)).sum())
        lost = (np.abs(directions[kept:]) > SAME).any(axis=0)
        if lost.any():
            names = [n for n, gone in zip(self.table.matrix_names, lost, strict=True) if gone]
            raise ParameterError(
                f"the transformers in front keep {kept} of the {len(lost)} directions in which "
                f"people differ, and mix what they lose of {shown(map(repr, names))}: a rule for "
                "people who move in those columns needs all. Keep all components, and encode "
                "categories one-hot"
            )

    def written(self, rule: StrategicClassifier) -> StrategicClassifier:
        """Return a rule of the table's columns as one of transformed columns."""
        score = rule.score_
        assert isinstance(score, LinearScore)
        size = np.abs(self.system).max(axis=0)
        weight = score.weight.detach().numpy() / size
        found = np.linalg.lstsq((self.system / size).T, weight, rcond=None)[0]
        parts, constants = found[: len(self.matrix)], found[len(self.matrix) :]
        bias = score.bias.item() - parts @ self.shift + constants.sum()
        written = copy.copy(rule)
        written.score_ = written.standardised_score_ = linear_score(np.append(parts, bias))
        written.standardiser_, written.covariance_, written.refits_ = None, None, None
        written.n_features_in_ = len(parts)
        written.__dict__.pop("feature_names_in_", None)
        return written


def _read(steps: list[tuple[str, Any]], X: Any) -> _AffineSteps:
    """Follow fitted transformers in front of the last step; refuse what cannot be followed."""
    fitted = [step for _, step in steps if hasattr(step, "n_features_in_")]
    names = getattr(fitted[0] if fitted else X, "feature_names_in_", None)
    width = int(fitted[0].n_features_in_ if fitted else np.shape(X)[1])
    try:
        _, table, features = unfold(Pipeline(steps), *names_of(names, X, None, width))
    except NotFoldedError as error:
        raise ParameterError(
            f"{error} is not followed step by step, so that no rule can be trained for people who "
            "move in the columns in front of it. Leave it out, or fit the pipeline as if nobody "
            "moved and adopt it, which asks it as a black box: "
            "adopt(make_pipeline(..., LogisticRegression()).fit(X, y), X)"
        ) from error
    matrix, shift = affine_features(features, len(table.matrix_names))
    # What is dropped need not even be a number.
    used = {
        name: list(table.places(name))
        for name in table.names
        if name in table.categories or matrix[:, list(table.places(name))].any()
    }
    places = [place for place, name in enumerate(table.names) if name in used]
    columns = [column for own in used.values() for column in own]
    found = _AffineSteps(replace(table, names=tuple(used)), places, matrix[:, columns], shift)
    found.check_whole()
    return found
