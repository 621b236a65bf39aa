"""The units in which prices and bounds are stated, and the one conversion between them.

``"standardised"``: a step of 1 is one standard deviation of the training rows.
``"original"``: a step of 1 is one unit of the column; nothing reads such a cost or
set before ``standardised(mean, scale)`` has converted it.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from countermove._types import Floats
from countermove.errors import ParameterError, nearest

Units: TypeAlias = Literal["standardised", "original"]
KNOWN: tuple[Units, ...] = ("standardised", "original")


def checked_units(units: str) -> Units:
    """Return the units, or refuse a word that is neither."""
    for known in KNOWN:
        if units == known:
            return known
    raise ParameterError(f"units is {units!r}; {nearest(str(units), KNOWN)}")


def checked_moments(mean: ArrayLike, scale: ArrayLike) -> tuple[Floats, Floats]:
    """Return means and scales as arrays of one shape (d,); refuse others."""
    centre, unit = np.asarray(mean, np.float64), np.asarray(scale, np.float64)
    if unit.ndim != 1 or centre.shape != unit.shape:
        raise ParameterError(
            f"mean and scale are one number per feature, got shapes {centre.shape} and {unit.shape}"
        )
    if not (np.isfinite(centre).all() and np.isfinite(unit).all() and (unit > 0.0).all()):
        raise ParameterError("mean and scale must be finite and every scale positive")
    return centre, unit


def not_converted(what: str) -> str:
    """Say that something in original units was used where rows are standardised."""
    return (
        f"{what} is in the columns' own units (units='original'), and the rows here are "
        "standardised: convert it once with .standardised(mean, scale), the mean and standard "
        "deviation of the training rows (Standardiser.mean, Standardiser.scale)"
    )
