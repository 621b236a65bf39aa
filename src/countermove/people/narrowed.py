"""The same actions, none of them further than a limit."""

from __future__ import annotations

import numpy as np

from countermove.errors import ParameterError
from countermove.people.actions import ActionSet


def narrowed(actions: ActionSet, largest_action: float | None, n_features: int) -> ActionSet:
    """Return the set with every feature's move held to ``largest_action`` either way.

    Parameters
    ----------
    actions
        What is allowed so far.
    largest_action
        Positive, in the units of the set; None leaves the set as it is.
    n_features
        Length of a person.
    """
    if largest_action is None:
        return actions
    if not largest_action > 0.0:
        raise ParameterError(f"largest_action is positive, got {largest_action!r}")
    limit = np.full(n_features, float(largest_action))
    return actions._copy(
        lower=-limit if actions.lower is None else np.maximum(actions.lower, -limit),
        upper=limit if actions.upper is None else np.minimum(actions.upper, limit),
    )
