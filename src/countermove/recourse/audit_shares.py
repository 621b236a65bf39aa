"""Parts of an audit: by group, reasons and causes as declared, advice that outlasts refits."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from countermove._types import Floats, Mask
from countermove.certificates.intervals import share_interval
from countermove.data.schema import CAUSES, Schema
from countermove.errors import DataError, ParameterError, shown
from countermove.recourse.lasting import NONE_KEPT
from countermove.recourse.reasons import Reasons
from countermove.recourse.recommend import BEYOND_REACH, FOUND, Advice


@dataclass(frozen=True)
class ShareInterval:
    """``count`` of ``n`` people, and Clopper and Pearson's interval of the true share."""

    count: int
    n: int
    value: float | None  # None when nobody counts
    low: float
    high: float
    level: float  # the least coverage, over independent draws of people


@dataclass(frozen=True)
class Contrast:
    """A share minus, and over, the share of a reference, with intervals; None where unknown."""

    difference: float | None
    difference_low: float
    difference_high: float
    ratio: float | None
    ratio_low: float
    ratio_high: float | None
    level: float


def share(among: Mask, level: float = 0.95) -> ShareInterval:
    """Return the share of True with its exact binomial interval."""
    return share_of(int(np.count_nonzero(among)), len(among), level)


def share_of(count: int, n: int, level: float = 0.95) -> ShareInterval:
    """Return ``count / n`` with its exact binomial interval."""
    if not 0.0 < level < 1.0:
        raise ParameterError(f"level must lie strictly between 0 and 1, got {level!r}")
    if n == 0:
        return ShareInterval(0, 0, None, 0.0, 1.0, level)
    low, high = share_interval(count, n, 1.0 - level)
    return ShareInterval(count, n, count / n, float(low), float(high), level)


def contrast(one: ShareInterval, reference: ShareInterval) -> Contrast:
    """Return how the share of one group differs from that of a reference group."""
    # The groups are independent: both shares lie in their intervals of level sqrt(level) at once
    # with probability level, and difference and ratio follow from them.
    part = one.level**0.5
    a, b = (share_of(s.count, s.n, part) for s in (one, reference))
    known = a.value is not None and b.value is not None
    value, base = a.value or 0.0, b.value or 0.0
    return Contrast(
        difference=value - base if known else None,
        difference_low=a.low - b.high,
        difference_high=a.high - b.low,
        ratio=value / base if known and base > 0.0 else None,
        ratio_low=a.low / b.high if b.high > 0.0 else 0.0,
        ratio_high=a.high / b.low if b.low > 0.0 else None,
        level=one.level,
    )


@dataclass(frozen=True)
class GroupRecourse:
    """Recourse of one group, and how it differs from the reference group (None: it is that)."""

    group: str
    people: int
    refused: int
    recourse_neg: ShareInterval  # over the group's refused
    recourse_all: ShareInterval  # over the whole group, the approved included
    mean_cost: float | None  # over those with recourse
    disparity_neg: Contrast | None = None
    disparity_all: Contrast | None = None


def recourse_by_group(
    groups: NDArray[np.generic],
    refused: Mask,
    has_recourse: Mask,
    cost: Floats,
    *,
    reference: str | None = None,
    level: float = 0.95,
) -> tuple[GroupRecourse, ...]:
    """Return one entry per group, by name."""
    if groups.shape != refused.shape:
        raise DataError(f"{len(refused)} people need as many groups, got shape {groups.shape}")
    named = groups.astype(str)
    names, sizes = np.unique(named, return_counts=True)
    base = str(names[np.argmax(sizes)]) if reference is None else str(reference)
    if base not in names:
        raise ParameterError(f"no person is of the reference group {base!r}: {shown(names)}")
    found = {
        str(name): _one_group(str(name), named == name, refused, has_recourse, cost, level)
        for name in names
    }
    return tuple(_compared(entry, found[base]) for entry in found.values())


def _one_group(
    name: str, members: Mask, refused: Mask, has_recourse: Mask, cost: Floats, level: float
) -> GroupRecourse:
    paid = cost[members & has_recourse]
    return GroupRecourse(
        group=name,
        people=int(members.sum()),
        refused=int((members & refused).sum()),
        recourse_neg=share(has_recourse[members & refused], level),
        recourse_all=share((~refused | has_recourse)[members], level),
        mean_cost=float(paid.mean()) if paid.size else None,
    )


def _compared(entry: GroupRecourse, base: GroupRecourse) -> GroupRecourse:
    if entry.group == base.group:
        return entry
    return replace(
        entry,
        disparity_neg=contrast(entry.recourse_neg, base.recourse_neg),
        disparity_all=contrast(entry.recourse_all, base.recourse_all),
    )


def without_intervals(facts: Any) -> Any:
    """Return JSON-ready facts with every interval, its level and p-values left open.

    They count rows; where rows of one cluster belong together they would promise too much.
    """
    if isinstance(facts, list | tuple):
        return [without_intervals(one) for one in facts]
    if not isinstance(facts, dict):
        return facts
    open_ended = ("level", "low", "high") if "level" in facts else ()
    return {
        name: None
        if name.startswith("p_") or (open_ended and name.endswith(open_ended))
        else without_intervals(one)
        for name, one in facts.items()
    }


def reasons_audit(reasons: Reasons | None, schema: Schema) -> dict[str, Any]:
    """Return how often each feature is a reason, and an error for every sensitive one."""
    if reasons is None:
        return {}
    people = int((reasons.order >= 0).any(axis=1).sum())
    sensitive = reasons.sensitive(schema)
    about = {"people": people, "counts": reasons.counts(), "sensitive": sensitive}
    return {"reasons": about, "errors": sensitive_errors(sensitive, people, "of this rule")}


def sensitive_errors(sensitive: dict[str, int], people: int, whose: str) -> list[str]:
    """Return one sentence per declared sensitive column that is a reason."""
    return [
        f"column {column!r} is declared sensitive and is a main reason for {count} of {people} "
        f"refused people {whose}: take it out of `features:`, or out of `sensitive:` if a refusal "
        "may rest on it"
        for column, count in sensitive.items()
    ]


def not_causal(schema: Schema) -> list[int]:
    """Return the model columns that the schema declares not to cause the outcome."""
    columns = enumerate(schema.model_features())
    return [j for j, column in columns if schema.feature(column.source).causal == "no"]


def causal_audit(advice: Advice, schema: Schema) -> dict[str, Any]:
    """Return what share of advice only games, and what leaving that out cost; if declared."""
    declared = {
        cause: [feature.name for feature in schema.features if feature.causal == cause]
        for cause in CAUSES
    }
    if not any(declared.values()):
        return {}
    advised = np.isin(advice.status, (FOUND, BEYOND_REACH))
    changed = np.nan_to_num(advice.action[advised]) != 0.0
    games = np.isin(np.arange(changed.shape[1]), not_causal(schema))
    only: Mask = changed.any(axis=1) & ~changed[:, ~games].any(axis=1)
    extra = advice.causal_extra[advice.causal_extra > 0.0]
    about = {
        "declared": declared,
        "advised": int(advised.sum()),
        # Where nothing is declared not to cause the outcome, nothing is said about gaming.
        "only_games": asdict(share(only)) if declared["no"] and len(only) else None,
        "extra_cost": {
            "people": len(extra),
            "mean": float(extra.mean()) if len(extra) else None,
            "median": float(np.median(extra)) if len(extra) else None,
        },
    }
    return {"causal": about}


def lasting_audit(advice: Advice, confidence: float | None, known: bool) -> dict[str, Any]:
    """Return how much advice outlasts a refit, and what that costs beside the cheapest action."""
    # `known` says whether the rule knows its covariance; nothing else is said without it.
    given = advice.status == FOUND
    facts: dict[str, Any] = {
        "confidence": confidence,
        "reason": None if known else NONE_KEPT,
        "advised": int(given.sum()),
        "lasting": None,
        "median_survival": None,
        "median_survival_without": None,
        "median_cost_ratio": None,
        "uncertain_weight": None,
    }
    if not known or not given.any():
        return facts
    facts |= {
        "median_survival": float(np.median(advice.survival[given])),
        "uncertain_weight": asdict(share(advice.uncertain_weight[given])),
    }
    if confidence is None:
        return facts
    lasts = given & advice.lasting
    ratio = 1.0 + advice.lasting_extra[lasts] / advice.least_cost[lasts]
    return facts | {
        "lasting": asdict(share(advice.lasting[given])),
        "median_survival_without": float(np.median(advice.survival_without[given])),
        "median_cost_ratio": float(np.median(ratio)) if ratio.size else None,
    }
