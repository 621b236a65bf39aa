"""Bounds that differ from person to person, and how they follow their people.

Row i of such a bound belongs to person i of the table it was written for; whoever takes
some rows of that table takes the same rows of the bounds.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from countermove.errors import ParameterError, shown

if TYPE_CHECKING:
    from countermove.people.actions import ActionSet

LISTED = ("lower", "upper", "min_value", "max_value", "b")


def people_listed(actions: ActionSet) -> int | None:
    """Return for how many people the set holds bounds of their own; None: all share theirs."""
    own = _own(actions)
    counts = {name: len(value) for name, value in own.items()}
    if len(set(counts.values())) > 1:
        raise ParameterError(
            f"per-person bounds must list the same people, got {counts} rows; give each of them "
            "shape (n, d) for the same n, or (d,) for everybody"
        )
    return next(iter(counts.values()), None)


def pick_people(actions: ActionSet, rows: ArrayLike) -> dict[str, Any]:
    """Return the bounds of the people in ``rows``, in that order, by name."""
    n = people_listed(actions)
    if n is None:
        return {}
    chosen = np.asarray(rows)
    outside = np.unique(chosen[(chosen < 0) | (chosen >= n)])
    if outside.size:
        raise ParameterError(
            f"the actions hold bounds of {n} people, but rows {shown(outside)} were asked for; "
            "list every person, or give bounds of shape (d,) for everybody"
        )
    return {name: value[chosen] for name, value in _own(actions).items()}


def check_people(actions: ActionSet, n_rows: int, what: str) -> None:
    """Refuse per-person bounds that list other people than the ``n_rows`` rows at hand."""
    n = people_listed(actions)
    if n is not None and n != n_rows:
        raise ParameterError(
            f"the actions hold bounds of {n} people but {what} are {n_rows} rows: row i of the "
            "bounds belongs to row i of the people. Give bounds of shape (d,) for everybody, or "
            "take the same rows of both (ActionSet.of_rows(rows)); in cross-validation only "
            "shared bounds can follow the folds"
        )


def _own(actions: ActionSet) -> dict[str, Any]:
    found = {name: getattr(actions, name) for name in LISTED}
    return {
        name: value
        for name, value in found.items()
        if value is not None and value.ndim == 2 and len(value) > 1
    }
