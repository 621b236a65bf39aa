r"""The best rule when only deployments can be watched (App. E.2).

A rule near the current one is deployed, its average loss is seen, and the loss times the
direction of the probe is an unbiased slope of the risk smoothed over a ball of radius
:math:`\delta`. The guarantee needs a convex induced risk; 0-1 loss of a threshold has none.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np

from countermove._types import Floats
from countermove.errors import ParameterError

Watch = Callable[[Floats, np.random.Generator], float]
"""Deploy a rule, return the average loss of the people it met."""

Method = Literal["one_point", "one_point_baseline", "two_point"]


@dataclass(frozen=True)
class BanditRun:
    """Where it ended: the rule, shape (d,), and how many rules were deployed on the way."""

    rule: Floats
    deployments: int


def bandit_descent(
    watch: Watch,
    start: Floats,
    rng: np.random.Generator,
    *,
    method: Method = "two_point",
    deployments: int = 20_000,
    step: float = 1e-3,
    probe: float = 0.3,
    radius: float = 5.0,
) -> BanditRun:
    r"""Descend on the losses of deployed rules.

    .. math:: \theta_{t+1} = \Pi_{(1-\delta)\Theta}(\theta_t - \eta g_t), \qquad
        g_t = \tfrac{d}{\delta}\,(\widehat R(\theta_t + \delta u_t) - b_t)\,u_t

    with :math:`u_t` uniform on the sphere and :math:`b_t = 0` (``one_point``) or the running
    mean of the losses seen before (``one_point_baseline``: the slope stays unbiased, its
    variance falls). ``two_point`` deploys :math:`\theta_t \pm \delta u_t` and uses
    :math:`\tfrac{d}{2\delta}` times the difference; it takes half as many steps.

    Parameters
    ----------
    watch
        Deploys a rule.
    start
        First rule, shape (d,), within the ball.
    deployments
        Rules deployed in all.
    step, probe
        :math:`\eta` and :math:`\delta`.
    radius
        Rules allowed: the ball :math:`\Theta` of this radius around 0.

    Raises
    ------
    ParameterError
        For an unknown method or a step, probe or radius that makes no sense.
    """
    if method not in get_args(Method):
        raise ParameterError(f"method is one of {', '.join(get_args(Method))}; got {method!r}")
    if not (step > 0.0 and 0.0 < probe < 1.0 and radius > 0.0 and deployments >= 2):
        raise ParameterError(
            "expected step > 0, probe in (0, 1), radius > 0 and at least 2 deployments, got "
            f"{step}, {probe}, {radius} and {deployments}"
        )
    rule = np.asarray(start, np.float64).copy()
    inner = (1.0 - probe) * radius
    per_step = 2 if method == "two_point" else 1
    mean = 0.0
    for seen in range(deployments // per_step):
        direction = rng.normal(size=rule.shape)
        direction /= np.linalg.norm(direction)
        loss = watch(rule + probe * direction, rng)
        if per_step == 2:
            excess = 0.5 * (loss - watch(rule - probe * direction, rng))
        else:
            excess = loss - mean
            if method == "one_point_baseline":
                mean += (loss - mean) / (seen + 1)
        rule = rule - step * (len(rule) / probe) * excess * direction
        length = float(np.linalg.norm(rule))
        if length > inner:
            rule *= inner / length
    return BanditRun(rule, deployments // per_step * per_step)
