"""The populations by name, and from what they said about themselves."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from countermove.errors import ParameterError, UnknownNameError, nearest
from countermove.people import ActionSet, Cost, cost_from_description
from countermove.response.ascent import AscentResponse
from countermove.response.base import NoResponse, Response
from countermove.response.best import BestResponse
from countermove.response.population import Population
from countermove.response.response_set import RobustResponse
from countermove.response.smooth import ScalarResponse

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
    if "space" in said or said.pop("reference_rows", None) is not None:
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
