"""A cost of the user's own, made by a function of theirs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from countermove.data.configuration import function_at
from countermove.errors import ParameterError
from countermove.people.conic_cost import ConicCost
from countermove.people.costs import Cost


def own_cost(path: str, arguments: Mapping[str, Any]) -> Cost:
    """Return the cost that the function at a dotted path makes of these arguments."""
    try:
        made = function_at(path)(**arguments)
    except TypeError as error:
        raise ParameterError(f"{path!r} was called with {dict(arguments)!r}: {error}") from error
    if not isinstance(made, Cost):
        raise ParameterError(
            f"{path!r} returned {type(made).__name__}; expected a cost of countermove.people"
        )
    if isinstance(made, ConicCost):
        raise ParameterError(
            f"{path!r} returned a ConicCost, which only ConicResponse reads; "
            "a run needs a cost with a closed form"
        )
    return made
