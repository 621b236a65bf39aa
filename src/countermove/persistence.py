"""Save and load of anything that decides, in one format that holds no code.

Numbers are safetensors, what they mean is JSON, both hashed; a folder is written whole or not at
all. What was saved is read back and compared before the folder appears.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, fields, is_dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from countermove._types import Floats
from countermove.data.missing import filled_in
from countermove.data.schema import ModelFeature
from countermove.data.standardise import Standardiser
from countermove.data.storage import write_folder
from countermove.errors import CountermoveError, ModelFileError, ParameterError
from countermove.learning import (
    L2,
    ExpectedUtility,
    FlexibleCost,
    Recourse,
    SocialBurden,
    StrategicClassifier,
    TreeTraining,
    UnknownCost,
)
from countermove.learning.selection import Choice
from countermove.people import ActionSet, Cost, cost_from_description
from countermove.people.cost_boxes import CostBox
from countermove.production.registry import Registry
from countermove.production.scoring.applicants import applicants_matrix
from countermove.recourse import RecourseClassifier
from countermove.recourse.advise import decide
from countermove.recourse.problem import ApprovalThreshold
from countermove.response import Response, response_from_description
from countermove.response.response_set import kinds_of
from countermove.scores import Score
from countermove.scores.adopted import AdoptedModel
from countermove.scores.adopted import _storage as adopted
from countermove.scores.adopted._columns import TableColumns
from countermove.scores.base import values
from countermove.scores.opaque import OpaqueScore
from countermove.scores.storage import (
    DESCRIPTION,
    PublishedModel,
    load_model,
    pack_model,
    score_from_json,
    score_to_json,
    unpack_model,
)
from countermove.scores.trees import TreeScore
from countermove.training import History
from countermove.training.estimator import ScoreClassifier

if TYPE_CHECKING:
    Rule = ScoreClassifier | AdoptedModel

__all__ = ["PublishedRule", "load", "save"]

CHAMPION = "champion.json"
ESTIMATOR = "estimator"
"""Key of what a classifier is, in the description of its score."""
_CLASSIFIERS: dict[str, type[ScoreClassifier]] = {
    kind.__name__: kind for kind in (StrategicClassifier, RecourseClassifier)
}
_SETTINGS: dict[str, type] = {
    kind.__name__: kind
    for kind in (
        *(L2, ExpectedUtility, Recourse, SocialBurden, TreeTraining),
        *(FlexibleCost, UnknownCost, CostBox),
    )
}
"""Dataclasses that constructors take."""
_BESIDE = ("unit", "offset")
"""What an `ActionSet` knows beyond its arguments: the units it was made in."""


def save(model: Rule, path: str | Path) -> str:
    """Write a fitted classifier, an adopted model or a loaded rule into a new folder.

    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> X, y = X[50:], y[50:]
    >>> import tempfile
    >>> from countermove import StrategicClassifier, load, save
    >>> rule, folder = StrategicClassifier().fit(X, y), tempfile.mkdtemp() + "/rule"
    >>> digest = save(rule, folder)
    >>> bool((load(folder).predict(X) == rule.predict(X)).all())
    True

    Parameters
    ----------
    model
        A fitted `StrategicClassifier` or `RecourseClassifier`, what `adopt` or `load` returned.
        What is code (black boxes, torch modules, costs of your own) is refused.
    path
        A folder that does not exist yet; it appears whole or not at all.

    Returns
    -------
    str
        SHA-256 of everything stored.
    """
    folder = Path(path)
    if isinstance(model, PublishedRule):
        files, digest = pack_model(model.published)
    elif isinstance(model, AdoptedModel):
        return adopted.save_adopted(model, folder)
    elif type(model).__name__ in _CLASSIFIERS and isinstance(model, ScoreClassifier):
        files, digest = pack_model(_published(model))
        _check_readable(files, type(model).__name__)
    else:
        raise ParameterError(
            f"cannot save {type(model).__name__}: give a fitted StrategicClassifier or "
            "RecourseClassifier, or adopt(model, background=X) of another library's model or "
            "Pipeline"
        )
    write_folder(folder, files)
    return digest


def load(path: str | Path) -> Rule:
    """Read a rule, whoever stored it; refuse one that is damaged or was altered.

    >>> import tempfile
    >>> import numpy as np
    >>> from countermove import StrategicClassifier, load, save
    >>> folder = tempfile.mkdtemp() + "/rule"
    >>> digest = save(StrategicClassifier().fit(np.eye(6), [0, 0, 0, 1, 1, 1]), folder)
    >>> load(folder).classes_
    array([0, 1])

    Parameters
    ----------
    path
        A folder that `save` wrote, a model or version folder of a run, or a registry (a folder or
        fsspec URL with ``champion.json``), whose champion is read.

    Returns
    -------
    StrategicClassifier, RecourseClassifier, AdoptedModel or PublishedRule
        ``decision_function`` and ``predict`` take rows in original units, and decide as before.
        A champion reads the schema's table and decides as ``kedro run --pipeline=score``.
    """
    url = str(path)
    if "://" in url or (Path(path) / CHAMPION).exists():
        champion = Registry(url).champion()
        if champion is None:
            raise ModelFileError(f"the registry {url} has no champion yet; promote a version first")
        return PublishedRule(champion.model, f"champion {champion.version}")
    folder = Path(path)
    if (folder / adopted.DESCRIPTION).exists():
        return adopted.load_adopted(folder)[0]
    if not (folder / DESCRIPTION).exists():
        raise ModelFileError(
            f"{folder} holds no model: expected a folder that save() wrote, one of a run's models, "
            f"or a registry with {CHAMPION}"
        )
    return _rule(load_model(folder), str(folder))


def _check_readable(files: Mapping[str, bytes], kind: str) -> None:
    """Refuse a classifier that could not be read again: something it was given holds code."""
    try:
        _rule(unpack_model(files.__getitem__, "what would be stored")[0], "what would be stored")
    except CountermoveError as error:
        raise ParameterError(f"this {kind} cannot be saved without code: {error}") from error


class PublishedRule(AdoptedModel):
    """A rule of the chain, for people in original units: it decides as ``score`` does.

    It approves whose probability reaches ``threshold``: there ``decision_function`` is at least
    0 and ``predict`` gives 1, elsewhere -1. A frame is the table of the schema that the rule was
    made for, raw or typed, missing cells and codes included; an array holds the columns
    ``feature_names_in_``, of categories one per category.
    """

    def __init__(self, model: PublishedModel, source: str) -> None:
        unit, rule = model.standardiser, model.rule
        outside = rule.before_standardising(unit.mean, unit.scale)
        fill = {} if unit.fill is None else dict(zip(unit.names, unit.fill.tolist(), strict=True))
        known = {name: value for name, value in fill.items() if not math.isnan(value)}
        columns = TableColumns(unit.names, fill=known, named=True)
        labels = np.array([-1, 1])
        super().__init__(outside, rule, unit, columns, labels, 1, _exactness(rule), source)
        self.published, self.threshold = model, model.threshold
        self.probability_slope_ = model.probability_slope

    def encode(self, X: Any) -> Floats:
        """Return people as a matrix in original units, missing cells filled in."""
        schema = self.published.schema
        if schema is None or not hasattr(X, "columns"):
            return super().encode(X)
        frame = X.to_pandas() if hasattr(X, "to_pandas") else X
        return filled_in(applicants_matrix(frame, schema), self.published.standardiser.fill)

    def decision_function(self, X: Any) -> Floats:
        """Return how far the score lies above the threshold: approved from 0 on, nobody moving."""
        return self._above(self.encode(X))

    def predict(self, X: Any) -> NDArray[Any]:
        """Return 1 for whom the rule approves, else -1, nobody moving."""
        return np.where(self.decision_function(X) >= 0.0, 1, -1)

    def predict_proba(self, X: Any) -> Floats:
        """Return the probabilities of both labels, nobody moving."""
        favourable = self.probability(self.encode(X))
        return np.column_stack([1.0 - favourable, favourable])

    def probability(self, rows: Floats) -> Floats:
        """Return the probability of the favourable label, of which ``threshold`` is asked."""
        return decide(self.published, self.published.standardiser.transform(rows))[1]

    def approves(self, rows: Floats, threshold: float) -> NDArray[np.bool_]:
        """Return whom the rule approves; 0.5 stands for its own threshold, as in ``score_``."""
        if not len(rows):
            return np.zeros(0, bool)
        return ApprovalThreshold(threshold, self.probability_slope_).approved(self._above(rows))

    def _above(self, rows: Floats) -> Floats:
        model = self.published
        inside = model.standardiser.transform(rows)
        aim = ApprovalThreshold(model.threshold, model.probability_slope).aim
        above = values(model.score, inside) - aim
        # Whoever reaches the threshold to the last digit of the probability is approved too.
        return np.where(decide(model, inside)[0], np.maximum(above, 0.0), above)

    def __repr__(self) -> str:
        return f"PublishedRule({self.source}, at {self.threshold:g}, {self.n_features_in_} columns)"


def _exactness(rule: Score) -> str:
    if isinstance(rule, TreeScore | OpaqueScore):
        return "trees" if isinstance(rule, TreeScore) else "black_box"
    return "gradient" if rule.slope() is None else "affine"


def _rule(model: PublishedModel, where: str) -> Rule:
    said = model.about.get(ESTIMATOR)
    if said is None:
        return PublishedRule(model, where)
    try:
        return _fitted(model, said)
    except ModelFileError:
        raise
    except Exception as error:
        # Whoever rewrites a description with its digest can put anything anywhere in it.
        raise ModelFileError(
            f"{where} does not describe a classifier: {type(error).__name__}: {str(error)[:200]}; "
            "restore the files or fit it again"
        ) from error


def _published(model: ScoreClassifier) -> PublishedModel:
    """Return a classifier as its score of standardised rows, and what it is beside that."""
    from sklearn.utils.validation import check_is_fitted

    check_is_fitted(model)
    names = getattr(model, "feature_names_in_", None)
    columns = [f"x{j}" for j in range(model.n_features_in_)] if names is None else names
    unit, width = model.standardiser_, len(columns)
    plain = Standardiser(np.zeros(width), np.ones(width), tuple(map(str, columns)))
    choice = getattr(model, "choice_", None)
    fitted = {
        "classes": model.classes_,
        "place": model.classes_.tolist().index(model.favourable_),
        "names": names,
        "standardised": unit is not None,
        "history": model.history_.to_json(),
        "choice": None if choice is None else choice.to_json(),
    } | {name: vars(model)[name] for name in _OWN if name in vars(model)}
    said = {
        "class": type(model).__name__,
        "parameters": {
            name: _encoded(value, name) for name, value in model.get_params(deep=False).items()
        },
        "fitted": {name: _encoded(value, name) for name, value in fitted.items()},
    }
    return PublishedModel(
        model.standardised_score_,
        plain if unit is None else unit,
        "",
        {"probability_slope": model.probability_slope_, ESTIMATOR: said},
        covariance=getattr(model, "covariance_", None),
        refits=model.refits_,
    )


_OWN = ("cost_", "actions_", "train_ids_")
"""Attributes of a fit that one class has and the other may not."""


def _fitted(model: PublishedModel, said: Mapping[str, Any]) -> ScoreClassifier:
    """Return the classifier that `_published` described."""
    if said["class"] not in _CLASSIFIERS:
        raise ModelFileError(f"no classifier is called {said['class']!r} in this release")
    made = _CLASSIFIERS[said["class"]](
        **{name: _decoded(value) for name, value in said["parameters"].items()}
    )
    found = {name: _decoded(value) for name, value in said["fitted"].items()}
    made.classes_ = found["classes"]
    made.favourable_ = made.classes_[found["place"]]
    made.n_features_in_ = model.score.n_features
    if found["names"] is not None:
        made.feature_names_in_ = found["names"]
    made.standardiser_ = model.standardiser if found["standardised"] else None
    made._publish(model.score)
    made.probability_slope_, made.refits_ = model.probability_slope, model.refits
    made.history_ = History.from_json(found["history"])
    for name in _OWN:
        if name in found:
            setattr(made, name, found[name])
    if isinstance(made, StrategicClassifier):
        choice = found["choice"]
        made.choice_ = None if choice is None else Choice.from_json(choice, made.score_)
        made.covariance_ = model.covariance
    return made


def _encoded(value: Any, name: str) -> Any:
    """Return a setting as JSON; refuse what is code."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return {"is": "float", "hex": value.hex()}
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, list | tuple):
        return {"is": type(value).__name__, "items": [_encoded(one, name) for one in value]}
    if isinstance(value, np.ndarray):
        items = [_encoded(one, name) for one in value.tolist()]
        return {"is": "array", "dtype": value.dtype.str, "items": items}
    if isinstance(value, Mapping):
        pairs = [[_encoded(key, name), _encoded(one, name)] for key, one in value.items()]
        return {"is": "mapping", "items": pairs}
    if type(value).__name__ in _SETTINGS and is_dataclass(value):
        held = {field.name: getattr(value, field.name) for field in fields(value)}
        parts = {key: _encoded(one, name) for key, one in held.items()}
        return {"is": type(value).__name__, "fields": parts}
    return _encoded_people(value, name)


def _encoded_people(value: Any, name: str) -> Any:
    if isinstance(value, Score):
        return {"is": "score", "said": score_to_json(value)}
    if isinstance(value, ActionSet):
        beside = {key: _encoded(getattr(value, key), name) for key in _BESIDE}
        columns = None if value.columns is None else [asdict(column) for column in value.columns]
        beside |= {"columns": _encoded(columns, name)}
        return {"is": "actions", "said": value.describe(), "beside": beside}
    if isinstance(value, Response):
        actions = [_encoded(kind.actions, name) for kind in kinds_of(value)]
        return {"is": "response", "said": value.describe(), "actions": actions}
    if isinstance(value, Cost):
        return {"is": "cost", "said": value.describe()}
    raise ParameterError(
        f"{name}={value!r} is code or of a kind that is not stored; models are saved without any. "
        "Costs, actions, responses and regularisers of this package, numbers and text are saved"
    )


def _decoded(said: Any) -> Any:
    """Return what `_encoded` wrote down."""
    if not isinstance(said, Mapping):
        return said
    kind = said["is"]
    if kind == "float":
        return float.fromhex(said["hex"])
    if kind in ("list", "tuple", "array", "mapping"):
        items = [_decoded_item(one, kind) for one in said["items"]]
        if kind == "array":
            return np.array(items, dtype=np.dtype(said["dtype"]))
        return {"list": list, "tuple": tuple, "mapping": dict}[kind](items)
    if kind in _SETTINGS:
        return _SETTINGS[kind](**{key: _decoded(one) for key, one in said["fields"].items()})
    return _decoded_people(kind, said)


def _decoded_item(one: Any, kind: str) -> Any:
    return tuple(map(_decoded, one)) if kind == "mapping" else _decoded(one)


def _decoded_people(kind: str, said: Mapping[str, Any]) -> Any:
    if kind == "score":
        return score_from_json(said["said"])
    if kind == "cost":
        return cost_from_description(said["said"])
    if kind == "actions":
        return _with_units(ActionSet(**said["said"]), said["beside"])
    if kind == "response":
        people = response_from_description(said["said"])
        for one, stored in zip(kinds_of(people), said["actions"], strict=True):
            _with_units(one.actions, stored["beside"])
        return people
    raise ModelFileError(f"no setting is of kind {kind!r} in this release")


def _with_units(actions: ActionSet, beside: Mapping[str, Any]) -> ActionSet:
    for key in _BESIDE:
        setattr(actions, key, _decoded(beside[key]))
    columns = _decoded(beside["columns"])
    actions.columns = None if columns is None else tuple(ModelFeature(**one) for one in columns)
    return actions
