"""What a bound is computed from, and how its numbers become certificates or a reason for none."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from countermove._types import Floats
from countermove.certificates import Assumption, Certificate, Direction
from countermove.certificates.betting import together
from countermove.certificates.intervals import per_cent
from countermove.errors import DataError, ParameterError
from countermove.transfer.optimal import joint_sample, threshold_errors
from countermove.transfer.sample import Pair, Sample
from countermove.transfer.weights import score_edges


@dataclass(frozen=True, eq=False)
class Chosen:
    """What was fixed on other people than those who judge; no bound may choose it again."""

    best: float  # threshold of h_T, the best rule after deployment
    source: float  # threshold with the least error on the source
    with_source: float  # least joint error on S and D(h)
    with_best: float  # least joint error on D(h) and D(h_T)
    edges: Floats | None  # score bins with 0 on an edge; None where everybody is on one side
    best_edges: Floats | None  # the same for the threshold of h_T


@dataclass(frozen=True)
class StrategicSetup:
    """The paper's strategic people (Setups 1 to 4): features uniform on [0, 1], a budget."""

    budget: float
    tau: float  # threshold of the rule; the score is the feature minus it


@dataclass(frozen=True, eq=False)
class Setting:
    """A rule's people before and after, and those of the best rule, scored alike."""

    own: Pair  # source and the people the rule (score at least 0) induces
    best: Pair  # source and the people h_T (score at least chosen.best) induces
    chosen: Chosen
    failure_probability: float = 0.05  # of each certificate on its own
    # what is known of the model of P(Y | X) that labels follow
    label_model: Assumption | None = None
    # share beyond the source's support up to which weights are used
    tolerated_outside: float = 0.01
    setup: StrategicSetup | None = None  # given for the paper's strategic people only
    # whether it is known that deployment keeps P(X | Y); a test that does not refute it is no proof
    keeps_classes: bool = False

    def __post_init__(self) -> None:
        if not 0.0 < self.failure_probability < 1.0:
            raise ParameterError(
                "failure_probability must lie strictly between 0 and 1, "
                f"got {self.failure_probability!r}"
            )
        if self.own.labels != self.best.labels or self.own.paired != self.best.paired:
            raise DataError("both rules need people made in the same way (labels, paired)")

    @property
    def n(self) -> int:
        """Rows of the smallest sample."""
        return min(self.own.n, self.best.n)

    @property
    def weighted(self) -> bool:
        """Whether any rows are not draws."""
        return self.own.weighted or self.best.weighted

    @property
    def clusters(self) -> NDArray[Any] | None:
        """Whose rows belong together; None where rows are draws."""
        return self.own.source.clusters

    @property
    def between(self) -> Pair:
        """The people both rules induce: D(h) as source, D(h_T) as induced."""
        return Pair(self.own.induced, self.best.induced, self.own.labels, self.own.paired)

    def part(self, statements: int) -> float:
        """Return the failure probability of each of several statements (union bound)."""
        return self.failure_probability / statements


def choose(own: Pair, best: Pair, threshold: float, bins: int = 6) -> Chosen:
    """Fix on some people what the bounds of others need; the threshold is that of h_T on them."""
    return Chosen(
        best=threshold,
        source=threshold_errors(own.source).best()[0],
        with_source=threshold_errors(joint_sample(own.source, own.induced)).best()[0],
        with_best=threshold_errors(joint_sample(own.induced, best.induced)).best()[0],
        edges=_edges(own.source, bins, 0.0),
        best_edges=_edges(best.source, bins, threshold),
    )


def _edges(sample: Sample, bins: int, threshold: float) -> Floats | None:
    above = sample.accepted(threshold)
    if np.all(above) or not np.any(above):
        return None
    return score_edges(sample, bins, threshold)


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
FOLLOW = Assumption(
    "moving keeps P(Y | X), so a label follows its person's features",
    evidence="labels are known only where people stood before: these rows cannot test it",
)


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
    unproven: str = "",
) -> list[Certificate]:
    """Return the plug-in form and the form that holds from n rows, withheld where there is none."""
    found = [_claim(theorem, setting, "estimate", estimate(), assumptions)]
    if setting.clusters is not None and not theorem.name.startswith("direct_"):
        unproven = unproven or CLUSTERED
    if setting.weighted or unproven:
        reason = WEIGHTED if setting.weighted else unproven
        return [*found, withheld(theorem, setting, "certificate", reason, assumptions)]
    value = certified()
    if not np.isfinite(value):
        return [*found, withheld(theorem, setting, "certificate", TOO_FEW, assumptions)]
    return [*found, _claim(theorem, setting, "certificate", value, assumptions)]


POWER = 0.8
"""With this probability a test finds what is called detectable."""
NORMAL_AT_POWER = 0.8416
"""Standard normal quantile at that power."""


def not_refuted(measured: str, detectable: float) -> str:
    """Return how a test that does not reject is shown: never as support."""
    power = f"with {per_cent(POWER, 0)} power"
    if detectable >= 1.0:
        return f"not refuted ({measured}); so few rows show no shift {power}"
    seen = f"smallest shift detectable {power}: {detectable:.3f}"
    return f"not refuted ({measured}); {seen}"


WEIGHTED = "rows with weights are not draws, so no statement about n rows follows"
CLUSTERED = "rows of one cluster belong together, and this theorem counts rows"
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
        words=f"no number for {QUANTITIES[theorem.quantity]}: {reason}",
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
    model = [] if setting.label_model is None else [setting.label_model]
    about = [KEPT] if setting.own.labels == "kept" else [FOLLOW, *model]
    drawn = INDEPENDENT if setting.clusters is None else together(setting.clusters)
    return (drawn, ANSWERS, *about, BEFOREHAND, *(a for a in assumptions if a not in model))
