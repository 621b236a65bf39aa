r"""The bounds of the transferability paper, as functions of population quantities.

:math:`S` is the source, :math:`D(h)` the distribution a rule :math:`h` induces, and
:math:`\mathrm{Err}` a share judged wrongly. Where the paper's statement lost a root or a
factor or is false as printed, the right form stands here (docs/papers). All broadcast.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from countermove.errors import ParameterError, shown

Value: TypeAlias = float | NDArray[np.float64]

ROUNDING = 1e-9
"""How far beyond [0, 1] a sum of shares may end up by rounding."""


def theorem_3_1(error_source: Value, joint_error: Value, divergence: Value) -> Value:
    r"""Bound the error after deployment, :math:`\mathrm{Err}_S(h) + \lambda + \tfrac12 d`."""
    # joint_error: min over h' of Err_S(h') + Err_D(h)(h'), or that sum for any h' of the class;
    # divergence: 2 sup |P_S(h != h') - P_D(h)(h != h')| over pairs of rules of the class.
    _check(error_source=error_source)
    return error_source + joint_error + 0.5 * divergence


def theorem_3_2(
    error_own: Value, error_across: Value, joint_error: Value, divergence: Value
) -> Value:
    """Bound what a rule loses once deployed against the best rule h_T, or any other."""
    # error_own is Err_D(h)(h), error_across Err_D(h_T)(h); the others are between D(h) and D(h_T).
    _check(error_own=error_own, error_across=error_across)
    return 0.5 * (joint_error + error_own + error_across) + 0.5 * divergence


def theorem_3_2_solved(
    error_best: Value, error_across: Value, joint_error: Value, divergence: Value
) -> Value:
    """Bound the error after deployment without knowing it: Theorem 3.2, solved for it."""
    _check(error_best=error_best, error_across=error_across)
    return 2.0 * error_best + error_across + joint_error + divergence


def theorem_3_3(
    label_source: Value, label_induced: Value, accepted_source: Value, accepted_induced: Value
) -> Value:
    """Bound from below the larger of the errors before and after deployment."""
    return _positive(theorem_4_6(label_source, label_induced, accepted_source, accepted_induced))


def corollary_3_4(label_source: Value, label_induced: Value, total_variation: Value) -> Value:
    """Bound as Theorem 3.3, from the total variation of the features."""
    # That of bins is below that of the features and serves as well if the rule is constant on each.
    _check(label_source=label_source, label_induced=label_induced, total_variation=total_variation)
    return _positive(0.5 * (np.abs(label_source - label_induced) - total_variation))


def theorem_4_2(error_source_best: Value, variance_own: Value, variance_best: Value) -> Value:
    """Bound what the source-optimal rule loses under covariate shift, as published."""
    # error_source_best is Err_S(h_T); variances are those of the importance weights over S.
    _check(error_source_best=error_source_best)
    _check_not_negative(variance_own=variance_own, variance_best=variance_best)
    bound: Value = np.sqrt(_positive(error_source_best)) * (
        np.sqrt(variance_own) + np.sqrt(variance_best)
    )
    return bound


def theorem_4_2_tighter(
    error_source: Value, error_source_best: Value, variance_own: Value, variance_best: Value
) -> Value:
    """Bound what any rule loses against any other under covariate shift."""
    # The loss is Err_S(h_S) - Err_S(h_T) + Cov(w_S, e_S) - Cov(w_T, e_T), e for being judged
    # wrongly; Cauchy and Schwarz bound both. Never above theorem_4_2 where h_S is optimal on the
    # source.
    _check(error_source=error_source, error_source_best=error_source_best)
    _check_not_negative(variance_own=variance_own, variance_best=variance_best)
    own = np.sqrt(variance_own * _positive(error_source * (1.0 - error_source)))
    best = np.sqrt(variance_best * _positive(error_source_best * (1.0 - error_source_best)))
    return error_source - error_source_best + own + best


def assumptions_4_3_to_4_5(
    label_source: Value, label_induced: Value, accepted_source: Value, accepted_induced: Value
) -> tuple[Value, Value, Value]:
    """Return the three margins whose signs are Assumptions 4.3, 4.4 (>= 0) and 4.5 (> 0)."""
    # The part of E_S[(1 - w) 1{Y=1}] where w >= 1 is negative and the rest positive; 4.3, that the
    # first outweighs the rest, says that label +1 does not become rarer. 4.4 says so of
    # acceptances; 4.5, a covariance with w, says that labels rise by more.
    _check(
        label_source=label_source,
        label_induced=label_induced,
        accepted_source=accepted_source,
        accepted_induced=accepted_induced,
    )
    labels, accepted = label_induced - label_source, accepted_induced - accepted_source
    return labels, accepted, labels - accepted


def theorem_4_6(
    label_source: Value, label_induced: Value, accepted_source: Value, accepted_induced: Value
) -> Value:
    """Return the value of Theorem 3.3 before clipping; above 0 under Assumptions 4.3 to 4.5."""
    labels, accepted, _ = assumptions_4_3_to_4_5(
        label_source, label_induced, accepted_source, accepted_induced
    )
    return 0.5 * (np.abs(labels) - np.abs(accepted))


def proposition_4_7(error_source_best: Value, budget: Value) -> Value:
    """Bound as Theorem 4.2 for the strategic people of Setups 1 to 4."""
    # Var w = 2B/3 for both rules while their thresholds lie in [B, 1 - B].
    _check_not_negative(budget=budget)
    variance = 2.0 * budget / 3.0
    return theorem_4_2(error_source_best, variance, variance)


def theorem_5_1(
    favourable: Value,
    favourable_own: Value,
    favourable_best: Value,
    rate_change_positive: Value,
    rate_change_negative: Value,
) -> Value:
    """Bound what the source-optimal rule loses under target shift, as published."""
    # favourable is p, favourable_own p(h_S), favourable_best p(h_T): shares of label +1.
    _check(favourable=favourable, favourable_own=favourable_own, favourable_best=favourable_best)
    changes = np.abs(rate_change_positive) + np.abs(rate_change_negative)
    return np.abs(favourable_own - favourable_best) + (1.0 + favourable) * changes


def theorem_5_1_sharper(
    favourable: Value,
    favourable_own: Value,
    favourable_best: Value,
    rates_own: tuple[Value, Value],
    rates_best: tuple[Value, Value],
) -> Value:
    """Bound what any rule loses against any other under target shift."""
    # With a = 1 - TPR - FPR the loss is Err_S(h_S) - Err_S(h_T) + (p_S - p) a_S + (p - p_T) a_T.
    # Never above theorem_5_1 where h_S is optimal on the source.
    _check(favourable=favourable, favourable_own=favourable_own, favourable_best=favourable_best)
    own, best = 1.0 - rates_own[0] - rates_own[1], 1.0 - rates_best[0] - rates_best[1]
    lost = error_of_rates(favourable, *rates_own) - error_of_rates(favourable, *rates_best)
    apart, change = np.abs(favourable_own - favourable_best), np.abs(own - best)
    through_own = apart * np.abs(own) + np.abs(favourable - favourable_best) * change
    through_best = apart * np.abs(best) + np.abs(favourable - favourable_own) * change
    bound: Value = lost + np.minimum(through_own, through_best)
    return bound


def theorem_5_2(
    favourable: Value,
    favourable_own: Value,
    true_positive_rate: Value,
    false_positive_rate: Value,
) -> Value:
    """Bound from below the larger of the errors before and after a target shift."""
    _check(
        favourable=favourable,
        favourable_own=favourable_own,
        true_positive_rate=true_positive_rate,
        false_positive_rate=false_positive_rate,
    )
    blunt = 1.0 - np.abs(true_positive_rate - false_positive_rate)
    return 0.5 * np.abs(favourable - favourable_own) * blunt


def proposition_5_3(
    favourable: Value,
    error_own: Value,
    error_best: Value,
    true_positive_own: Value,
    true_positive_best: Value,
) -> Value:
    """Bound how far two rules' label shares lie apart under replicator dynamics."""
    # For the fitness "accuracy in one's class", p(h) = p TPR / (1 - Err). The numerator is printed
    # as a product, which is false.
    _check(
        favourable=favourable,
        error_own=error_own,
        error_best=error_best,
        true_positive_own=true_positive_own,
        true_positive_best=true_positive_best,
    )
    if np.any(np.asarray(error_own) >= 1.0) or np.any(np.asarray(error_best) >= 1.0):
        raise ParameterError("a rule that is always wrong leaves no fitness; expected errors < 1")
    apart = np.abs(error_own - error_best) + np.abs(true_positive_own - true_positive_best)
    return favourable * apart / ((1.0 - error_own) * (1.0 - error_best))


def error_of_rates(favourable: Value, true_positive: Value, false_positive: Value) -> Value:
    r"""Return :math:`p\,(1 - \mathrm{TPR}) + (1 - p)\,\mathrm{FPR}`."""
    _check(favourable=favourable, true_positive=true_positive, false_positive=false_positive)
    return favourable * (1.0 - true_positive) + (1.0 - favourable) * false_positive


def _positive(value: Value) -> Value:
    return np.maximum(value, 0.0)


def _check(**shares: Value) -> None:
    """Refuse probabilities outside [0, 1], by name."""
    for name, value in shares.items():
        flat = np.atleast_1d(np.asarray(value, dtype=np.float64)).ravel()
        wrong = flat[~((flat >= -ROUNDING) & (flat <= 1.0 + ROUNDING))]
        if wrong.size:
            raise ParameterError(
                f"{name} is a probability; expected values in [0, 1], got {shown(wrong)}"
            )


def _check_not_negative(**values: Value) -> None:
    for name, value in values.items():
        if not np.all(np.asarray(value) >= 0.0):
            raise ParameterError(f"{name} cannot be negative, got {value!r}")
