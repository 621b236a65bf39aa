"""What is claimed, at what level, from how many rows, under which assumptions.

A number without these is an opinion. Every guarantee Countermove gives is a
``Certificate``, and every certificate has a Monte-Carlo test of its level.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal

__all__ = ["Assumption", "Certificate", "Direction", "Kind"]

Kind = Literal["certificate", "estimate"]
Direction = Literal["upper", "lower"]


@dataclass(frozen=True)
class Assumption:
    """One condition a claim rests on; ``supported`` is None where data cannot decide."""

    statement: str
    supported: bool | None = None
    evidence: str = ""


@dataclass(frozen=True)
class Certificate:
    """A claim about a quantity.

    Parameters
    ----------
    name
        Which quantity or bound.
    value
        The bound, in the units of the quantity; None when not applicable.
    direction
        Whether the true quantity is at most (``upper``) or at least (``lower``) ``value``.
    kind
        ``certificate``: holds with probability at least ``level`` over the sample;
        ``estimate``: a plug-in figure with no such promise.
    level
        Probability with which a certificate holds; None for an estimate.
    n
        Rows it was computed from.
    assumptions
        What it rests on, and what the data say about that.
    reference
        The theorem.
    reason
        Why it is not applicable; empty when it is.
    words
        The claim as a sentence for people; empty where the figures say enough.
    """

    name: str
    value: float | None
    direction: Direction
    kind: Kind
    level: float | None
    n: int
    assumptions: tuple[Assumption, ...] = ()
    reference: str = ""
    reason: str = ""
    words: str = ""

    @property
    def applicable(self) -> bool:
        """Whether the claim can be made at all."""
        return self.value is not None

    def to_json(self) -> dict[str, Any]:
        """Return a JSON-ready description."""
        return asdict(self) | {"applicable": self.applicable}


__dir__ = __all__.copy
