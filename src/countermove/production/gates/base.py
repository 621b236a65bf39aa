"""A gate looks at the case for a challenger and lets it pass, or says why not."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import pandas as pd

from countermove._types import Mask
from countermove.data.configuration import function_at
from countermove.errors import ParameterError


@dataclass(frozen=True)
class HoldoutDecisions:
    """What a rule decides about the people of the hold-out, under every response.

    Attributes
    ----------
    approved
        By response, who is approved once people have responded; ``none``: where they stand.
    right
        By response, whose decision equals their label.
    """

    approved: Mapping[str, Mask]
    right: Mapping[str, Mask]

    def accuracies(self) -> dict[str, float]:
        """Return the share of right decisions, by response."""
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
        How many people of the hold-out have no recourse, and how many the promise is about.
    bounds
        On the challenger's error after deployment: ``claim``, ``direction``, ``forecast`` and
        ``level`` each, see `countermove.production.retraining.forecast.error_bounds`.
    looks
        How many challengers were evaluated on this hold-out before.
    open_advice
        How much advice is ``open``, could be ``judged``, and would be ``broken`` by the
        challenger; None where none is kept.
    """

    challenger: HoldoutDecisions
    champion: HoldoutDecisions | None
    stated: Sequence[str]
    groups: pd.DataFrame
    certificate: Mapping[str, Any]
    champion_certificate: Mapping[str, Any] | None
    without_recourse: tuple[int, int]
    bounds: Sequence[Mapping[str, Any]]
    looks: int = 0
    open_advice: Mapping[str, int] | None = None


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
        What was measured, and what it was compared with.
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
        """Return that the gate does not apply, and why."""
        return GateResult(self.name, None, None, None, reason)


@dataclass(frozen=True)
class CustomGate(Gate):
    """Calls ``function(case, **arguments)``, which returns a `GateResult`.

    Parameters
    ----------
    function
        Dotted path, ``package.module:function`` or ``package.module.function``.
    arguments
        Handed to it by name.
    """

    function: str
    arguments: Mapping[str, Any] = field(default_factory=dict)

    @property
    def name(self) -> str:  # type: ignore[override]
        """The function's own name."""
        return self.function.replace(":", ".").rpartition(".")[2]

    def check(self, case: Case) -> GateResult:
        """Call the function."""
        result = function_at(self.function)(case, **self.arguments)
        if not isinstance(result, GateResult):
            raise ParameterError(
                f"the gate {self.function!r} returned {type(result).__name__}; expected a "
                "countermove.production.gates.GateResult"
            )
        return result


def check_gates(gates: Iterable[Gate], case: Case) -> list[GateResult]:
    """Check every gate, also after a refusal, so that a refusal lists all its reasons."""
    return [gate.check(case) for gate in gates]
