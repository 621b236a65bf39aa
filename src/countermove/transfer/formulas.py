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
    r"""Bound the error after deployment from the source.

    .. math:: \mathrm{Err}_{D(h)}(h) \le \mathrm{Err}_S(h) + \lambda + \tfrac12 d

    Parameters
    ----------
    error_source
        :math:`\mathrm{Err}_S(h)`.
    joint_error
        :math:`\lambda = \min_{h'} \mathrm{Err}_S(h') + \mathrm{Err}_{D(h)}(h')`, or that sum
        for any :math:`h'` of the class.
    divergence
        :math:`d = 2 \sup_{h, h'} |P_S(h \ne h') - P_{D(h)}(h \ne h')|`.
    """
    _check(error_source=error_source)
    return error_source + joint_error + 0.5 * divergence


def theorem_3_2(
    error_own: Value, error_across: Value, joint_error: Value, divergence: Value
) -> Value:
    r"""Bound what a rule loses against the best rule after deployment.

    .. math:: \mathrm{Err}_{D(h)}(h) - \mathrm{Err}_{D(h_T)}(h_T)
        \le \tfrac12 (\lambda + \Lambda(h)) + \tfrac12 d,
        \qquad \Lambda(h) = \mathrm{Err}_{D(h)}(h) + \mathrm{Err}_{D(h_T)}(h)

    It holds for any rule in the place of :math:`h_T`.

    Parameters
    ----------
    error_own, error_across
        :math:`\mathrm{Err}_{D(h)}(h)` and :math:`\mathrm{Err}_{D(h_T)}(h)`.
    joint_error, divergence
        :math:`\lambda` and :math:`d` between :math:`D(h)` and :math:`D(h_T)`.
    """
    _check(error_own=error_own, error_across=error_across)
    return 0.5 * (joint_error + error_own + error_across) + 0.5 * divergence


def theorem_3_2_solved(
    error_best: Value, error_across: Value, joint_error: Value, divergence: Value
) -> Value:
    r"""Bound the error after deployment without knowing it.

    Theorem 3.2 has its left side on the right too; solved for it,

    .. math:: \mathrm{Err}_{D(h)}(h) \le 2\,\mathrm{Err}_{D(h_T)}(h_T)
        + \mathrm{Err}_{D(h_T)}(h) + \lambda + d .
    """
    _check(error_best=error_best, error_across=error_across)
    return 2.0 * error_best + error_across + joint_error + divergence


def theorem_3_3(
    label_source: Value, label_induced: Value, accepted_source: Value, accepted_induced: Value
) -> Value:
    r"""Bound from below the larger of the errors before and after deployment.

    .. math:: \max\{\mathrm{Err}_S(h), \mathrm{Err}_{D(h)}(h)\} \ge \tfrac12 \bigl[
        |P_S(Y{=}1) - P_{D(h)}(Y{=}1)| - |P_S(h{=}1) - P_{D(h)}(h{=}1)| \bigr]_+

    Parameters
    ----------
    label_source, label_induced
        Shares of label +1.
    accepted_source, accepted_induced
        Shares with the favourable decision.
    """
    return _positive(theorem_4_6(label_source, label_induced, accepted_source, accepted_induced))


def corollary_3_4(label_source: Value, label_induced: Value, total_variation: Value) -> Value:
    r"""Bound as Theorem 3.3, from the total variation of the features.

    .. math:: \max\{\mathrm{Err}_S(h), \mathrm{Err}_{D(h)}(h)\} \ge
        \tfrac12 \bigl[|P_S(Y{=}1) - P_{D(h)}(Y{=}1)| - TV(X)\bigr]_+

    The total variation of bins is below that of :math:`X` and serves as well if :math:`h`
    is constant on every bin.
    """
    _check(label_source=label_source, label_induced=label_induced, total_variation=total_variation)
    return _positive(0.5 * (np.abs(label_source - label_induced) - total_variation))


def theorem_4_2(error_source_best: Value, variance_own: Value, variance_best: Value) -> Value:
    r"""Bound what the source-optimal rule loses under covariate shift, as published.

    .. math:: \mathrm{Err}_{D(h_S)}(h_S) - \mathrm{Err}_{D(h_T)}(h_T) \le
        \sqrt{\mathrm{Err}_S(h_T)}\,
        \bigl(\sqrt{\mathrm{Var}_S w(h_S)} + \sqrt{\mathrm{Var}_S w(h_T)}\bigr)

    Needs :math:`h_S` to be optimal on the source; `theorem_4_2_tighter` does not.

    Parameters
    ----------
    error_source_best
        :math:`\mathrm{Err}_S(h_T)`.
    variance_own, variance_best
        Variances over the source of the importance weights of :math:`h_S` and :math:`h_T`.
    """
    _check(error_source_best=error_source_best)
    _check_not_negative(variance_own=variance_own, variance_best=variance_best)
    bound: Value = np.sqrt(_positive(error_source_best)) * (
        np.sqrt(variance_own) + np.sqrt(variance_best)
    )
    return bound


def theorem_4_2_tighter(
    error_source: Value, error_source_best: Value, variance_own: Value, variance_best: Value
) -> Value:
    r"""Bound what any rule loses against any other under covariate shift.

    With :math:`e` for being judged wrongly, the loss is exactly
    :math:`\mathrm{Err}_S(h_S) - \mathrm{Err}_S(h_T) + \mathrm{Cov}(w_S, e_S) -
    \mathrm{Cov}(w_T, e_T)`, so by Cauchy and Schwarz

    .. math:: \mathrm{Err}_S(h_S) - \mathrm{Err}_S(h_T)
        + \sqrt{\mathrm{Var}\,w_S\,\mathrm{Err}_S(h_S)(1 - \mathrm{Err}_S(h_S))}
        + \sqrt{\mathrm{Var}\,w_T\,\mathrm{Err}_S(h_T)(1 - \mathrm{Err}_S(h_T))} .

    Where :math:`h_S` is optimal on the source it is never above `theorem_4_2`.
    """
    _check(error_source=error_source, error_source_best=error_source_best)
    _check_not_negative(variance_own=variance_own, variance_best=variance_best)
    own = np.sqrt(variance_own * _positive(error_source * (1.0 - error_source)))
    best = np.sqrt(variance_best * _positive(error_source_best * (1.0 - error_source_best)))
    return error_source - error_source_best + own + best


def assumptions_4_3_to_4_5(
    label_source: Value, label_induced: Value, accepted_source: Value, accepted_induced: Value
) -> tuple[Value, Value, Value]:
    r"""Return the three margins whose signs are Assumptions 4.3, 4.4 and 4.5.

    The part of :math:`E_S[(1-w)\,1\{Y{=}1\}]` where :math:`w \ge 1` is negative and the rest
    positive, so the first outweighs the second iff the whole is not positive. Hence 4.3 says
    :math:`P_{D(h)}(Y{=}1) \ge P_S(Y{=}1)`, 4.4 the same of :math:`h{=}1`, and 4.5, a
    covariance with :math:`w`, that the first rise is the larger.

    Returns
    -------
    rise of the label's share, rise of the accepted share, the first minus the second;
    4.3 and 4.4 hold iff theirs are at least 0, 4.5 iff its is above 0.
    """
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
    r"""Bound Theorem 4.2 for the paper's strategic people (Setups 1 to 4).

    .. math:: \mathrm{Err}_{D(h_S)}(h_S) - \mathrm{Err}_{D(h_T)}(h_T)
        \le 2 \sqrt{\tfrac{2B}{3}\,\mathrm{Err}_S(h_T)}

    since :math:`\mathrm{Var}\,w = 2B/3` for both rules, thresholds in :math:`[B, 1-B]`.
    """
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
    r"""Bound what the source-optimal rule loses under target shift, as published.

    .. math:: |p(h_S) - p(h_T)| + (1 + p)\,(|\Delta \mathrm{TPR}| + |\Delta \mathrm{FPR}|)

    Parameters
    ----------
    favourable, favourable_own, favourable_best
        :math:`p`, :math:`p(h_S)` and :math:`p(h_T)`: shares of label +1 on the source and
        after deploying either rule.
    rate_change_positive, rate_change_negative
        Differences of the two rules' TPR and FPR on the source.
    """
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
    r"""Bound what any rule loses against any other under target shift.

    With :math:`a = 1 - \mathrm{TPR} - \mathrm{FPR}` the loss is exactly
    :math:`\mathrm{Err}_S(h_S) - \mathrm{Err}_S(h_T) + (p_S - p)\,a_S + (p - p_T)\,a_T`, at most

    .. math:: \mathrm{Err}_S(h_S) - \mathrm{Err}_S(h_T) + \min\bigl\{
        &|p_S - p_T|\,|a_S| + |p - p_T|\,|a_S - a_T|, \\
        &|p_S - p_T|\,|a_T| + |p - p_S|\,|a_S - a_T| \bigr\} .

    Where :math:`h_S` is optimal on the source it is never above `theorem_5_1`.

    Parameters
    ----------
    favourable, favourable_own, favourable_best
        :math:`p`, :math:`p_S` and :math:`p_T`.
    rates_own, rates_best
        (TPR, FPR) of either rule on the source.
    """
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
    r"""Bound from below the larger of the errors before and after a target shift.

    .. math:: \max\{\mathrm{Err}_S(h), \mathrm{Err}_{D(h)}(h)\} \ge
        \tfrac12\,|p - p(h)|\,(1 - |\mathrm{TPR} - \mathrm{FPR}|)
    """
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
    r"""Bound how far two rules' induced label shares lie apart under replicator dynamics.

    .. math:: |p(h_S) - p(h_T)| \le \frac{p\,(|\Delta\mathrm{Err}| + |\Delta\mathrm{TPR}|)}
        {(1 - \mathrm{Err}_S(h_S))\,(1 - \mathrm{Err}_S(h_T))}

    for the fitness "accuracy in one's class", :math:`p(h) = p\,\mathrm{TPR}/(1-\mathrm{Err})`.
    (Printed with a product in the numerator, which is false.)
    """
    _check(
        favourable=favourable,
        error_own=error_own,
        error_best=error_best,
        true_positive_own=true_positive_own,
        true_positive_best=true_positive_best,
    )
    if np.any(np.asarray(error_own) >= 1.0) or np.any(np.asarray(error_best) >= 1.0):
        raise ParameterError("a rule that is always wrong leaves nobody fit; expected errors < 1")
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
