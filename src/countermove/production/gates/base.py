"""A gate looks at the case for a challenger and lets it pass, or says why not."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import pandas as pd

from countermove._types import Mask


@dataclass(frozen=True)
class Judged:
    """A rule put to the people of the hold-out, under every kind of answer.

    Attributes
    ----------
    approved
        By response, who is approved once people have answered so; ``none``: where they stand.
    right
        By response, whose decision equals their label.
    """

    approved: Mapping[str, Mask]
    right: Mapping[str, Mask]

    def accuracies(self) -> dict[str, float]:
        """Return the share judged rightly, by response."""
        return {name: float(right.mean()) for name, right in self.right.items()}

    def worst(self, responses: Sequence[str]) -> str:
        """Return the response among some under which the rule does worst."""
        return min(responses, key=lambda name: float(self.right[name].mean()))


@dataclass(frozen=True)
class Case:
    """All that a gate may look at.

    Attributes
    ----------
    challenger, champion
        Both rules on the same hold-out; the champion is None at a cold start.
    stated
        The responses the rules were trained for, by name.
    groups
        Sensitive columns of the hold-out.
    certificate
        The challenger's promise of recourse (Certificate JSON).
    champion_certificate
        The champion's, or None.
    without_recourse
        People of the hold-out whom the promise speaks of and who have no way, and how many
        people it speaks of.
    bounds
        On the challenger's error after deployment: ``claim``, ``direction``, ``forecast`` and
        ``level`` each, see `countermove.production.retraining.forecast.foretell`.
    looks
        How many challengers were judged on this hold-out before.
    """

    challenger: Judged
    champion: Judged | None
    stated: Sequence[str]
    groups: pd.DataFrame
    certificate: Mapping[str, Any]
    champion_certificate: Mapping[str, Any] | None
    without_recourse: tuple[int, int]
    bounds: Sequence[Mapping[str, Any]]
    looks: int = 0


@dataclass(frozen=True)
class GateResult:
    """What a gate found.

    Attributes
    ----------
    name
        Of the gate.
    passed
        None where the gate does not apply: at a cold start there is nothing to compare with.
    value, limit
        What was measured, and what it was held against.
    words
        One sentence for people.
    """

    name: str
    passed: bool | None
    value: float | None
    limit: float | None
    words: str

    def to_json(self) -> dict[str, Any]:
        """Return a JSON-ready description."""
        return asdict(self)


class Gate(ABC):
    """One condition of a promotion; its fields are its parameters."""

    name: str

    @abstractmethod
    def check(self, case: Case) -> GateResult:
        """Look at the case."""

    def not_applicable(self, reason: str) -> GateResult:
        """Return that there is nothing to hold against the gate."""
        return GateResult(self.name, None, None, None, reason)


def check_gates(gates: Iterable[Gate], case: Case) -> list[GateResult]:
    """Put a case to every gate: all are asked, so that a refusal lists all its reasons."""
    return [gate.check(case) for gate in gates]
