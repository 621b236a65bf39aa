"""Two labels in, signs out: +1 is what people want.

Where people count differently, the size of a sign is a person's weight.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from countermove._types import Floats, Index
from countermove.errors import (
    DataError,
    NotEnoughRowsError,
    ParameterError,
    UnknownNameError,
    nearest,
    shown,
)
from countermove.training.losses import balanced_weights


def two_classes(y: NDArray[Any], favourable: Any = None) -> tuple[NDArray[Any], Any]:
    """Return both labels, sorted, and the favourable one; None: the larger."""
    from sklearn.utils.multiclass import check_classification_targets, type_of_target

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


def counted(y: Floats) -> float:
    """Return how many people labels stand for: the sum of their weights."""
    return float(np.abs(y).sum())


def mean_over(values: Floats, y: Floats) -> float:
    """Return the mean over people of whom each counts as much as the size of the label."""
    return float((values * np.abs(y)).sum() / np.abs(y).sum())


def mean_and_spread(values: Floats, y: Floats) -> tuple[float, float]:
    """Return mean and standard deviation over people who count as much as their labels say."""
    if not is_weighted(y):
        return float(values.mean()), float(values.std())
    centre = mean_over(values, y)
    return centre, float(np.sqrt(mean_over((values - centre) ** 2, y)))


def class_factors(y: Floats, class_weight: Any, classes: Any, favourable: Any) -> Any:
    """Return the weights of the refused and of the favoured class; None where both count alike."""
    if class_weight is None:
        return None
    if isinstance(class_weight, str):
        if class_weight != "balanced":
            hint = nearest(class_weight, ("balanced",))
            raise UnknownNameError(f"no class_weight is called {class_weight!r}: {hint}, or None")
        return balanced_weights(torch.from_numpy(y))
    labels = classes.tolist()
    if not isinstance(class_weight, Mapping) or set(class_weight) != set(labels):
        raise ParameterError(
            f"class_weight is None, 'balanced' or a weight for each of the labels {shown(labels)}, "
            f"got {class_weight!r}"
        )
    refused = next(label for label in labels if label != favourable)
    found = float(class_weight[refused]), float(class_weight[favourable])
    if not (min(found) > 0.0 and max(found) < np.inf):
        raise ParameterError(f"class weights are positive numbers, got {class_weight!r}")
    return found


def between_means(X: Floats, y: Floats) -> Floats:
    """Return the vector from the mean of the refused class to that of the favoured one."""
    if not is_weighted(y):
        direction: Floats = X[y > 0].mean(axis=0) - X[y <= 0].mean(axis=0)
        return direction
    sides = [np.average(X[side], axis=0, weights=np.abs(y[side])) for side in (y > 0, y <= 0)]
    return np.asarray(sides[0] - sides[1])


def is_weighted(y: Floats) -> bool:
    """Return whether some people count more than others."""
    return bool((np.abs(y) != 1.0).any())


def checked_weights(weights: Any, n_rows: int) -> Floats | None:
    """Return how much each row counts, as float64; None where all count alike.

    Whole numbers are numbers of rows. Others have no scale: those above 0 are brought to mean 1.
    """
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
        raise NotEnoughRowsError("every sample_weight is zero: nobody counts")
    if (found != np.rint(found)).any():
        found /= found.max()  # the sum of numbers near the smallest loses digits
        found /= found[found > 0.0].mean()
    return found


def refuse_weights(weights: Any, what: str) -> None:
    """Say why people who count unequally can be given no promise."""
    if weights is not None:
        raise ParameterError(
            f"{what} takes no sample_weight: its promises and intervals are about people drawn "
            "alike, whom it counts, and a count of weighted people has no known chance of being "
            "wrong. Leave it out, or draw rows with chances in proportion to their weights"
        )


def seed_from(random_state: Any) -> int:
    """Return an integer seed: the one given, or one drawn from what was given."""
    if isinstance(random_state, int | np.integer):
        return int(random_state)
    from sklearn.utils import check_random_state

    return int(check_random_state(random_state).randint(2**31 - 1))


def stratified_split(
    y: Floats, fraction: float, shuffler: np.random.Generator
) -> tuple[Index, Index]:
    """Return positions to train on and to validate on, the same share of either class."""
    if not (isinstance(fraction, int | float | np.number) and 0.0 <= fraction < 1.0):
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
