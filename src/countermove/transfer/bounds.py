"""Every bound of the transferability paper, each as an estimate and as a certificate.

A bound reads people before and after a rule is deployed; where an assumption of it is refuted it
gives the reason instead of a number. Section 3 holds for any shift, Section 4 where P(Y | X) is
kept, Section 5 where P(X | Y) is.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy.stats import norm

from countermove._types import Floats
from countermove.certificates import Assumption, Certificate, Direction
from countermove.certificates.betting import together
from countermove.certificates.intervals import (
    cells_radius,
    distribution_function_radius,
    per_cent,
)
from countermove.errors import DataError, ParameterError
from countermove.transfer import formulas
from countermove.transfer.estimates import (
    Range,
    binned_total_variation,
    change_range,
    contrast_range,
    kolmogorov_distance,
    linear_divergence_estimate,
    rate_range,
    share_range,
    threshold_divergence,
    threshold_divergence_upper,
)
from countermove.transfer.induced import support
from countermove.transfer.optimal import difference, joint_sample, threshold_errors
from countermove.transfer.sample import Pair, Sample
from countermove.transfer.weights import cell_weights, score_edges, variance_upper

__all__ = ["BOUNDS", "all_bounds"]


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
    estimate: float,
    certified: Callable[[], float],
    assumptions: Sequence[Assumption] = (),
    unproven: str = "",
) -> list[Certificate]:
    """Return the plug-in form and the form that holds from n rows, withheld where there is none."""
    found = [_claim(theorem, setting, "estimate", estimate, assumptions)]
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


# ---- Section 3: any shift a rule may bring about ----

THRESHOLDS = Assumption("the class of rules is the thresholds on this score")
ONE_SIDE = "everybody is on one side of the threshold, so no bins refine the rule"


def theorem_3_1(setting: Setting) -> list[Certificate]:
    """Bound the error after deployment; the class of rules is the thresholds on the score."""
    theorem = Theorem("theorem_3_1", "Theorem 3.1", "upper", "error_after")
    source, induced = setting.own.source, setting.own.induced
    error = share_range(source, source.wrong(), setting.part(4))
    joint = _joint(source, induced, setting.chosen.with_source, 0.5 * setting.part(2))

    def certified() -> float:
        upper = threshold_divergence_upper(source, induced, setting.part(2))
        return float(formulas.theorem_3_1(error.high, joint.high, upper))

    divergence = threshold_divergence(source, induced)
    estimate = formulas.theorem_3_1(error.value, joint.value, divergence)
    return both_forms(theorem, setting, float(estimate), certified, [THRESHOLDS])


def theorem_3_1_linear(setting: Setting) -> list[Certificate]:
    """Bound as Theorem 3.1 for linear rules: an estimate only, and a low one."""
    theorem = Theorem("theorem_3_1_linear", "Theorem 3.1, proxy distance", "upper", "error_after")
    source, induced = setting.own.source, setting.own.induced
    if source.features is None or induced.features is None or setting.own.weighted:
        return not_applicable(theorem, setting, "the samples carry no features of single people")
    low = Assumption(
        "the class of rules is linear, and a classifier that tells the populations apart finds "
        "their divergence",
        evidence="the proxy is a lower estimate of the divergence",
    )
    divergence = linear_divergence_estimate(source.features, induced.features, setting.own.paired)
    joint = _joint(source, induced, setting.chosen.with_source, setting.part(2))
    value = float(formulas.theorem_3_1(source.error(), joint.value, divergence))
    reason = "the divergence of linear rules is only estimated, from below"
    return [
        _claim(theorem, setting, "estimate", value, [low]),
        withheld(theorem, setting, "certificate", reason, [low]),
    ]


def theorem_3_2(setting: Setting) -> list[Certificate]:
    """Bound what the rule loses against the best one, and solved, its error after deployment."""
    between, part = setting.between, setting.part(3)
    own, best = between.source, between.induced
    judged = (own, 0.0), (best, 0.0), (best, setting.chosen.best)
    errors = [share_range(sample, sample.wrong(at), 0.5 * part) for sample, at in judged]
    joint = _joint(own, best, setting.chosen.with_best, part)
    divergence = threshold_divergence(own, best)
    upper = threshold_divergence_upper(own, best, part)
    printed = Theorem("theorem_3_2", "Theorem 3.2", "upper", "excess")
    solved = Theorem("theorem_3_2_solved", "Theorem 3.2, solved", "upper", "error_after")
    found = []
    for theorem, formula, first in (
        (printed, formulas.theorem_3_2, errors[0]),
        (solved, formulas.theorem_3_2_solved, errors[2]),
    ):
        value = float(formula(first.value, errors[1].value, joint.value, divergence))
        high = float(formula(first.high, errors[1].high, joint.high, upper))
        found += both_forms(theorem, setting, value, lambda high=high: high, [THRESHOLDS])  # type: ignore[misc]
    return found


def theorem_3_3(setting: Setting) -> list[Certificate]:
    """Bound from below the larger of the errors before and after deployment."""
    theorem = Theorem("theorem_3_3", "Theorem 3.3", "lower", "larger_error")
    labels, accepted = _changes(setting, setting.part(2))
    return both_forms(
        theorem,
        setting,
        float(formulas.theorem_3_3(*_four_shares(setting))),
        lambda: max(0.0, 0.5 * (labels.magnitude().low - accepted.magnitude().high)),
    )


def corollary_3_4(setting: Setting) -> list[Certificate]:
    """Bound as Theorem 3.3, from the total variation over bins that refine the rule."""
    theorem = Theorem("corollary_3_4", "Corollary 3.4", "lower", "larger_error")
    edges, part = setting.chosen.edges, setting.part(3)
    if edges is None:
        return not_applicable(theorem, setting, ONE_SIDE)
    source, induced = setting.own.source, setting.own.induced
    variation = binned_total_variation(source, induced, edges)
    labels, _ = _changes(setting, part)
    radii = sum(cells_radius(s.n, len(edges) + 1, part) for s in (source, induced))
    return both_forms(
        theorem,
        setting,
        float(formulas.corollary_3_4(*_four_shares(setting)[:2], variation)),
        lambda: max(0.0, 0.5 * (labels.magnitude().low - min(1.0, variation + radii))),
    )


def _changes(setting: Setting, failure_probability: float) -> tuple[Range, Range]:
    """Return by how much the shares of label +1 and of the accepted rise; each may fail."""
    pair = setting.own
    before, after = pair.source, pair.induced
    return (
        change_range(pair, before.favourable, after.favourable, failure_probability),
        change_range(pair, before.accepted(), after.accepted(), failure_probability),
    )


def _four_shares(setting: Setting) -> tuple[float, float, float, float]:
    """Return the shares of label +1 before and after, and of the accepted before and after."""
    before, after = setting.own.source, setting.own.induced
    labels = before.share(before.favourable), after.share(after.favourable)
    return *labels, before.share(before.accepted()), after.share(after.accepted())


def _joint(one: Sample, other: Sample, threshold: float, failure_probability: float) -> Range:
    """Return the joint error of a threshold fixed beforehand: at least that of the best one."""
    half = 0.5 * failure_probability
    first, second = (share_range(s, s.wrong(threshold), half) for s in (one, other))
    return first.plus(second)


# ---- Section 4: P(Y | X) is kept, and people stay where source people stood ----

GAMING = "labels are kept while features move, so P(Y | X) changes"


def theorem_4_2(setting: Setting) -> list[Certificate]:
    """Bound what the rule loses against the best one, printed and without optimality."""
    printed = Theorem("theorem_4_2", "Theorem 4.2, as printed", "upper", "excess")
    tighter = Theorem("theorem_4_2_tighter", "Theorem 4.2, assumption-free", "upper", "excess")
    inside, chosen = within_support(setting), setting.chosen
    reason, variances = _shift_reason(setting, [inside]), list[float]()
    pairs = (setting.own, chosen.edges), (setting.best, chosen.best_edges)
    if not reason and (chosen.edges is None or chosen.best_edges is None):
        reason = ONE_SIDE
    if not reason:
        found = [cell_weights(pair, edges).variance for pair, edges in pairs if edges is not None]
        variances = [variance for variance in found if variance is not None]
        if len(variances) < len(found):
            reason = "induced people are in cells of (score bin, label) without source people"
    if reason:
        withheld_both = not_applicable(printed, setting, reason, [inside])
        return [*withheld_both, *not_applicable(tighter, setting, reason, [inside])]

    def upper(part: float) -> list[float]:
        return [variance_upper(pair, edges, part) for pair, edges in pairs if edges is not None]

    source, at, thirds, fifths = setting.own.source, chosen.best, setting.part(3), setting.part(5)
    error = share_range(source, source.wrong(at), thirds)
    errors = [share_range(source, source.wrong(t), fifths) for t in (0.0, at)]
    lost = contrast_range(source, source.wrong(), source.wrong(at), fifths)

    def certified() -> float:
        spreads = zip(upper(fifths), (each.spread().high for each in errors), strict=True)
        return lost.high + sum(
            math.sqrt(v * e) if math.isfinite(v) else math.inf for v, e in spreads
        )

    optimal = source_optimal(setting)
    refuted, met = broken([optimal]), [inside, optimal]
    first = (
        not_applicable(printed, setting, refuted, met)
        if refuted
        else both_forms(
            printed,
            setting,
            float(formulas.theorem_4_2(error.value, *variances)),
            lambda: float(formulas.theorem_4_2(error.high, *upper(thirds))),
            met,
        )
    )
    value = formulas.theorem_4_2_tighter(errors[0].value, errors[1].value, *variances)
    return [*first, *both_forms(tighter, setting, float(value), certified, [inside])]


def theorem_4_6(setting: Setting) -> list[Certificate]:
    """Bound from below the larger error; above 0 where Assumptions 4.3 to 4.5 hold."""
    theorem = Theorem("theorem_4_6", "Theorem 4.6", "lower", "larger_error")
    reason = _shift_reason(setting, [])
    if reason:
        return not_applicable(theorem, setting, reason)
    labels, accepted = _changes(setting, setting.part(2))
    more = labels.minus(accepted)
    met = [
        _sign("Assumption 4.3: labels +1 do not become rarer", labels),
        _sign("Assumption 4.4: acceptances do not become rarer", accepted),
        _sign("Assumption 4.5: labels +1 rise by more than acceptances", more, strictly=True),
    ]
    refuted = broken(met)
    if refuted:
        return not_applicable(theorem, setting, refuted, met)
    lower = 0.5 * (labels.magnitude().low - accepted.magnitude().high)
    estimate = float(formulas.theorem_4_6(*_four_shares(setting)))
    found = both_forms(theorem, setting, estimate, lambda: lower, met)
    if lower > 0.0 or setting.weighted:
        return found
    doubtful = f"from {setting.n:,} rows Assumptions 4.3 to 4.5 are not certain"
    return [found[0], not_applicable(theorem, setting, doubtful, met)[1]]


def proposition_4_7(setting: Setting) -> list[Certificate]:
    """Bound Theorem 4.2 for the paper's strategic people, whose weights are known."""
    theorem = Theorem("proposition_4_7", "Proposition 4.7, factor 2", "upper", "excess")
    setup, source, at = setting.setup, setting.own.source, setting.chosen.best
    if setup is None:
        people = "the people are not those of Setups 1 to 4 (no budget is given)"
        return not_applicable(theorem, setting, people)
    low, high, ends = setup.budget, 1.0 - setup.budget, (setup.tau, setup.tau + at)
    feature, n = np.sort(source.score + setup.tau), source.n
    steps = np.arange(1, n + 1) / n
    away = float(np.max(np.maximum(steps - feature, feature - steps + 1.0 / n)))
    band = distribution_function_radius(n, setting.failure_probability)
    measured = f"their distribution is {away:.3f} away, chance allows {band:.3f}"
    kept = not_refuted(measured, band + 0.5 * NORMAL_AT_POWER / math.sqrt(n))
    met = [
        Assumption(
            "Setup 1: features are uniform on [0, 1]",
            *((False, measured) if away > band else (None, kept)),
        ),
        Assumption(
            "both thresholds lie at least the budget inside [0, 1]",
            all(low <= end <= high for end in ends),
            f"they are {ends[0]:.3f} and {ends[1]:.3f}, the budget {setup.budget:g}",
        ),
        source_optimal(setting),
    ]
    refuted = broken(met)
    if refuted:
        return not_applicable(theorem, setting, refuted, met)
    error = share_range(source, source.wrong(at), setting.failure_probability)
    value, upper = (
        float(formulas.proposition_4_7(each, setup.budget)) for each in (error.value, error.high)
    )
    return both_forms(theorem, setting, value, lambda: upper, met)


def within_support(setting: Setting) -> Assumption:
    """Return whether the people of both rules stay where source people stood."""
    worst = max(map(support, (setting.own, setting.best)), key=lambda each: each.largest)
    inside = worst.largest <= setting.tolerated_outside
    return Assumption("induced people stand where source people stood", inside, worst.words)


def source_optimal(setting: Setting) -> Assumption:
    """Return whether another threshold, chosen on other rows, is detectably better before."""
    source, other = setting.own.source, setting.chosen.source
    statement = "the rule is optimal on the source among the thresholds on its score"
    if source.weight is not None:
        lost = source.error() - source.error(other)
        return Assumption(statement, lost <= 1e-12, f"another threshold errs {lost:.3f} less")
    found = difference(source.wrong(), source.wrong(other), setting.failure_probability)
    if found.low > 0.0:
        return Assumption(statement, False, f"another threshold errs less, by {found.words}")
    if other == 0.0:
        return Assumption(statement, None, "no other threshold is better on the other rows either")
    # The interval has to lie above 0; it reaches over as many deviations as its level asks for.
    deviation = (found.value - found.low) / norm.isf(0.5 * setting.failure_probability)
    seen = found.value - found.low + NORMAL_AT_POWER * deviation
    measured = f"against the best threshold of other rows: {found.words}"
    return Assumption(statement, None, not_refuted(measured, seen))


def _shift_reason(setting: Setting, more: list[Assumption]) -> str:
    """Return why there is no covariate shift to speak of, or nothing."""
    if setting.own.labels != "follow":
        return GAMING
    return broken([*([setting.label_model] if setting.label_model else []), *more])


def _sign(statement: str, margin: Range, strictly: bool = False) -> Assumption:
    """Return whether a change has the sign: by its whole interval, not at all, or not certain."""
    found = f"the change is {margin.value:+.4f} ({margin.low:+.4f} to {margin.high:+.4f})"
    if margin.value < 0.0 or (strictly and margin.value == 0.0):
        return Assumption(statement, False, found)
    return Assumption(statement, True if margin.low >= 0.0 else None, found)


# ---- Section 5: P(X | Y) is kept. People who move change it, so that none of these applies ----

NO_CLASS = "a class has no rows, before or after"


def theorem_5_1(setting: Setting) -> list[Certificate]:
    """Bound what the rule loses against the best one, printed and sharper."""
    printed = Theorem("theorem_5_1", "Theorem 5.1, as printed", "upper", "excess")
    sharper = Theorem("theorem_5_1_sharper", "Theorem 5.1, sharper", "upper", "excess")
    kept = [target_shift(pair, setting.part(2)) for pair in (setting.own, setting.best)]
    worst = min(kept, key=lambda each: (each.supported is not False, each.supported is True))
    reason, unproven = broken([worst]), _unproven(setting, [worst])
    if reason:
        withheld_both = not_applicable(printed, setting, reason, [worst])
        return [*withheld_both, *not_applicable(sharper, setting, reason, [worst])]
    source, between, at = setting.own.source, setting.between, setting.chosen.best
    own, best = (s.share(s.favourable) for s in (between.source, between.induced))

    def moved(pair: Pair, part: float) -> Range:
        change = change_range(pair, pair.source.favourable, pair.induced.favourable, part)
        return change.magnitude()

    def shifts(part: float) -> list[Range]:
        """Return by how much the true and the false positive rate differ between the rules."""
        one, other = source.accepted(), source.accepted(at)
        return [contrast_range(source, one, other, part, label) for label in (1, -1)]

    def as_printed() -> list[Certificate]:
        optimal, part = source_optimal(setting), setting.part(4)
        refuted, met = broken([optimal]), [worst, optimal]
        if refuted:
            return not_applicable(printed, setting, refuted, met)
        p, change = share_range(source, source.favourable, part), shifts(part)
        value = formulas.theorem_5_1(p.value, own, best, change[0].value, change[1].value)
        high = (1.0 + p.high) * sum(r.magnitude().high for r in change)
        upper = moved(between, part).high + high
        return both_forms(printed, setting, float(value), lambda: upper, met, unproven)

    # Statements: |pS - pT|, |p - pS|, |p - pT|, the loss, four rates, two changes of rates.
    part = setting.part(10)
    rates = [
        [rate_range(source, source.accepted(t), label, part) for label in (1, -1)]
        for t in (0.0, at)
    ]
    blunt = [Range(1.0, 1.0, 1.0).minus(r[0].plus(r[1])).magnitude().high for r in rates]
    change = shifts(part)
    both = change[0].plus(change[1]).magnitude().high
    apart, own_move, best_move = (
        moved(pair, part).high for pair in (between, setting.own, setting.best)
    )
    lost = contrast_range(source, source.wrong(), source.wrong(at), part).high
    upper = lost + min(apart * blunt[0] + best_move * both, apart * blunt[1] + own_move * both)
    pairs = [(r[0].value, r[1].value) for r in rates]
    p = source.share(source.favourable)
    value = float(formulas.theorem_5_1_sharper(p, own, best, *pairs))
    found = both_forms(sharper, setting, value, lambda: upper, [worst], unproven)
    return [*as_printed(), *found]


def theorem_5_2(setting: Setting) -> list[Certificate]:
    """Bound from below the larger of the errors before and after deployment."""
    theorem = Theorem("theorem_5_2", "Theorem 5.2", "lower", "larger_error")
    kept = target_shift(setting.own, setting.failure_probability)
    reason = broken([kept])
    if reason:
        return not_applicable(theorem, setting, reason, [kept])
    pair, part = setting.own, setting.part(3)
    source, after = pair.source, pair.induced
    moved = change_range(pair, source.favourable, after.favourable, part).magnitude()
    rates = [rate_range(source, source.accepted(), label, part) for label in (1, -1)]
    apart = rates[0].minus(rates[1]).magnitude()
    shares = source.share(source.favourable), after.share(after.favourable)
    return both_forms(
        theorem,
        setting,
        float(formulas.theorem_5_2(*shares, rates[0].value, rates[1].value)),
        lambda: 0.5 * moved.low * (1.0 - min(1.0, apart.high)),
        [kept],
        _unproven(setting, [kept]),
    )


def proposition_5_3(setting: Setting) -> list[Certificate]:
    """Bound how far the label shares of the two rules lie apart under replicator dynamics."""
    theorem = Theorem("proposition_5_3", "Proposition 5.3, corrected", "upper", "label_shares")
    source, at, part = setting.own.source, setting.chosen.best, setting.part(5)
    pairs = (setting.own, 0.0), (setting.best, at)
    met = [target_shift(pair, setting.part(4)) for pair, _ in pairs]
    met += [replicator(pair, threshold, setting.part(4)) for pair, threshold in pairs]
    reason = broken(met)
    if reason:
        return not_applicable(theorem, setting, reason, met)
    p = share_range(source, source.favourable, part)
    errors = [share_range(source, source.wrong(t), part) for t in (0.0, at)]
    lost = contrast_range(source, source.wrong(), source.wrong(at), part).magnitude()
    rate = contrast_range(source, source.accepted(), source.accepted(at), part, 1).magnitude()
    rates = source.true_positive_rate(), source.true_positive_rate(at)
    value = formulas.proposition_5_3(p.value, errors[0].value, errors[1].value, *rates)

    def certified() -> float:
        right = [1.0 - error.high for error in errors]
        if min(right) <= 0.0:
            return float("inf")
        return p.high * (lost.high + rate.high) / (right[0] * right[1])

    unproven = _unproven(setting, met)
    return both_forms(theorem, setting, float(value), certified, met, unproven)


def target_shift(pair: Pair, failure_probability: float) -> Assumption:
    """Return whether P(X | Y) is kept: by construction, refuted, or not known."""
    statement = "deployment keeps P(X | Y) and moves only how frequent the labels are"
    before, after = pair.source, pair.induced
    if not all(s.favourable.any() and not s.favourable.all() for s in (before, after)):
        return Assumption(statement, False, NO_CLASS)
    # Kolmogorov and Smirnov's distance per class, what chance allows, and what would be seen: a
    # right assumption is refuted with at most the failure probability, never supported.
    shifts = []
    for label in (1.0, -1.0):
        parts = [s.of_rows(s.label == label) for s in (before, after)]
        sizes = [part.effective_n for part in parts]
        band = sum(distribution_function_radius(n, 0.25 * failure_probability) for n in sizes)
        # Where the distributions lie furthest apart, either share has variance at most 1/4.
        noise = 0.5 * sum(1.0 / n for n in sizes) ** 0.5
        shifts.append((kolmogorov_distance(*parts), band, band + noise * NORMAL_AT_POWER))
    if pair.paired:
        changed = before.score != after.score
        if before.features is not None and after.features is not None:
            changed = (before.features != after.features).any(axis=1)
        moved = before.share(changed)
        if moved > 0.0:
            evidence = (
                f"the response moves the features of {moved:.1%} of the people "
                f"(within a class scores lie {max(shifts)[0]:.3f} apart)"
            )
            return Assumption(statement, False, evidence)
        if _reweighted(pair):
            return Assumption(statement, True, "nobody moves and no label changes")
    away, band, _ = max(shifts, key=lambda each: each[0] / each[1])
    evidence = f"within a class scores lie {away:.3f} apart, chance allows {band:.3f}"
    if away > band:
        return Assumption(statement, False, evidence)
    return Assumption(statement, None, not_refuted(evidence, max(each[2] for each in shifts)))


def _reweighted(pair: Pair) -> bool:
    """Return whether all that changed is how much either class counts."""
    before, after = pair.source, pair.induced
    if (before.label != after.label).any():
        return False
    ratio = np.divide(after.mass, before.mass, out=np.ones(pair.n), where=before.mass > 0.0)
    classes = before.favourable, ~before.favourable
    return all(np.ptp(ratio[mask]) <= 1e-9 * ratio.max() for mask in classes)


def replicator(pair: Pair, threshold: float, failure_probability: float) -> Assumption:
    """Test whether the induced label share is p TPR / (1 - Err), as replicator dynamics say."""
    statement = "labels follow replicator dynamics whose fitness is the accuracy in a class"
    source, part = pair.source, 0.25 * failure_probability
    if not source.favourable.any() or source.favourable.all():
        return Assumption(statement, False, NO_CLASS)
    p = share_range(source, source.favourable, part)
    rate = rate_range(source, source.accepted(threshold), 1, part)
    error = share_range(source, source.wrong(threshold), part)
    after = share_range(pair.induced, pair.induced.favourable, part)
    if error.value >= 1.0:
        return Assumption(statement, False, "the rule is always wrong, so no class has any fitness")
    expected = p.value * rate.value / (1.0 - error.value)
    low = p.low * rate.low / (1.0 - error.low)
    high = p.high * rate.high / max(1.0 - error.high, 1e-12)
    evidence = f"they predict a share of {expected:.3f}, it is {after.value:.3f}"
    if after.low > high or after.high < low:
        return Assumption(statement, False, evidence)
    return Assumption(statement, None, not_refuted(evidence, _detectable(low, high, after)))


def _detectable(low: float, high: float, after: Range) -> float:
    """Return the gap between predicted and met share that the test finds with 80 % power."""
    # The intervals have to miss each other, and reach over at least two standard deviations.
    half = 0.5 * ((high - low) + (after.high - after.low))
    return half * (1.0 + 0.5 * NORMAL_AT_POWER)


def _unproven(setting: Setting, met: list[Assumption]) -> str:
    """Return why nothing is certified: P(X | Y) is kept neither by construction nor as stated."""
    if setting.keeps_classes:
        return ""
    open_ones = [each for each in met if each.supported is None]
    return "; ".join(f"{each.statement} is {each.evidence}" for each in open_ones)


BOUNDS: tuple[Callable[[Setting], list[Certificate]], ...] = (
    theorem_3_1,
    theorem_3_1_linear,
    theorem_3_2,
    theorem_3_3,
    corollary_3_4,
    theorem_4_2,
    theorem_4_6,
    proposition_4_7,
    theorem_5_1,
    theorem_5_2,
    proposition_5_3,
)


def all_bounds(setting: Setting) -> list[Certificate]:
    """Return every bound in both forms; those whose assumptions fail say so."""
    return [certificate for bound in BOUNDS for certificate in bound(setting)]
