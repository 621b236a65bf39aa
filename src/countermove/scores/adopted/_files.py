"""Model files, in formats that run no code."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from countermove.errors import ModelFileError
from countermove.scores.adopted._readers import AdoptedBody

PICKLES = (b"\x80", b"\x1f\x8b", b"x\x9c", b"x\x01", b"x\xda", b"BZh", b"\xfd7zXZ")
"""How a pickle begins, plain or compressed as joblib does."""
INSTEAD = {
    "CatBoost": "the fitted CatBoostClassifier",
    "ONNX": "an onnxruntime.InferenceSession of it",
    "skops": "the estimator that skops.io.load returns",
    "XGBoost UBJSON": "the fitted XGBClassifier, or save it as JSON (save_model('model.json'))",
}
"""What is adopted in place of a file that its own library reads."""


def of_file(path: Path, background: Any, favourable: Any, columns: Any) -> AdoptedBody:
    """Return the body of a model file."""
    from countermove.scores.adopted import _boosters

    if not path.is_file():
        raise ModelFileError(f"there is no model file {path}")
    with path.open("rb") as file:
        start = file.read(8)
    if path.suffix in (".pkl", ".pickle", ".joblib") or start.startswith(PICKLES):
        raise ModelFileError(
            f"{path} is a pickle: loading one runs whatever code is in it, so it is not opened. "
            "Load it yourself, adopt the object, and save() trees and linear rules as data; or "
            "store a booster by save_model (LightGBM text, XGBoost JSON)"
        )
    library = _library_of(path, start)
    if library is not None:
        raise ModelFileError(
            f"{path} is read by {library} itself: pass {INSTEAD[library]} to adopt(), and what it "
            "returns to save() if a run is to read it"
        )
    found = _boosters.of_file(path, background, favourable, columns)
    if found is None:
        raise ModelFileError(
            f"{path} is no model file that is read: LightGBM text and XGBoost JSON are; adopt "
            "another model in Python, as the fitted object or by its predict_proba"
        )
    return found


def _library_of(path: Path, start: bytes) -> str | None:
    """Return whose format a file is in, of those that are not read here."""
    if start.startswith(b"CBM1") or path.suffix == ".cbm":
        return "CatBoost"
    if path.suffix == ".onnx":
        return "ONNX"
    if start.startswith(b"PK") or path.suffix == ".skops":
        return "skops"
    binary = start[:1] == b"{" and start[1:2] not in b'"} \t\r\n'
    return "XGBoost UBJSON" if binary or path.suffix == ".ubj" else None
