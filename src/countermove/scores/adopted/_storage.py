"""Adopted models at rest: arrays in safetensors, what they mean in JSON, both hashed.

Loading runs no code: trees and linear rules are data; black boxes and modules are not stored.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load as load_arrays
from safetensors.numpy import save as save_arrays

from countermove.data.standardise import Standardiser
from countermove.data.storage import canonical_digest, write_folder
from countermove.errors import CountermoveError, ModelFileError, ParameterError
from countermove.scores._links import Link
from countermove.scores.adopted._columns import TableColumns
from countermove.scores.adopted._model import AdoptedModel
from countermove.scores.adopted._readers import Labels, linear_scores, tree_scores
from countermove.scores.linear import LinearScore
from countermove.scores.trees import OF_NODES, TreeEnsemble, TreeScore

FORMAT = "countermove adopted model 1"
ARRAYS, DESCRIPTION = "adopted.safetensors", "adopted.json"


def save_adopted(model: AdoptedModel, folder: Path) -> str:
    """Write a model of trees or an affine rule into a new folder; return its SHA-256."""
    arrays, body = _parts(model)
    content = save_arrays(arrays)
    said = body | _about(model) | {"arrays_sha256": hashlib.sha256(content).hexdigest()}
    digest = canonical_digest(said)
    text = json.dumps(said | {"sha256": digest}, indent=2, allow_nan=False)
    write_folder(folder, {ARRAYS: content, DESCRIPTION: text.encode()})
    return digest


def load_adopted(path: str | Path) -> tuple[AdoptedModel, str]:
    """Read an adopted model and its SHA-256; refuse one that is damaged or was altered."""
    folder = Path(path)
    try:
        said: dict[str, Any] = json.loads((folder / DESCRIPTION).read_bytes())
        content = (folder / ARRAYS).read_bytes()
        recorded = said.pop("sha256")
        whole = canonical_digest(said) == recorded
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise ModelFileError(f"{folder} holds no adopted model: {str(error)[:200]}") from error
    if said.get("format") != FORMAT:
        raise ModelFileError(
            f"{folder} has format {said.get('format')!r}; this release reads {FORMAT!r}"
        )
    if not whole or hashlib.sha256(content).hexdigest() != said.get("arrays_sha256"):
        raise ModelFileError(
            f"{folder} was altered: its content does not match the SHA-256 it records; restore it "
            "or adopt the model again"
        )
    try:
        arrays = load_arrays(content)
    except SafetensorError as error:
        raise ModelFileError(f"{folder}/{ARRAYS} cannot be read: {error}") from error
    try:
        return _model(said, arrays), recorded
    except CountermoveError:
        raise
    except Exception as error:
        # Whoever rewrites a description with its digest can put anything anywhere in it.
        raise ModelFileError(
            f"{folder} does not describe a model: {type(error).__name__}: {str(error)[:200]}"
        ) from error


def _parts(model: AdoptedModel) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the arrays of a rule, and what they are."""
    score = model.score_
    if isinstance(score, TreeScore):
        trees = score.ensemble
        arrays = {name: np.ascontiguousarray(getattr(trees, name)) for name in OF_NODES}
        return arrays, {"kind": "trees", "link": score.link.to_json()} | trees.to_json()
    if isinstance(score, LinearScore):
        weights = score.weight.detach().numpy()
        return {"weight": weights.copy()}, {"kind": "affine", "intercept": float(score.bias)}
    raise ParameterError(
        f"{model!r} is code (a {model.exactness.replace('_', ' ')}), and models are stored without "
        "any; trees and linear rules can be saved"
    )


def _about(model: AdoptedModel) -> dict[str, Any]:
    table = model.columns
    unit = model.standardiser_
    assert unit is not None
    return {
        "format": FORMAT,
        "source": model.source,
        "classes": model.classes_.tolist(),
        "place": model.classes_.tolist().index(model.favourable_),
        "standardiser": unit.to_json(),
        "sees_missing": model.sees_missing.tolist(),
        "columns": {
            "names": list(table.names),
            "categories": {name: list(values) for name, values in table.categories.items()},
            "fill": dict(table.fill),
            "open_categories": sorted(table.open_categories),
            "named": table.named,
        },
    }


def _model(said: dict[str, Any], arrays: dict[str, Any]) -> AdoptedModel:
    table = said["columns"]
    columns = TableColumns(
        tuple(table["names"]),
        {name: tuple(values) for name, values in table["categories"].items()},
        table["fill"],
        frozenset(table["open_categories"]),
        table["named"],
    )
    unit = Standardiser.from_json(said["standardiser"])
    classes = np.array(said["classes"])
    labels = Labels.of(classes, classes[said["place"]])
    if said["kind"] == "trees":
        ensemble = TreeEnsemble.from_json(said | {"n_features": unit.n_features}, arrays)
        pair = tree_scores(ensemble, Link.from_json(said["link"]), unit)
    else:
        pair = linear_scores(arrays["weight"], said["intercept"], unit)
    missing = np.array(said["sees_missing"], bool)
    return AdoptedModel(
        *pair, unit, columns, labels.classes, labels.favourable, said["kind"], said["source"],
        None, missing,
    )  # fmt: skip
