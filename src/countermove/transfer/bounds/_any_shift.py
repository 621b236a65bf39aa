"""Section 3 of the transferability paper: bounds for any shift a rule may bring about."""

from __future__ import annotations

from countermove.certificates import Assumption, Certificate
from countermove.certificates.intervals import cells_radius
from countermove.transfer import formulas
from countermove.transfer.bounds._setting import (
    Setting,
    Theorem,
    both_forms,
    not_applicable,
    withheld,
)
from countermove.transfer.estimates import (
    Range,
    binned_total_variation,
    change_range,
    linear_divergence_estimate,
    share_range,
    threshold_divergence,
    threshold_divergence_upper,
)
from countermove.transfer.sample import Sample

THRESHOLDS = Assumption("the class of rules is the thresholds on this score")
ONE_SIDE = "everybody is on one side of the threshold, so no bins refine the rule"


def theorem_3_1(setting: Setting) -> list[Certificate]:
    """Bound the error after deployment; the class of rules is the thresholds on the score."""
    theorem = Theorem("theorem_3_1", "Theorem 3.1", "upper", "error_after")
    source, induced = setting.own.source, setting.own.induced
    error = share_range(source, source.wrong(), setting.part(4))
    joint = _joint(source, induced, setting.chosen.with_source, 0.5 * setting.part(2))
    return both_forms(
        theorem,
        setting,
        lambda: float(
            formulas.theorem_3_1(error.value, joint.value, threshold_divergence(source, induced))
        ),
        lambda: float(
            formulas.theorem_3_1(
                error.high,
                joint.high,
                threshold_divergence_upper(source, induced, setting.part(2)),
            )
        ),
        [THRESHOLDS],
    )


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
    estimate = both_forms(
        theorem,
        setting,
        lambda: float(formulas.theorem_3_1(source.error(), joint.value, divergence)),
        lambda: float("nan"),
        [low],
    )[0]
    reason = "the divergence of linear rules is only estimated, from below"
    return [estimate, withheld(theorem, setting, "certificate", reason, [low])]


def theorem_3_2(setting: Setting) -> list[Certificate]:
    """Bound what the rule loses against the best one, and solved, its error after deployment."""
    between = setting.between
    own, best = between.source, between.induced
    part = setting.part(3)
    errors = [
        share_range(sample, sample.wrong(threshold), 0.5 * part)
        for sample, threshold in ((own, 0.0), (best, 0.0), (best, setting.chosen.best))
    ]
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
        values = first.value, errors[1].value, joint.value, divergence
        highs = first.high, errors[1].high, joint.high, upper
        found += both_forms(
            theorem,
            setting,
            lambda f=formula, v=values: float(f(*v)),  # type: ignore[misc]
            lambda f=formula, v=highs: float(f(*v)),  # type: ignore[misc]
            [THRESHOLDS],
        )
    return found


def theorem_3_3(setting: Setting) -> list[Certificate]:
    """Bound from below the larger of the errors before and after deployment."""
    theorem = Theorem("theorem_3_3", "Theorem 3.3", "lower", "larger_error")
    labels, accepted = changes(setting, setting.part(2))
    return both_forms(
        theorem,
        setting,
        lambda: float(formulas.theorem_3_3(*four_shares(setting))),
        lambda: max(0.0, 0.5 * (labels.magnitude().low - accepted.magnitude().high)),
    )


def corollary_3_4(setting: Setting) -> list[Certificate]:
    """Bound as Theorem 3.3, from the total variation over bins that refine the rule."""
    theorem = Theorem("corollary_3_4", "Corollary 3.4", "lower", "larger_error")
    edges = setting.chosen.edges
    if edges is None:
        return not_applicable(theorem, setting, ONE_SIDE)
    source, induced = setting.own.source, setting.own.induced
    variation = binned_total_variation(source, induced, edges)
    part = setting.part(3)
    labels, _ = changes(setting, part)
    radii = sum(cells_radius(s.n, len(edges) + 1, part) for s in (source, induced))
    return both_forms(
        theorem,
        setting,
        lambda: float(formulas.corollary_3_4(*four_shares(setting)[:2], variation)),
        lambda: max(0.0, 0.5 * (labels.magnitude().low - min(1.0, variation + radii))),
    )


def changes(setting: Setting, failure_probability: float) -> tuple[Range, Range]:
    """Return by how much the shares of label +1 and of the accepted rise; each may fail."""
    pair = setting.own
    before, after = pair.source, pair.induced
    return (
        change_range(pair, before.favourable, after.favourable, failure_probability),
        change_range(pair, before.accepted(), after.accepted(), failure_probability),
    )


def four_shares(setting: Setting) -> tuple[float, float, float, float]:
    """Return the shares of label +1 before and after, and of the accepted before and after."""
    before, after = setting.own.source, setting.own.induced
    return (
        before.share(before.favourable),
        after.share(after.favourable),
        before.share(before.accepted()),
        after.share(after.accepted()),
    )


def _joint(one: Sample, other: Sample, threshold: float, failure_probability: float) -> Range:
    """Return the joint error of a threshold fixed beforehand: at least that of the best one."""
    half = 0.5 * failure_probability
    first, second = (share_range(s, s.wrong(threshold), half) for s in (one, other))
    return first.plus(second)
