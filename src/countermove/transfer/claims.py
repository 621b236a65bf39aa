"""From a theorem's two numbers to two certificates, or to the reason why there are none."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from countermove.certificates import Assumption, Certificate, Direction
from countermove.transfer.setting import Setting

Quantity = Literal["error_after", "excess", "larger_error", "label_shares"]

QUANTITIES: dict[Quantity, str] = {
    "error_after": "the share judged wrongly once the rule is deployed",
    "excess": "what the rule loses against the best threshold once each is deployed",
    "larger_error": "the larger of the shares judged wrongly before and after deployment",
    "label_shares": "the distance between the label shares the two rules bring about",
}

INDEPENDENT = Assumption("the rows are independent draws of the people before deployment")
ANSWERS = Assumption("people answer the rule as the stated response says")
BEFOREHAND = Assumption("rules, thresholds and bins were fixed on other rows")
KEPT = Assumption("moving does not change a person's label")
FOLLOW = Assumption("moving keeps P(Y | X), so a label follows its person's features")


@dataclass(frozen=True)
class Theorem:
    """What a theorem bounds, and on which side."""

    name: str
    reference: str
    direction: Direction
    quantity: Quantity


def both_forms(
    theorem: Theorem,
    setting: Setting,
    estimate: Callable[[], float],
    certified: Callable[[], float],
    assumptions: Sequence[Assumption] = (),
) -> list[Certificate]:
    """Return the plug-in form and the form that holds from n rows.

    The second is withheld where rows are no draws, and where its value is not finite.
    """
    found = [_claim(theorem, setting, "estimate", estimate(), assumptions)]
    if setting.weighted:
        return [*found, withheld(theorem, setting, "certificate", WEIGHTED, assumptions)]
    value = certified()
    if not np.isfinite(value):
        return [*found, withheld(theorem, setting, "certificate", TOO_FEW, assumptions)]
    return [*found, _claim(theorem, setting, "certificate", value, assumptions)]


WEIGHTED = "rows with weights are no draws, so no statement about n rows follows"
TOO_FEW = "a cell of the bins has no source rows here; use fewer bins or more rows"


def not_applicable(
    theorem: Theorem, setting: Setting, reason: str, assumptions: Sequence[Assumption] = ()
) -> list[Certificate]:
    """Return both forms without a number."""
    return [
        withheld(theorem, setting, "estimate", reason, assumptions),
        withheld(theorem, setting, "certificate", reason, assumptions),
    ]


def withheld(
    theorem: Theorem,
    setting: Setting,
    kind: Literal["estimate", "certificate"],
    reason: str,
    assumptions: Sequence[Assumption] = (),
) -> Certificate:
    """Return one form without a number."""
    return Certificate(
        name=theorem.name,
        value=None,
        direction=theorem.direction,
        kind=kind,
        level=None,
        n=setting.n,
        assumptions=_all(setting, assumptions),
        reference=theorem.reference,
        reason=f"not applicable: {reason}",
    )


def broken(assumptions: Sequence[Assumption]) -> str:
    """Return why a bound does not apply: the assumptions the data refute, or nothing."""
    return "; ".join(
        f"{a.statement}, but {a.evidence}" for a in assumptions if a.supported is False
    )


def _claim(
    theorem: Theorem,
    setting: Setting,
    kind: Literal["estimate", "certificate"],
    value: float,
    assumptions: Sequence[Assumption],
) -> Certificate:
    side = "at most" if theorem.direction == "upper" else "at least"
    share = 1.0 - setting.failure_probability
    how = "by plug-in" if kind == "estimate" else f"with {100 * share:g} % confidence"
    empty = value >= 1.0 if theorem.direction == "upper" else value <= 0.0
    note = " (which says nothing)" if empty else ""
    return Certificate(
        name=theorem.name,
        value=float(value),
        direction=theorem.direction,
        kind=kind,
        level=share if kind == "certificate" else None,
        n=setting.n,
        assumptions=_all(setting, assumptions),
        reference=theorem.reference,
        words=f"{QUANTITIES[theorem.quantity]} is {side} {value:.3f} {how}{note}",
    )


def _all(setting: Setting, assumptions: Sequence[Assumption]) -> tuple[Assumption, ...]:
    about = KEPT if setting.own.labels == "kept" else (setting.label_model or FOLLOW)
    return (INDEPENDENT, ANSWERS, about, BEFOREHAND, *(a for a in assumptions if a is not about))
