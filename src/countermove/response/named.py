"""The populations by name, and from what they said about themselves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from countermove._types import Floats
from countermove.errors import ParameterError, UnknownNameError, nearest, shown
from countermove.people import ActionSet, Cost, cost_from_description
from countermove.response.ascent import AscentResponse
from countermove.response.base import NoResponse, Response
from countermove.response.best import BestResponse
from countermove.response.population import Population
from countermove.response.response_set import RobustResponse
from countermove.response.smooth import ScalarResponse

if TYPE_CHECKING:
    from countermove.data.schema import ModelFeature


NAMES = ("best", "smooth", "published", "none", "ascent")


def named_response(
    name: str,
    cost: Cost | None = None,
    actions: ActionSet | None = None,
    temperature: float = 0.5,
) -> Response:
    """Return a population by name.

    Parameters
    ----------
    name
        ``best``: fully rational, hard decision. ``smooth``: the smoothed step, in
        units of distance, its global maximiser. ``published``: the SERM paper's
        protocol, for comparison only. ``none``: nobody moves. ``ascent``: as ``smooth``,
        for scores that are not affine in what moves; a local maximum.
    cost, actions
        What a move costs and which are allowed.
    temperature
        Of the smoothed step, for ``smooth``, ``published`` and ``ascent``.
    """
    if name == "none":
        return NoResponse(cost, actions)
    if name == "best":
        return BestResponse(cost, actions)
    if name == "smooth":
        return ScalarResponse(cost, actions, temperature)
    if name == "published":
        return ScalarResponse(cost, actions, temperature, "stay", False, "last_proxy")
    if name == "ascent":
        return AscentResponse(cost, actions, temperature)
    raise UnknownNameError(f"no response is called {name!r}: {nearest(name, NAMES)}")


def response_from_description(description: Mapping[str, Any]) -> Response:
    """Rebuild a response from what ``describe()`` returned.

    Costs that hold code (conic, own) and responses that hold people (ascent with a reference,
    surfaces) are rebuilt by hand.
    """
    said = dict(description)
    kind = str(said.pop("kind", ""))
    if "members" in said:
        members = [response_from_description(member) for member in said["members"]]
        return RobustResponse(members, said["weights"])
    cost, actions = said.pop("cost", {}), said.pop("actions", {})
    if "kinds" in said:
        kinds = [response_from_description(one) for one in said.pop("kinds")]
        seed = said.pop("seed", 0)
        return Population(kinds, **said).with_seed(seed)
    if "space" in said or said.pop("reference", None) is not None:
        raise ParameterError(
            f"the response {kind!r} holds people or a representation: rebuild it by hand"
        )
    if kind not in _READ:
        raise UnknownNameError(f"no response is called {kind!r}: {nearest(kind, _READ)}")
    log_price = said.pop("log_price", None)
    built: Response = _READ[kind](cost_from_description(cost), ActionSet(**actions), **said)
    return built if log_price is None else built.with_log_price(log_price)


_READ: dict[str, Any] = {
    "none": NoResponse,
    "best": BestResponse,
    "smooth": ScalarResponse,
    "published": ScalarResponse,
    "ascent": AscentResponse,
}


def price_by_column(
    people: Response,
    column: str,
    factors: Mapping[str, float] | None = None,
    log_price: float | None = None,
) -> Response:
    r"""Return the same people with prices that depend on a column nobody can change.

    Parameters
    ----------
    people
        A response or population whose actions were built from a schema.
    column
        A column of the schema, or a group of binary ones.
    factors
        The factor on the cost by level of a one-hot column, of a group, or of a binary column
        (``"0"`` and ``"1"``: its first and second category); levels left out have the factor 1.
    log_price
        The logarithm of the factor per standard deviation of a numeric column: at its mean
        people pay what ``people`` says.
    """
    actions = people.actions
    if actions.columns is None or actions.unit is None or actions.offset is None:
        raise ParameterError(
            f"prices by {column!r} need actions built from a schema (serm.actions.kind: schema)"
        )
    if (factors is None) == (log_price is None):
        raise ParameterError("prices by a column need either factors by level or log_price")
    names = [one.name for one in actions.columns]
    gamma, start = np.zeros(len(names)), 0.0
    if factors is None:
        gamma[_position(names, column)] = float(log_price or 0.0)
    else:
        logs, start = _by_level(actions.columns, column, factors)
        # In standardised units log f · x is log f · (scale · z + mean).
        gamma, start = logs * actions.unit, start + float(logs @ actions.offset)
    moving = np.flatnonzero((gamma != 0.0) & actions.for_response().movable_among(len(names)))
    if moving.size:
        raise ParameterError(
            f"prices depend on {shown(names[j] for j in moving)}, which the schema lets people "
            "change: a price may only depend on what stays (change: immutable)"
        )
    return people.with_price(float(np.exp(start))).with_log_price(gamma)


def _by_level(
    columns: Sequence[ModelFeature], column: str, factors: Mapping[str, float]
) -> tuple[Floats, float]:
    """Return the logarithms of the factors per coded column, and that of everybody's."""
    levels = {
        one.name.removeprefix(f"{column}="): j
        for j, one in enumerate(columns)
        if one.group == column
    }
    base = 1.0
    if not levels:
        place = _position([one.name for one in columns], column)
        if columns[place].kind != "binary":
            raise ParameterError(
                f"factors go by the levels of a one-hot or binary column; {column!r} is "
                f"{columns[place].kind}: give log_price, per standard deviation"
            )
        levels, base = {"1": place}, float(factors.get("0", 1.0))
    known = [*levels] if len(levels) > 1 else ["0", "1"]
    unknown = sorted(set(factors) - {*known})
    if unknown:
        raise UnknownNameError(
            f"{column!r} has no level {unknown[0]!r}: {nearest(unknown[0], known)}"
        )
    if not all(np.isfinite(value) and value > 0.0 for value in factors.values()):
        raise ParameterError(f"factors on a cost are positive numbers, got {dict(factors)}")
    logs = np.zeros(len(columns))
    for level, place in levels.items():
        logs[place] = np.log(factors.get(level, 1.0) / base)
    return logs, float(np.log(base))


def _position(names: Sequence[str], column: str) -> int:
    if column not in names:
        raise UnknownNameError(f"no model column is called {column!r}: {nearest(column, names)}")
    return names.index(column)
