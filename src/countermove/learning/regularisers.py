"""The fifth axis: what is added to the risk.

A regulariser carries its own strength and sees the score, the batch and the
responses, so that social measures can be penalties like any other.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, fields, is_dataclass
from typing import Any, ClassVar, Protocol, runtime_checkable

from torch import Tensor

from countermove.errors import ParameterError
from countermove.response.base import Response
from countermove.scores import Score


@runtime_checkable
class Regulariser(Protocol):
    """Anything with a strength and a differentiable penalty."""

    @property
    def strength(self) -> float:
        """Factor of the penalty; 0 switches it off."""

    def penalty(self, score: Score, X: Tensor, y: Tensor, response: Response) -> Tensor:
        """Return the penalty of a batch, a scalar, before the strength."""


@dataclass(frozen=True)
class L2:
    r"""Half the squared length of the slope, :math:`\tfrac12\|\nabla_x s\|^2`; the bias is free."""

    kind: ClassVar[str] = "l2"
    strength: float = 1e-3

    def __post_init__(self) -> None:
        check_strength(self.strength)

    def penalty(self, score: Score, X: Tensor, y: Tensor, response: Response) -> Tensor:
        """Return the penalty; people and their response do not enter."""
        slope = score.slope()
        if slope is None:
            raise ParameterError("L2 needs a score with a slope; penalise its weights instead")
        return 0.5 * slope.square().sum()


def check_strength(strength: float) -> None:
    """Refuse a strength that is negative or not a finite number."""
    if not (math.isfinite(strength) and strength >= 0.0):
        raise ParameterError(
            f"the strength of a regulariser is a number ≥ 0, got {strength!r}; "
            "to reward instead of punish, negate the penalty"
        )


def looks_at_people(regulariser: Regulariser | None) -> bool:
    """Tell whether a regulariser measures people's answer rather than the score alone.

    A social measure says so itself (``about_people``). Where nobody moves it means nothing.
    """
    return bool(getattr(regulariser, "about_people", False))


def described(regulariser: Regulariser | None) -> dict[str, Any]:
    """Return kind and arguments, JSON-ready; of a stranger's regulariser its class and strength."""
    if regulariser is None:
        return {"kind": "none"}
    named = {"kind": getattr(regulariser, "kind", type(regulariser).__name__)}
    held: Any = regulariser
    names = [field.name for field in fields(held)] if is_dataclass(held) else ["strength"]
    return named | {name: getattr(held, name) for name in names}
