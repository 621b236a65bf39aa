"""A user's own gate: a function named by a dotted path."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from countermove.data.configuration import function_at
from countermove.errors import ParameterError
from countermove.production.gates.base import Case, Gate, GateResult


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
