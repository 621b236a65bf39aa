"""What fully rational people with the same means would do, where that is known."""

from __future__ import annotations

from typing import NamedTuple

import torch

from countermove.response.base import Floats, Response
from countermove.response.best import BestResponse, rational
from countermove.response.representation import RepresentationResponse, represented
from countermove.scores import Score


class RationalPeople(NamedTuple):
    """Best responders, the score they see, and where they stand, shape (n, k)."""

    response: BestResponse
    score: Score
    rows: Floats


def rational_people(response: Response, score: Score, X: Floats) -> RationalPeople | None:
    """Return best responders with a response's cost and actions.

    People who move in a representation see its head from there. None where no closed form
    knows their answer: the score is not affine in what moves.
    """
    best = rational(response)
    if isinstance(response, RepresentationResponse):
        known = represented(score)
        with torch.no_grad():
            places = known.represent(torch.from_numpy(X)).numpy()
        return RationalPeople(best, known.head(), places)
    return None if score.slope() is None else RationalPeople(best, score, X)
