"""Who takes part in a collective, and which of their columns may move."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from countermove._types import Index
from countermove.dynamics.crowd import Crowd
from countermove.errors import NotEnoughRowsError, ParameterError, shown


def checked_rows(participants: Any, crowd: Crowd) -> Index:
    """Return the members' rows, from rows, from a mask, or everybody from None."""
    if participants is None:
        return np.arange(crowd.n)
    given = np.asarray(participants)
    if given.dtype == np.bool_:
        if given.shape != (crowd.n,):
            raise ParameterError(
                f"a mask of participants has shape ({crowd.n},), got {given.shape}"
            )
        given = np.flatnonzero(given)
    if given.size == 0:
        raise NotEnoughRowsError("nobody takes part; a collective needs at least one participant")
    if given.ndim != 1 or not np.issubdtype(given.dtype, np.integer):
        raise ParameterError(
            "participants are rows (whole numbers) or a mask (truth values); got an array of "
            f"{given.dtype} with shape {given.shape}"
        )
    wrong = given[(given < 0) | (given >= crowd.n)]
    if wrong.size:
        raise ParameterError(
            f"participants {shown(wrong)} are not among the {crowd.n} rows", rows=wrong
        )
    if len(np.unique(given)) != len(given):
        raise ParameterError("a participant is listed more than once; list each row once")
    return given.astype(np.intp)


def checked_participation(share: float) -> float:
    """Return the members' share of everybody after checking that it is one."""
    if not np.isfinite(share) or not 0.0 <= share <= 1.0:
        raise ParameterError(f"participation is a share in [0, 1], got {share}")
    if share == 0.0:
        raise NotEnoughRowsError(
            "participation is 0, so nobody takes part; a collective needs a share above 0"
        )
    return float(share)


def checked_columns(
    columns: Sequence[int] | None, crowd: Crowd, allow_constant: bool = False
) -> tuple[int, ...]:
    """Return the features that move: they exist, once each, and are not the constant one."""
    named = tuple(range(crowd.d)) if columns is None else tuple(int(j) for j in columns)
    missing = [j for j in named if not 0 <= j < crowd.d]
    if missing:
        raise ParameterError(
            f"column {shown(missing)} does not exist; the people have columns 0 to {crowd.d - 1}"
        )
    if len(set(named)) != len(named):
        raise ParameterError(f"a column is listed more than once: {shown(named)}")
    constant = [j for j in named if np.ptp(crowd.X[:, j]) == 0.0]
    if columns is not None and constant and crowd.n > 1 and not allow_constant:
        raise ParameterError(
            f"column {shown(constant)} is the same for everybody (the model's constant, perhaps), "
            "not something people report; name other columns"
        )
    return named
