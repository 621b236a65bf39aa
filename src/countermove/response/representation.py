"""People who move in a learned representation (SERM, equation 6).

They go from z = φ(x) to z' at a price for z' - z. That assumes that the
representation stands for something they can change, and that every z' is the
representation of somebody: no features are found that would lead there.
"""

from __future__ import annotations

from typing import Any, Self

import torch
from numpy.typing import ArrayLike
from torch import Tensor

from countermove._types import Mask
from countermove.errors import ParameterError
from countermove.people import Cost
from countermove.response.base import OnFailure, Response, Responses, checked_rows
from countermove.scores import RepresentationScore, Score


class RepresentationResponse(Response):
    r"""Any response to the head of a `RepresentationScore`, in its space.

    .. math:: \Delta(x) = \arg\max_{z'} \sigma(w \cdot z' + b) - c(\phi(x), z')

    Guarantee: that of ``inner`` for a linear score; gradients flow into the head, into
    :math:`\phi` and into ``X``.

    Parameters
    ----------
    inner
        How people respond to the head; its cost and its actions are about the dimensions of the
        representation, which has no names and no natural bounds. The best response by default.
    """

    def __init__(self, inner: Response | None = None) -> None:
        from countermove.response.best import BestResponse

        self.inner = BestResponse() if inner is None else inner
        super().__init__(self.inner.cost, self.inner.actions)
        self.exact_reach, self.costly = self.inner.exact_reach, self.inner.costly

    @property
    def name(self) -> str:  # type: ignore[override]
        """The name of the inner response: the behaviour is the same, elsewhere."""
        return self.inner.name

    def respond(self, score: Score, X: Any, on_failure: OnFailure = "raise") -> Responses[Any]:
        """Return where people move to: ``x_new`` lies in the representation, shape (n, k)."""
        known = represented(score)
        if isinstance(X, Tensor):
            checked_rows(X, score)
            return self.inner.respond(known.head(), known.represent(X), on_failure)
        return self.inner.respond(known.head(), self._places(known, X), on_failure)

    def scores_after(self, score: Score, X: Tensor) -> Tensor:
        """Return the inner response's training signal, differentiable through φ."""
        known = represented(score)
        checked_rows(X, score)
        return self.inner.scores_after(known.head(), known.represent(X))

    def decisions_after(self, score: Score, X: Any) -> Mask:
        """Return who gets the favourable decision once people have moved, shape (n,)."""
        known = represented(score)
        return self.inner.decisions_after(known.head(), self._places(known, X))

    def answers(self, score: Score) -> bool:
        """Return whether the score has a representation, to whose head people respond."""
        return isinstance(score, RepresentationScore) and self.inner.answers(score.head())

    def for_epoch(self, epoch: int) -> Self:
        """Return the response of an epoch: the inner one's."""
        inner = self.inner.for_epoch(epoch)
        return self if inner is self.inner else type(self)(inner)

    def of_rows(self, rows: Any) -> Self:
        """Return the response of the people in ``rows``."""
        inner = self.inner.of_rows(rows)
        return self if inner is self.inner else type(self)(inner)

    def with_cost(self, cost: Cost) -> Self:
        """Return people for whom a move in the representation costs ``cost``."""
        return type(self)(self.inner.with_cost(cost))

    def after_standardising(self, mean: ArrayLike, scale: ArrayLike) -> Self:
        """Return the same people: they move in the representation, whatever the rows' units."""
        return self

    def describe(self) -> dict[str, Any]:
        """Return the inner response's description, and that it lives in a representation."""
        return self.inner.describe() | {"space": "representation"}

    @staticmethod
    def _places(score: RepresentationScore, X: Any) -> Any:
        with torch.no_grad():
            return score.represent(torch.from_numpy(checked_rows(X, score))).numpy()


def represented(score: Score) -> RepresentationScore:
    """Return the score, or say why nobody can move in its representation."""
    if isinstance(score, RepresentationScore):
        return score
    raise ParameterError(
        f"{type(score).__name__} has no representation for people to move in; use "
        "RepresentationScore, or another response (LinearScore: BestResponse; MLPScore: "
        "AscentResponse)"
    )
