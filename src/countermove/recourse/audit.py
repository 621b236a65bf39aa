"""What a rule's recourse is worth: rates, cost, groups, robustness, plausibility.

Nothing is taken on trust: every claimed action is applied and judged again on the rule,
and checked against the allowed actions.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from countermove._types import Floats, Mask
from countermove.errors import DataError
from countermove.people import ActionSet, Cost, QuadraticCost
from countermove.randomness import generator
from countermove.recourse.audit_robustness import (
    Brittleness,
    TwoSampleTest,
    brittleness,
    in_distribution,
)
from countermove.recourse.audit_shares import (
    GroupRecourse,
    ShareInterval,
    recourse_by_group,
    share,
)
from countermove.recourse.performance import Performance, approves, performance, scores_of
from countermove.recourse.problem import known_actions, probability_slope
from countermove.scores import Score
from countermove.scores.base import score_of
from countermove.training._labels import refuse_weights
from countermove.training.units import RowUnits, standardised_model

__all__ = [
    "RecourseAudit",
    "RecourseSummary",
    "audit",
    "audited_groups",
    "in_distribution",
    "robust_actions",
    "verified_costs",
]


class AdviceLike(Protocol):
    """What the audit reads of advice: actions (NaN where none) and statuses, per person."""

    @property
    def action(self) -> Floats: ...
    @property
    def status(self) -> NDArray[Any]: ...


@dataclass(frozen=True)
class RecourseSummary:
    """How many people have recourse, and what it asks of them.

    Parameters
    ----------
    people, refused
        How many were judged, and refused.
    recourse_neg, recourse_all
        Verified recourse among the refused, whatever it costs; approved or verified among all.
    within_ceiling
        Verified recourse among the refused that costs no more than the ceiling advised with.
    statuses
        People per status, as advised.
    broken_claims
        Rows advised FOUND or BEYOND_REACH whose action the rule does not approve.
    outside
        Rows whose action is not allowed; None when no actions were given.
    mean_cost, median_cost
        Over verified recourse, in units of the cost; None when there is none.
    rounding_cost
        Median and mean share by which rounding the amounts made verified actions more
        expensive; None when nothing was rounded.
    features_touched
        Mean number of features a verified action changes, a one-hot group once if the
        advice counts so; None when there is none.
    touched
        Share of verified actions that change each feature.
    """

    people: int
    refused: int
    recourse_neg: ShareInterval
    recourse_all: ShareInterval
    within_ceiling: ShareInterval
    statuses: dict[str, int]
    broken_claims: tuple[int, ...]
    outside: tuple[int, ...] | None
    mean_cost: float | None
    median_cost: float | None
    rounding_cost: dict[str, float] | None
    features_touched: float | None
    touched: dict[str, float]


@dataclass(frozen=True)
class RecourseAudit:
    """The audit of one rule and one set of advice.

    ``robust_actions`` is the share of verified actions that still work when
    :math:`N(0, sd^2)` is added to every actionable feature of the action, one draw each.
    """

    threshold: float
    performance: Performance
    recourse: RecourseSummary
    groups: tuple[GroupRecourse, ...]
    robust_actions: ShareInterval
    noise_sd: float
    brittleness: Brittleness
    in_distribution: tuple[TwoSampleTest, ...]

    def to_json(self) -> dict[str, Any]:
        """Return a JSON-ready description, as stored in ``recourse_audit.json``."""
        return asdict(self)


def audit(
    model: Any,
    X: Floats,
    y: NDArray[Any],
    advice: AdviceLike,
    *,
    threshold: float = 0.5,
    groups: NDArray[Any] | None = None,
    reference: str | None = None,
    actions: ActionSet | None = None,
    cost: Cost | None = None,
    real: Floats | None = None,
    features: tuple[str, ...] | None = None,
    noise_sd: float = 0.1,
    radius: float = 0.1,
    level: float = 0.95,
    seed: int = 0,
    sample_weight: None = None,
) -> RecourseAudit:
    """Audit advice given on a rule.

    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> X, y = X[50:], y[50:]
    >>> from countermove import ActionSet, StrategicClassifier, audit, recommend
    >>> rule = StrategicClassifier(response="none").fit(X, y)
    >>> advice = recommend(rule, X, actions=ActionSet(immutable=[0]))
    >>> bool(audit(rule, X, y, advice).recourse.refused == (rule.predict(X) == 1).sum())
    True

    Parameters
    ----------
    model
        A fitted classifier or a `Score`.
    X, y
        Held-out people, shape (n, d), in the units the model reads; labels of the classifier,
        or positive for favourable.
    advice
        ``action`` of shape (n, d), in the units of ``X``, NaN where none is known, and
        ``status`` of shape (n,).
        Where there is an ``effect`` it is what changes in all, and where there is an
        ``n_changed`` it counts the features touched.
    threshold
        Probability that is favourable.
    groups, reference
        Group of each person, and the one to compare with (None: the largest).
    actions
        What is allowed; None: the model's own. Noise touches movable features.
    cost
        Prices the actions; None: their squared length.
    real
        Rows real people are taken from (training rows); None: ``X``.
    features
        Their names.
    noise_sd, radius
        Of the noise, and the longest DeepFool change that counts as small; standardised units.
    level
        Of every interval on its own.
    seed
        Decides every draw.
    sample_weight
        Refused: intervals count people who were drawn alike.
    """
    refuse_weights(sample_weight, "audit")
    model, units = standardised_model(model)
    X, real = (
        units.rows(np.asarray(rows, np.float64)) for rows in (X, X if real is None else real)
    )
    advice, cost = _standardised(advice, units), units.cost(cost)
    rule = _rule(model, threshold)
    allowed = known_actions(model, units.actions(actions))
    judged = _JudgedAdvice(rule, X, advice)
    columns = _movable(allowed, judged.action)
    paid = judged.paid(X, cost)
    by_group: tuple[GroupRecourse, ...] = ()
    if groups is not None:
        labels = np.asarray(groups)
        by_group = recourse_by_group(
            labels, judged.refused, judged.verified, paid, reference=reference, level=level
        )
    return RecourseAudit(
        threshold=threshold,
        performance=performance(scores_of(rule, X), _favourable(model, np.asarray(y))),
        recourse=_summary(judged, paid, _outside(allowed, X, judged.action), features, level),
        groups=by_group,
        robust_actions=_robust(rule, judged.after[judged.verified], columns, noise_sd, level, seed),
        noise_sd=noise_sd,
        brittleness=brittleness(
            rule, X, columns, real, sd=noise_sd, radius=radius, level=level, seed=seed
        ),
        in_distribution=in_distribution(
            judged.after[judged.verified], real[approves(rule, real)], level=level, seed=seed
        ),
    )


def audited_groups(
    model: Any,
    X: Floats,
    advice: AdviceLike,
    threshold: float,
    cost: Cost | None,
    groupings: Mapping[str, NDArray[Any]],
    references: Mapping[str, str],
) -> dict[str, tuple[GroupRecourse, ...]]:
    """Return recourse by group as in `audit`, for several groupings by name.

    A reference of which nobody is there is replaced by the largest group.
    """
    model, units = standardised_model(model)
    X = units.rows(X)
    judged = _JudgedAdvice(_rule(model, threshold), X, _standardised(advice, units))
    paid = judged.paid(X, units.cost(cost))
    return {
        name: recourse_by_group(
            groups,
            judged.refused,
            judged.verified,
            paid,
            reference=references.get(name) if references.get(name) in groups.astype(str) else None,
        )
        for name, groups in groupings.items()
    }


def verified_costs(
    model: Any, X: Floats, advice: AdviceLike, threshold: float, cost: Cost | None
) -> tuple[Mask, Floats]:
    """Return who is refused, and what each verified action costs (NaN where there is none)."""
    model, units = standardised_model(model)
    X = units.rows(X)
    judged = _JudgedAdvice(_rule(model, threshold), X, _standardised(advice, units))
    return judged.refused, judged.paid(X, units.cost(cost))


def robust_actions(
    model: Any,
    X: Floats,
    action: Floats,
    *,
    threshold: float = 0.5,
    noise_sd: float = 0.1,
    level: float = 0.95,
    seed: int = 0,
) -> ShareInterval:
    """Return the share of actions (NaN fails) that still lead to approval with noise on them."""
    model, units = standardised_model(model)
    columns = _movable(known_actions(model, None), action)
    after = units.rows(np.where(np.isfinite(action), X + action, X))
    return _robust(_rule(model, threshold), after, columns, noise_sd, level, seed)


@dataclass(frozen=True)
class _StandardisedAdvice:
    """Advice as the audit reads it, on standardised rows."""

    action: Floats
    status: NDArray[Any]
    effect: Floats | None
    n_changed: Any


def _standardised(advice: AdviceLike, units: RowUnits) -> AdviceLike:
    """Return advice given on rows in some units as advice on standardised rows."""
    unit = units.standardiser
    if unit is None:
        return advice
    effect = getattr(advice, "effect", None)
    return _StandardisedAdvice(
        unit.action_to_standard(advice.action),
        advice.status,
        None if effect is None else unit.action_to_standard(effect),
        getattr(advice, "n_changed", None),
    )


class _JudgedAdvice:
    """What the rule says of people before and after the advice."""

    def __init__(self, rule: Score, X: Floats, advice: AdviceLike) -> None:
        self.rule, self.status = rule, np.asarray(advice.status).astype(str)
        self.action = np.asarray(advice.action, np.float64)
        if self.action.shape != X.shape or self.status.shape != X.shape[:1]:
            raise DataError(
                f"{X.shape[0]} people of {X.shape[1]} features need actions of that shape and one "
                f"status each, got {self.action.shape} and {self.status.shape}"
            )
        effect = getattr(advice, "effect", None)
        self.after: Floats = X + (self.action if effect is None else effect)
        # A search that knows its one-hot groups counts each of them once.
        count = getattr(advice, "n_changed", None)
        self.n_changed = (self.action != 0.0).sum(axis=1) if count is None else np.asarray(count)
        # What the search had found, margins and preferred causes included.
        self.unrounded_cost: Floats | None = getattr(advice, "unrounded_cost", None)
        self.refused: Mask = ~approves(rule, X)
        claimed = np.isin(self.status, ("FOUND", "BEYOND_REACH"))
        works = claimed & np.all(np.isfinite(self.after), axis=1)
        works[works] = approves(rule, self.after[works])
        self.verified: Mask = works & self.refused
        self.broken: Mask = claimed & ~works

    def paid(self, X: Floats, cost: Cost | None) -> Floats:
        """Return the price of every verified action, NaN where there is none."""
        price = QuadraticCost() if cost is None else cost
        paid = np.full(len(X), np.nan)
        who = self.verified
        paid[who] = price.price(X[who], X[who] + self.action[who])
        return paid


def _summary(
    judged: _JudgedAdvice,
    paid: Floats,
    outside: tuple[int, ...] | None,
    features: tuple[str, ...] | None,
    level: float,
) -> RecourseSummary:
    refused, verified = judged.refused, judged.verified
    changed = judged.action[verified] != 0.0
    names = features or tuple(f"x{j}" for j in range(changed.shape[1]))
    if len(names) != changed.shape[1]:
        raise DataError(f"{changed.shape[1]} features have {len(names)} names")
    any_paid = bool(verified.any())
    statuses, counts = np.unique(judged.status, return_counts=True)
    return RecourseSummary(
        people=len(refused),
        refused=int(refused.sum()),
        recourse_neg=share(verified[refused], level),
        recourse_all=share(~refused | verified, level),
        within_ceiling=share((verified & (judged.status == "FOUND"))[refused], level),
        statuses=dict(zip(statuses.tolist(), counts.tolist(), strict=True)),
        broken_claims=tuple(np.flatnonzero(judged.broken).tolist()),
        outside=outside,
        mean_cost=float(paid[verified].mean()) if any_paid else None,
        median_cost=float(np.median(paid[verified])) if any_paid else None,
        rounding_cost=_extra_cost(judged.unrounded_cost, paid, verified),
        features_touched=float(judged.n_changed[verified].mean()) if any_paid else None,
        touched=dict(zip(names, changed.mean(axis=0).tolist(), strict=True)) if any_paid else {},
    )


def _extra_cost(least: Floats | None, paid: Floats, verified: Mask) -> dict[str, float] | None:
    """Return by which share people pay more than the search had found."""
    if least is None:
        return None
    who = verified & (least > 0.0)
    more = paid[who] / least[who] - 1.0
    if not who.any() or (np.abs(more) <= 1e-9).all():
        return None
    return {"median": float(np.median(more)), "mean": float(more.mean())}


def _robust(
    rule: Score, after: Floats, columns: Mask, sd: float, level: float, seed: int
) -> ShareInterval:
    noise = generator(seed, "noisy actions").standard_normal(after.shape)
    return share(approves(rule, after + sd * noise * columns), level)


def _rule(model: Any, threshold: float) -> Score:
    return score_of(model).at_threshold(threshold, probability_slope(model)).eval()


def _outside(actions: ActionSet | None, X: Floats, action: Floats) -> tuple[int, ...] | None:
    if actions is None:
        return None
    known: Mask = np.all(np.isfinite(action), axis=1)
    # NaN is inside nothing; those without an action make no claim.
    inside = actions.contains(X, np.where(known[:, None], action, 0.0))
    return tuple(np.flatnonzero(known & ~inside).tolist())


def _movable(actions: ActionSet | None, action: Floats) -> Mask:
    if actions is None:
        touched: Mask = np.any(np.nan_to_num(action) != 0.0, axis=0)
        return touched
    d = action.shape[1]
    limits = actions.bounds(len(action), d)
    free: Mask = actions.movable_among(d) & np.any(limits.lower < limits.upper, axis=0)
    return free


def _favourable(model: Any, y: NDArray[Any]) -> Mask:
    wanted = getattr(model, "favourable_", None)
    favourable: Mask = np.asarray(y > 0 if wanted is None else y == wanted, bool)
    return favourable
