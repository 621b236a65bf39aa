"""Two labels in, signs out: +1 is what people want."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import check_classification_targets, type_of_target

from countermove._types import Floats, Index
from countermove.errors import DataError, NotEnoughRowsError, ParameterError, shown


def two_classes(y: NDArray[Any], favourable: Any = None) -> tuple[NDArray[Any], Any]:
    """Return both labels, sorted, and the favourable one; None: the larger."""
    check_classification_targets(y)
    kind = type_of_target(y, input_name="y", raise_unknown=True)
    if kind != "binary":
        # scikit-learn's own wording, which its checks look for.
        raise DataError(
            f"Only binary classification is supported. The type of the target is {kind}."
        )
    classes = np.unique(y)
    if len(classes) < 2:
        raise NotEnoughRowsError(
            f"training needs people of two classes, got one class only: {classes[0]!r}"
        )
    if favourable is None:
        return classes, classes[1]
    if favourable not in classes.tolist():
        raise ParameterError(
            f"favourable={favourable!r} is none of the labels {shown(classes.tolist())}"
        )
    return classes, classes[classes.tolist().index(favourable)]


def signs(y: NDArray[Any], favourable: Any) -> Floats:
    """Return +1.0 for the favourable label, -1.0 otherwise."""
    return np.where(y == favourable, 1.0, -1.0)


def check_known(y: NDArray[Any], classes: NDArray[Any]) -> None:
    """Refuse labels that were not trained on."""
    strange = np.flatnonzero(~np.isin(y, classes))
    if strange.size:
        raise DataError(
            f"rows {shown(strange)} carry labels other than {shown(classes.tolist())}",
            rows=strange,
        )


def checked_weights(weights: Any, n_rows: int) -> Floats | None:
    """Return how much each row counts, as float64; None where all count alike."""
    if weights is None:
        return None
    found = np.array(weights, dtype=np.float64)
    if found.ndim == 0:
        found = np.full(n_rows, float(found))
    if found.shape != (n_rows,):
        # scikit-learn's own wording, which its checks look for.
        raise DataError(
            f"sample_weight.shape == {found.shape}, expected {(n_rows,)}: one weight per row"
        )
    bad = np.flatnonzero(~(np.isfinite(found) & (found >= 0.0)))
    if bad.size:
        raise DataError(f"weights are finite and at least 0; look at rows {shown(bad)}", rows=bad)
    if not found.any():
        raise NotEnoughRowsError("every sample_weight is 0: nobody counts")
    return found


def seed_from(random_state: Any) -> int:
    """Return an integer seed: the one given, or one drawn from what was given."""
    if isinstance(random_state, int | np.integer):
        return int(random_state)
    return int(check_random_state(random_state).randint(2**31 - 1))


def stratified_split(
    y: Floats, fraction: float, shuffler: np.random.Generator
) -> tuple[Index, Index]:
    """Return positions to train on and to validate on, the same share of either class."""
    if not 0.0 <= fraction < 1.0:
        raise ParameterError(f"validation_fraction lies in [0, 1), got {fraction!r}")
    held = [
        shuffler.permutation(members)[: round(fraction * len(members))]
        for members in (np.flatnonzero(y > 0), np.flatnonzero(y <= 0))
    ]
    everybody = np.arange(len(y))
    # With no share, or too few rows for one, both are all rows.
    if not all(len(part) for part in held):
        return everybody, everybody
    validation = np.sort(np.concatenate(held))
    return np.setdiff1d(everybody, validation), validation
