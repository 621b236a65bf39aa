"""What fully rational people with the same means would do, where that is known."""

from __future__ import annotations

from typing import NamedTuple
from weakref import WeakKeyDictionary

import torch

from countermove._types import Floats
from countermove.people import QuadraticCost
from countermove.response.base import Response
from countermove.response.best import BestResponse
from countermove.response.manifold import PointsResponse, TangentResponse
from countermove.response.representation import RepresentationResponse, represented
from countermove.response.response_set import kinds_of
from countermove.scores import Score

_RATIONAL: WeakKeyDictionary[Response, dict[bool, BestResponse]] = WeakKeyDictionary()

Rational = BestResponse | TangentResponse | PointsResponse
"""Fully rational people: free, confined to their tangents, or choosing among places."""


def rational(response: Response, unscaled: bool = False) -> Rational:
    """Return fully rational people with a response's cost (or, ``unscaled``, squared length)."""
    # People on a surface stay on it; of several members or kinds the first one's people are meant.
    # Free people are made once per response: their plan is kept, and conic costs are compiled
    # once.
    response = kinds_of(response)[0]
    if isinstance(response, TangentResponse | PointsResponse):
        return response.rational(unscaled)
    if isinstance(response, BestResponse) and not unscaled:
        return response
    made = _RATIONAL.setdefault(response, {})
    known = made.get(unscaled)
    cost = QuadraticCost() if unscaled else response.cost
    same_cost = known is not None and (unscaled or known.cost is cost)
    same_price = known is not None and (unscaled or known.log_price is response.log_price)
    if not (known and same_cost and same_price and known.actions is response.actions):
        known = BestResponse(cost, response.actions)
        if not unscaled:
            known.log_price = response.log_price
        made[unscaled] = known
    return known


class RationalPeople(NamedTuple):
    """Best responders, the score they see, and where they stand, shape (n, k)."""

    response: Rational
    score: Score
    rows: Floats


def rational_people(response: Response, score: Score, X: Floats) -> RationalPeople | None:
    """Return best responders with a response's cost and actions; None without a closed form."""
    # People who move in a representation see its head from there; those on a surface stay on it.
    member = kinds_of(response)[0]
    if isinstance(member, RepresentationResponse):
        known = represented(score)
        with torch.no_grad():
            places = known.represent(torch.from_numpy(X)).numpy()
        return RationalPeople(rational(member.inner), known.head(), places)
    if score.slope() is None and not isinstance(member, PointsResponse):
        return None
    return RationalPeople(rational(member), score, X)
