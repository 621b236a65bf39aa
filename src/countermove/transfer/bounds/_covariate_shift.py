"""Section 4 of the transferability paper: bounds where P(Y | X) is kept.

Offered only where labels follow the features, and only while people stay where source
people stood.
"""

from __future__ import annotations

import math

import numpy as np
from scipy.stats import norm

from countermove.certificates import Assumption, Certificate
from countermove.certificates.intervals import distribution_function_radius
from countermove.transfer import formulas
from countermove.transfer.bounds._any_shift import ONE_SIDE, changes, four_shares
from countermove.transfer.bounds._setting import (
    NORMAL_AT_POWER,
    Setting,
    Theorem,
    both_forms,
    broken,
    not_applicable,
    not_refuted,
)
from countermove.transfer.estimates import Range, contrast_range, share_range
from countermove.transfer.induced import support
from countermove.transfer.optimal import difference
from countermove.transfer.weights import cell_weights, variance_upper

PRINTED = Theorem("theorem_4_2", "Theorem 4.2, as printed", "upper", "excess")
TIGHTER = Theorem("theorem_4_2_tighter", "Theorem 4.2, assumption-free", "upper", "excess")
LOWER = Theorem("theorem_4_6", "Theorem 4.6", "lower", "larger_error")
STRATEGIC = Theorem("proposition_4_7", "Proposition 4.7, factor 2", "upper", "excess")
GAMING = "labels are kept while features move, so P(Y | X) changes"


def theorem_4_2(setting: Setting) -> list[Certificate]:
    """Bound what the rule loses against the best one, printed and without optimality."""
    inside = within_support(setting)
    reason = _shift_reason(setting, [inside])
    chosen = setting.chosen
    if not reason and (chosen.edges is None or chosen.best_edges is None):
        reason = ONE_SIDE
    variances = [] if reason else _variances(setting)
    if not reason and None in variances:
        reason = "induced people are in cells of (score bin, label) without source people"
    if reason:
        return [
            *not_applicable(PRINTED, setting, reason, [inside]),
            *not_applicable(TIGHTER, setting, reason, [inside]),
        ]
    optimal = source_optimal(setting)
    refuted = broken([optimal])
    own, best = (v for v in variances if v is not None)
    printed = (
        not_applicable(PRINTED, setting, refuted, [inside, optimal])
        if refuted
        else _printed(setting, own, best, [inside, optimal])
    )
    return [*printed, *_tighter(setting, own, best, [inside])]


def theorem_4_6(setting: Setting) -> list[Certificate]:
    """Bound from below the larger error; above 0 where Assumptions 4.3 to 4.5 hold."""
    reason = _shift_reason(setting, [])
    if reason:
        return not_applicable(LOWER, setting, reason)
    labels, accepted = changes(setting, setting.part(2))
    more = labels.minus(accepted)
    met = [
        _sign("Assumption 4.3: labels +1 do not become rarer", labels),
        _sign("Assumption 4.4: acceptances do not become rarer", accepted),
        _sign("Assumption 4.5: labels +1 rise by more than acceptances", more, strictly=True),
    ]
    refuted = broken(met)
    if refuted:
        return not_applicable(LOWER, setting, refuted, met)
    lower = 0.5 * (labels.magnitude().low - accepted.magnitude().high)
    found = both_forms(
        LOWER,
        setting,
        lambda: float(formulas.theorem_4_6(*four_shares(setting))),
        lambda: lower,
        met,
    )
    if lower > 0.0 or setting.weighted:
        return found
    doubtful = f"from {setting.n:,} rows Assumptions 4.3 to 4.5 are not certain"
    return [found[0], not_applicable(LOWER, setting, doubtful, met)[1]]


def proposition_4_7(setting: Setting) -> list[Certificate]:
    """Bound Theorem 4.2 for the paper's strategic people, whose weights are known."""
    setup = setting.setup
    if setup is None:
        return not_applicable(
            STRATEGIC, setting, "the people are not those of Setups 1 to 4 (no budget is given)"
        )
    low, high = setup.budget, 1.0 - setup.budget
    tau, other = setup.tau, setup.tau + setting.chosen.best
    feature = np.sort(setting.own.source.score + tau)
    steps = np.arange(1, len(feature) + 1) / len(feature)
    away = float(np.max(np.maximum(steps - feature, feature - steps + 1.0 / len(feature))))
    band = distribution_function_radius(len(feature), setting.failure_probability)
    seen = band + 0.5 * NORMAL_AT_POWER / math.sqrt(len(feature))
    measured = f"their distribution is {away:.3f} away, chance allows {band:.3f}"
    met = [
        Assumption(
            "Setup 1: features are uniform on [0, 1]",
            *((False, measured) if away > band else (None, not_refuted(measured, seen))),
        ),
        Assumption(
            "both thresholds lie at least the budget inside [0, 1]",
            low <= tau <= high and low <= other <= high,
            f"they are {tau:.3f} and {other:.3f}, the budget {setup.budget:g}",
        ),
        source_optimal(setting),
    ]
    refuted = broken(met)
    if refuted:
        return not_applicable(STRATEGIC, setting, refuted, met)
    source = setting.own.source
    error = share_range(source, source.wrong(setting.chosen.best), setting.failure_probability)
    return both_forms(
        STRATEGIC,
        setting,
        lambda: float(formulas.proposition_4_7(error.value, setup.budget)),
        lambda: float(formulas.proposition_4_7(error.high, setup.budget)),
        met,
    )


def within_support(setting: Setting) -> Assumption:
    """Return whether the people of both rules stay where source people stood."""
    found = [support(pair) for pair in (setting.own, setting.best)]
    worst = max(found, key=lambda each: each.largest)
    return Assumption(
        "induced people stand where source people stood",
        worst.largest <= setting.tolerated_outside,
        worst.words,
    )


def source_optimal(setting: Setting) -> Assumption:
    """Return whether another threshold, chosen on other rows, is detectably better before."""
    source = setting.own.source
    statement = "the rule is optimal on the source among the thresholds on its score"
    if source.weight is not None:
        lost = source.error() - source.error(setting.chosen.source)
        return Assumption(statement, lost <= 1e-12, f"another threshold errs {lost:.3f} less")
    found = difference(
        source.wrong(), source.wrong(setting.chosen.source), setting.failure_probability
    )
    if found.low > 0.0:
        return Assumption(statement, False, f"another threshold errs less, by {found.words}")
    if setting.chosen.source == 0.0:
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


def _variances(setting: Setting) -> list[float | None]:
    parts = (setting.own, setting.chosen.edges), (setting.best, setting.chosen.best_edges)
    return [cell_weights(pair, edges).variance for pair, edges in parts if edges is not None]


def _variances_upper(setting: Setting, failure_probability: float) -> tuple[float, float]:
    edges, best_edges = setting.chosen.edges, setting.chosen.best_edges
    if edges is None or best_edges is None:
        return math.inf, math.inf
    return (
        variance_upper(setting.own, edges, failure_probability),
        variance_upper(setting.best, best_edges, failure_probability),
    )


def _printed(setting: Setting, own: float, best: float, met: list[Assumption]) -> list[Certificate]:
    source = setting.own.source
    error = share_range(source, source.wrong(setting.chosen.best), setting.part(3))
    return both_forms(
        PRINTED,
        setting,
        lambda: float(formulas.theorem_4_2(error.value, own, best)),
        lambda: float(
            formulas.theorem_4_2(error.high, *_variances_upper(setting, setting.part(3)))
        ),
        met,
    )


def _tighter(setting: Setting, own: float, best: float, met: list[Assumption]) -> list[Certificate]:
    source, at, part = setting.own.source, setting.chosen.best, setting.part(5)
    errors = [share_range(source, source.wrong(t), part) for t in (0.0, at)]
    lost = contrast_range(source, source.wrong(), source.wrong(at), part)

    def certified() -> float:
        spreads = [error.spread().high for error in errors]
        upper = _variances_upper(setting, part)
        return lost.high + sum(
            math.sqrt(v * e) if math.isfinite(v) else math.inf
            for v, e in zip(upper, spreads, strict=True)
        )

    return both_forms(
        TIGHTER,
        setting,
        lambda: float(formulas.theorem_4_2_tighter(errors[0].value, errors[1].value, own, best)),
        certified,
        met,
    )


def _sign(statement: str, margin: Range, strictly: bool = False) -> Assumption:
    """Return whether a change has the sign: by its whole interval, not at all, or not certain."""
    found = f"the change is {margin.value:+.4f} ({margin.low:+.4f} to {margin.high:+.4f})"
    if margin.value < 0.0 or (strictly and margin.value == 0.0):
        return Assumption(statement, False, found)
    return Assumption(statement, True if margin.low >= 0.0 else None, found)
