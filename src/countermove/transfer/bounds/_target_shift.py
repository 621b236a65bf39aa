"""Section 5 of the transferability paper: bounds where P(X | Y) is kept.

People who move change P(X | Y): where a response moves features, none of these applies.
"""

from __future__ import annotations

import numpy as np

from countermove._types import Mask
from countermove.certificates import Assumption, Certificate
from countermove.certificates.intervals import distribution_function_radius
from countermove.transfer import formulas
from countermove.transfer.bounds._covariate_shift import source_optimal
from countermove.transfer.bounds._setting import (
    NORMAL_AT_POWER,
    Setting,
    Theorem,
    both_forms,
    broken,
    not_applicable,
    not_refuted,
)
from countermove.transfer.estimates import (
    Range,
    change_range,
    contrast_range,
    kolmogorov_distance,
    rate_range,
    share_range,
)
from countermove.transfer.sample import Pair

PRINTED = Theorem("theorem_5_1", "Theorem 5.1, as printed", "upper", "excess")
SHARPER = Theorem("theorem_5_1_sharper", "Theorem 5.1, sharper", "upper", "excess")
LOWER = Theorem("theorem_5_2", "Theorem 5.2", "lower", "larger_error")
REPLICATOR = Theorem("proposition_5_3", "Proposition 5.3, corrected", "upper", "label_shares")
NO_CLASS = "a class has no rows, before or after"


def theorem_5_1(setting: Setting) -> list[Certificate]:
    """Bound what the rule loses against the best one, printed and sharper."""
    kept = [target_shift(pair, setting.part(2)) for pair in (setting.own, setting.best)]
    worst = min(kept, key=lambda each: (each.supported is not False, each.supported is True))
    reason = broken([worst])
    if reason:
        return [
            *not_applicable(PRINTED, setting, reason, [worst]),
            *not_applicable(SHARPER, setting, reason, [worst]),
        ]
    optimal = source_optimal(setting)
    refuted = broken([optimal])
    printed = (
        not_applicable(PRINTED, setting, refuted, [worst, optimal])
        if refuted
        else _printed(setting, [worst, optimal])
    )
    return [*printed, *_sharper(setting, [worst])]


def theorem_5_2(setting: Setting) -> list[Certificate]:
    """Bound from below the larger of the errors before and after deployment."""
    kept = target_shift(setting.own, setting.failure_probability)
    reason = broken([kept])
    if reason:
        return not_applicable(LOWER, setting, reason, [kept])
    pair, part = setting.own, setting.part(3)
    source = pair.source
    moved = change_range(pair, source.favourable, pair.induced.favourable, part).magnitude()
    rates = [rate_range(source, source.accepted(), label, part) for label in (1, -1)]
    apart = rates[0].minus(rates[1]).magnitude()
    p, p_after = source.share(source.favourable), pair.induced.share(pair.induced.favourable)
    return both_forms(
        LOWER,
        setting,
        lambda: float(formulas.theorem_5_2(p, p_after, rates[0].value, rates[1].value)),
        lambda: 0.5 * moved.low * (1.0 - min(1.0, apart.high)),
        [kept],
        _unproven(setting, [kept]),
    )


def proposition_5_3(setting: Setting) -> list[Certificate]:
    """Bound how far the label shares of both rules lie apart, from the source alone."""
    met = [target_shift(pair, setting.part(4)) for pair in (setting.own, setting.best)]
    met += [
        replicator(pair, threshold, setting.part(4))
        for pair, threshold in ((setting.own, 0.0), (setting.best, setting.chosen.best))
    ]
    reason = broken(met)
    if reason:
        return not_applicable(REPLICATOR, setting, reason, met)
    source, at, part = setting.own.source, setting.chosen.best, setting.part(5)
    p = share_range(source, source.favourable, part)
    errors = [share_range(source, source.wrong(t), part) for t in (0.0, at)]
    lost = contrast_range(source, source.wrong(), source.wrong(at), part).magnitude()
    rate = contrast_range(source, source.accepted(), source.accepted(at), part, 1).magnitude()

    def certified() -> float:
        right = [1.0 - error.high for error in errors]
        if min(right) <= 0.0:
            return float("inf")
        return p.high * (lost.high + rate.high) / (right[0] * right[1])

    return both_forms(
        REPLICATOR,
        setting,
        lambda: float(
            formulas.proposition_5_3(
                p.value,
                errors[0].value,
                errors[1].value,
                source.true_positive_rate(),
                source.true_positive_rate(at),
            )
        ),
        certified,
        met,
        _unproven(setting, met),
    )


def target_shift(pair: Pair, failure_probability: float) -> Assumption:
    """Return whether P(X | Y) is kept: by construction, refuted, or not known."""
    statement = "deployment keeps P(X | Y) and moves only how frequent the labels are"
    if not all(s.favourable.any() and not s.favourable.all() for s in (pair.source, pair.induced)):
        return Assumption(statement, False, NO_CLASS)
    if pair.paired:
        moved = pair.source.share(_moved(pair))
        if moved > 0.0:
            shift = max(_class_shifts(pair, failure_probability), key=lambda each: each[0])[0]
            evidence = (
                f"the response moves the features of {moved:.1%} of the people "
                f"(within a class scores lie {shift:.3f} apart)"
            )
            return Assumption(statement, False, evidence)
        if _reweighted(pair):
            return Assumption(statement, True, "nobody moves and no label changes")
    return _tested(statement, pair, failure_probability)


def _tested(statement: str, pair: Pair, failure_probability: float) -> Assumption:
    """Refute where the scores of a class lie further apart than both samples' bands allow."""
    # Kolmogorov and Smirnov's distance: a right assumption is refuted with at most the failure
    # probability. What the test does not refute it does not support either.
    shifts = _class_shifts(pair, failure_probability)
    away, band, _ = max(shifts, key=lambda each: each[0] / each[1])
    evidence = f"within a class scores lie {away:.3f} apart, chance allows {band:.3f}"
    if away > band:
        return Assumption(statement, False, evidence)
    return Assumption(statement, None, not_refuted(evidence, max(each[2] for each in shifts)))


def _class_shifts(pair: Pair, failure_probability: float) -> list[tuple[float, float, float]]:
    """Return per class the distance of scores, what chance allows, and what would be seen."""
    found = []
    for label in (1.0, -1.0):
        parts = [s.of_rows(s.label == label) for s in (pair.source, pair.induced)]
        each, sizes = 0.25 * failure_probability, [part.effective_n for part in parts]
        band = sum(distribution_function_radius(n, each) for n in sizes)
        # Where the distributions lie furthest apart, either share has variance at most 1/4.
        noise = 0.5 * sum(1.0 / n for n in sizes) ** 0.5
        found.append((kolmogorov_distance(*parts), band, band + noise * NORMAL_AT_POWER))
    return found


def _moved(pair: Pair) -> Mask:
    """Return whose features, or without features whose score, deployment changes."""
    before, after = pair.source, pair.induced
    changed: Mask = before.score != after.score
    if before.features is not None and after.features is not None:
        changed = (before.features != after.features).any(axis=1)
    return changed


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


def _printed(setting: Setting, met: list[Assumption]) -> list[Certificate]:
    part = setting.part(4)
    p, apart, *_ = _shares(setting, part)
    rates = _rate_changes(setting, part)
    return both_forms(
        PRINTED,
        setting,
        lambda: float(
            formulas.theorem_5_1(p.value, *_induced_shares(setting), rates[0].value, rates[1].value)
        ),
        lambda: apart.high + (1.0 + p.high) * sum(r.magnitude().high for r in rates),
        met,
        _unproven(setting, met[:1]),
    )


def _sharper(setting: Setting, met: list[Assumption]) -> list[Certificate]:
    # Statements: |pS - pT|, |p - pS|, |p - pT|, the loss, four rates, two changes of rates.
    part, source, at = setting.part(10), setting.own.source, setting.chosen.best
    p, apart, own_move, best_move = _shares(setting, part)
    rates = [
        [rate_range(source, source.accepted(t), label, part) for label in (1, -1)]
        for t in (0.0, at)
    ]
    lost = contrast_range(source, source.wrong(), source.wrong(at), part)
    change = _rate_changes(setting, part)

    def certified() -> float:
        moved = change[0].plus(change[1]).magnitude().high
        own, best = (_one_minus(pair).magnitude().high for pair in rates)
        through_own = apart.high * own + best_move.high * moved
        through_best = apart.high * best + own_move.high * moved
        return lost.high + min(through_own, through_best)

    values = [(pair[0].value, pair[1].value) for pair in rates]
    return both_forms(
        SHARPER,
        setting,
        lambda: float(
            formulas.theorem_5_1_sharper(p.value, *_induced_shares(setting), values[0], values[1])
        ),
        certified,
        met,
        _unproven(setting, met),
    )


def _shares(setting: Setting, part: float) -> tuple[Range, Range, Range, Range]:
    """Return p, |p(h) - p(h_T)|, |p - p(h)| and |p - p(h_T)|."""
    source, between = setting.own.source, setting.between
    own, best = between.source, between.induced
    return (
        share_range(source, source.favourable, part),
        change_range(between, own.favourable, best.favourable, part).magnitude(),
        change_range(setting.own, source.favourable, own.favourable, part).magnitude(),
        change_range(
            setting.best, setting.best.source.favourable, best.favourable, part
        ).magnitude(),
    )


def _induced_shares(setting: Setting) -> tuple[float, float]:
    parts = setting.own.induced, setting.best.induced
    return parts[0].share(parts[0].favourable), parts[1].share(parts[1].favourable)


def _rate_changes(setting: Setting, part: float) -> tuple[Range, Range]:
    source, at = setting.own.source, setting.chosen.best
    one, other = source.accepted(), source.accepted(at)
    return (
        contrast_range(source, one, other, part, 1),
        contrast_range(source, one, other, part, -1),
    )


def _one_minus(rates: list[Range]) -> Range:
    return Range(1.0, 1.0, 1.0).minus(rates[0].plus(rates[1]))
