"""How people respond to a published score."""

from __future__ import annotations

from typing import TYPE_CHECKING

from countermove._lazy import lazy

if TYPE_CHECKING:
    from countermove.response.ascent import AscentResponse, OptimalityGap
    from countermove.response.base import NoResponse, Response, Responses
    from countermove.response.best import BestResponse
    from countermove.response.conic import ConicResponse
    from countermove.response.named import named_response, response_from_description
    from countermove.response.population import Population
    from countermove.response.representation import RepresentationResponse
    from countermove.response.response_set import RobustResponse
    from countermove.response.score_seeking import GainResponse
    from countermove.response.smooth import ScalarResponse

__all__ = [
    "AscentResponse",
    "BestResponse",
    "ConicResponse",
    "GainResponse",
    "NoResponse",
    "OptimalityGap",
    "Population",
    "RepresentationResponse",
    "Response",
    "Responses",
    "RobustResponse",
    "ScalarResponse",
    "named_response",
    "response_from_description",
]

_HOMES = {
    "AscentResponse": "ascent",
    "BestResponse": "best",
    "ConicResponse": "conic",
    "GainResponse": "score_seeking",
    "NoResponse": "base",
    "OptimalityGap": "ascent",
    "Population": "population",
    "RepresentationResponse": "representation",
    "Response": "base",
    "Responses": "base",
    "RobustResponse": "response_set",
    "ScalarResponse": "smooth",
    "named_response": "named",
    "response_from_description": "named",
}

__getattr__ = lazy(__name__, _HOMES)
__dir__ = __all__.copy
