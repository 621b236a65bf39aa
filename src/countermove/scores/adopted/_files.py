"""Model files, in formats that run no code."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from countermove.errors import MissingPartError, ModelFileError, shown
from countermove.scores.adopted._readers import AdoptedBody, body_of

PICKLES = (b"\x80", b"\x1f\x8b", b"x\x9c", b"x\x01", b"x\xda", b"BZh", b"\xfd7zXZ")
"""How a pickle begins, plain or compressed as joblib does."""


def of_file(
    path: Path, background: Any, favourable: Any, columns: Any, trusted: Sequence[str]
) -> AdoptedBody:
    """Return the body of a model file."""
    from countermove.scores.adopted import _boosters

    if not path.is_file():
        raise ModelFileError(f"there is no model file {path}")
    with path.open("rb") as file:
        start = file.read(8)
    if path.suffix in (".pkl", ".pickle", ".joblib") or start.startswith(PICKLES):
        raise ModelFileError(
            f"{path} is a pickle: loading one runs whatever code is in it, so it is not opened. "
            "Store the model in a format that is only data: skops.io.dump for scikit-learn, "
            "save_model for LightGBM, XGBoost and CatBoost, ONNX for anything; or load it yourself "
            "and adopt the object"
        )
    if start.startswith(b"PK") or path.suffix == ".skops":
        model = _skops(path, trusted)
        return body_of(model, background, favourable, columns, "log_odds")
    if path.suffix == ".onnx":
        from countermove.scores.adopted._onnx import load_onnx, of_onnx

        return of_onnx(load_onnx(path), background, favourable, columns)
    found = _boosters.of_file(path, background, favourable, columns)
    if found is None:
        raise ModelFileError(
            f"{path} is no model file that is read: LightGBM text, XGBoost JSON or UBJSON, "
            "CatBoost JSON or cbm, ONNX (.onnx) and skops are"
        )
    return found


def _skops(path: Path, trusted: Sequence[str]) -> Any:
    try:
        from skops import io
    except ImportError as error:
        raise MissingPartError(
            f"{path} is a skops file; install countermove[skops] to read it"
        ) from error
    strange = set(io.get_untrusted_types(file=str(path))) - set(trusted)
    if strange:
        raise ModelFileError(
            f"{path} names types that skops does not trust: {shown(sorted(strange))}. Look at "
            "them, and pass those you trust as adopt(..., trusted=[...])"
        )
    return io.load(str(path), trusted=list(trusted))
