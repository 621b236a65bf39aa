"""The populations by name."""

from __future__ import annotations

from countermove.errors import UnknownNameError, nearest
from countermove.people import ActionSet, Cost
from countermove.response.ascent import AscentResponse
from countermove.response.base import NoResponse, Response
from countermove.response.best import BestResponse
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
