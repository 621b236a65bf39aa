"""How a person answers a published score."""

from __future__ import annotations

from typing import TYPE_CHECKING

from countermove._lazy import lazy

if TYPE_CHECKING:
    from countermove.response.ascent import AscentResponse
    from countermove.response.base import NoResponse, Response, Responses
    from countermove.response.best import BestResponse
    from countermove.response.conic_response import ConicResponse
    from countermove.response.gain import GainResponse
    from countermove.response.gap import OptimalityGap
    from countermove.response.named import named_response
    from countermove.response.representation import RepresentationResponse
    from countermove.response.robust import RobustResponse
    from countermove.response.scalar import ScalarResponse

__all__ = [
    "AscentResponse",
    "BestResponse",
    "ConicResponse",
    "GainResponse",
    "NoResponse",
    "OptimalityGap",
    "RepresentationResponse",
    "Response",
    "Responses",
    "RobustResponse",
    "ScalarResponse",
    "named_response",
]

_HOMES = {
    "AscentResponse": "ascent",
    "OptimalityGap": "gap",
    "RepresentationResponse": "representation",
    "BestResponse": "best",
    "ConicResponse": "conic_response",
    "GainResponse": "gain",
    "NoResponse": "base",
    "Response": "base",
    "Responses": "base",
    "RobustResponse": "robust",
    "ScalarResponse": "scalar",
    "named_response": "named",
}

__getattr__ = lazy(__name__, _HOMES)
