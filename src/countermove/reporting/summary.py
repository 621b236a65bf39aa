"""The decision summary: what a committee asks first, each number with its interval and its n.

``summary.json`` holds it for machines; the page's first section and the terminal show the same.
Everything about people is counted from ``decisions.parquet``, so that anybody can count again.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import numpy as np

from countermove._types import Floats, Mask
from countermove.data.schema import GROUP_PREFIX, Schema
from countermove.errors import DataError
from countermove.learning.decisions import AFTER, BEFORE, SCORE_AFTER
from countermove.reporting._estimates import (
    Estimate,
    auc_difference,
    auc_estimate,
    mean_estimate,
    paired_difference,
    ratio_estimate,
    share_estimate,
)
from countermove.reporting._summary_words import (
    PUBLISHED,
    future_lines,
    headline,
    verdicts,
    would_change,
)
from countermove.scores.base import values

if TYPE_CHECKING:
    import pandas as pd

    from countermove.scores.storage import PublishedModel

Facts = Mapping[str, Any]

POINTS = 20.0 / math.log(2.0)
"""Points per unit of log-odds: 20 points double the odds."""


@dataclass(frozen=True)
class _Judged:
    """The decisions of a run, and how sure intervals are."""

    table: pd.DataFrame
    failure_probability: float

    @property
    def favourable(self) -> Mask:
        """Whose label is favourable."""
        return self.table["label"].to_numpy() > 0

    def column(self, rule: str, name: str) -> Floats:
        """Return a column of a rule as numbers."""
        full = name if rule == PUBLISHED else f"{rule}.{name}"
        return self.table[full].to_numpy(dtype=np.float64)

    def right(self, rule: str, when: str) -> Floats:
        """Return everybody's chance of a right decision by a rule."""
        chance = self.column(rule, when)
        return np.where(self.favourable, chance, 1.0 - chance)


def decision_summary(
    decisions: pd.DataFrame,
    model: PublishedModel,
    schema: Schema,
    metrics: Facts,
    calibration: Facts,
    certificates: Sequence[Facts],
    move_map: Facts | None,
    future: Facts | None = None,
    failure_probability: float = 0.05,
) -> dict[str, Any]:
    """Return what a committee asks first about a run.

    Parameters
    ----------
    decisions
        See `countermove.learning.decisions.judged_decisions`.
    model
        The published rule at its threshold.
    schema
        What its columns mean.
    metrics, calibration, certificates, move_map, future
        What the run found, as in its JSON files.
    failure_probability
        Chance that an interval misses, each on its own.

    Returns
    -------
    dict
        JSON-ready: ``headline``, ``rule`` (scorecard), ``approval``, ``rules`` (accuracy and
        AUC beside the others'), ``outcomes``, ``groups``, ``promise``, ``would_change``,
        ``lines`` (holds, does not hold, not shown, not tested) and ``identity``.
    """
    if AFTER not in decisions:
        raise DataError(
            "the decisions of this table lack the columns of a summary; an earlier version wrote "
            "them: run kedro run --pipeline=recourse, then --pipeline=evaluation and this again"
        )
    judged = _Judged(decisions, failure_probability)
    rules = _rules(judged, metrics)
    groups = _groups(judged)
    promise = _promise(judged, calibration)
    return {
        "dataset": schema.name,
        "level": 1.0 - failure_probability,
        "headline": headline(rules, metrics),
        "rule": _scorecard(model, schema),
        "approval": {
            when: share_estimate(judged.column(PUBLISHED, when), failure_probability)
            for when in (BEFORE, AFTER)
        },
        "rules": rules,
        "outcomes": _outcomes(judged),
        "groups": groups,
        "promise": promise,
        "would_change": would_change(metrics, move_map),
        "future": None if future is None else future["words"],
        "lines": [
            *verdicts(rules, groups, metrics, calibration, certificates),
            *future_lines(future),
        ],
        "identity": {
            "data_hash": metrics["data_hash"],
            "schema_digest": model.schema_digest,
            "version": metrics["versions"]["countermove"],
            "seed": metrics["seed"],
            "date": datetime.now(UTC).date().isoformat(),
        },
    }


def _scorecard(model: PublishedModel, schema: Schema) -> dict[str, Any]:
    """Return the rule's points per column in original units, the weightiest first."""
    about = {"kind": model.score.kind, "threshold": model.threshold}
    slope, linear = model.rule.slope(), model.rule.linear_columns()
    if slope is None or linear is None or len(linear) < len(schema.feature_names):
        return about | {"points": None, "base": None}
    scale, mean = model.standardiser.scale, model.standardiser.mean
    per_deviation = POINTS * model.probability_slope * slope.detach().numpy()
    base = (
        POINTS * model.probability_slope * float(values(model.rule, np.zeros((1, len(scale))))[0])
    )
    base -= float(per_deviation @ (mean / scale))
    columns = schema.model_features()
    points: list[dict[str, Any]] = [
        {
            "column": column.name,
            "unit": schema.feature(column.source).unit,
            "per_unit": float(per_deviation[j] / scale[j]),
            "per_deviation": float(per_deviation[j]),
            "deviation": float(scale[j]),
        }
        for j, column in enumerate(columns)
    ]
    points.sort(key=lambda entry: -abs(entry["per_deviation"]))
    return about | {"points": points, "base": base}


def _rules(judged: _Judged, metrics: Facts) -> dict[str, Any]:
    """Return accuracy and AUC of the published rule and of those it is compared with."""
    choice = metrics.get("choice") or {}
    wanted = dict.fromkeys(["blind", "majority", "logistic", choice.get("best_simple")])
    known = [name for name in wanted if name and f"{name}.{AFTER}" in judged.table]
    return {name: _rule(judged, name) for name in (PUBLISHED, *known)}


def _rule(judged: _Judged, name: str) -> dict[str, Any]:
    miss, favourable = judged.failure_probability, judged.favourable
    after, own = judged.column(name, SCORE_AFTER), judged.column(PUBLISHED, SCORE_AFTER)
    found = {
        "before": share_estimate(judged.right(name, BEFORE), miss),
        "after": share_estimate(judged.right(name, AFTER), miss),
        "auc": auc_estimate(after, favourable, miss),
        "gain": None,
        "auc_gain": None,
    }
    if name != PUBLISHED:
        pair = judged.right(PUBLISHED, AFTER), judged.right(name, AFTER)
        found["gain"] = paired_difference(*pair, miss)
        found["auc_gain"] = auc_difference(own, after, favourable, miss)
    return found


def _outcomes(judged: _Judged) -> dict[str, Estimate]:
    """Return how many of the approved, and of the refused, have a favourable outcome."""
    approved = judged.column(PUBLISHED, AFTER)
    if np.isin(approved, (0.0, 1.0)).all():
        who = approved > 0.0
        return {
            name: share_estimate(judged.favourable[chosen], judged.failure_probability)
            for name, chosen in (("approved", who), ("refused", ~who))
        }
    # People who differ are approved by chance: each counts with it, and n is the expected number.
    found = {}
    for name, chance in (("approved", approved), ("refused", 1.0 - approved)):
        n = float(chance.sum())
        value = float(chance @ judged.favourable) / n if n else None
        found[name] = {"value": value, "low": None, "high": None, "n": round(n)}
    return found


def _groups(judged: _Judged) -> dict[str, list[dict[str, Any]]]:
    """Return approval, error and burden by the values of each sensitive column."""
    columns = [name for name in judged.table if str(name).startswith(GROUP_PREFIX)]
    return {str(name).removeprefix(GROUP_PREFIX): _by_value(judged, str(name)) for name in columns}


def _by_value(judged: _Judged, column: str) -> list[dict[str, Any]]:
    miss, labels = judged.failure_probability, judged.table[column].astype(str).to_numpy()
    approved, right = judged.column(PUBLISHED, AFTER), judged.right(PUBLISHED, AFTER)
    price = judged.table["price"].to_numpy(dtype=np.float64)
    masks = {value: labels == value for value in sorted(set(labels))}
    most = max(masks.values(), key=lambda who: float(approved[who].mean()))
    return [
        {
            "group": value,
            "n": int(who.sum()),
            "approval": share_estimate(approved[who], miss),
            "ratio": None if who is most else ratio_estimate(approved[who], approved[most], miss),
            "error": share_estimate(1.0 - right[who], miss),
            "burden": mean_estimate(price[who & judged.favourable & np.isfinite(price)], miss),
        }
        for value, who in masks.items()
    ]


def _promise(judged: _Judged, calibration: Facts) -> dict[str, Any]:
    """Return what is promised about recourse, and the accuracy it costs."""
    claim = calibration["certificate"]
    cost = paired_difference(
        judged.right("before_promise", AFTER), judged.right(PUBLISHED, AFTER),
        judged.failure_probability,
    )  # fmt: skip
    return {
        "words": claim["words"],
        "level": claim["level"],
        "n": claim["n"],
        "applicable": claim["value"] is not None,
        "assumptions": [one["statement"] for one in claim["assumptions"]],
        "cost": cost,
    }
