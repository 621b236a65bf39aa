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
from countermove.data.schema import CLUSTER_PREFIX, GROUP_PREFIX, Schema
from countermove.learning.decisions import AFTER, BEFORE, SCORE_AFTER, check_judged
from countermove.reporting._summary_words import (
    BEST_SIMPLE,
    PUBLISHED,
    future_lines,
    headline,
    untested,
    verdicts,
    would_change,
)
from countermove.reporting.conclusion import conclude
from countermove.reporting.estimates import (
    SMALLEST_GROUP,
    Clusters,
    Estimate,
    auc_difference,
    auc_estimate,
    mean_estimate,
    paired_difference,
    ratio_estimate,
    share_estimate,
)
from countermove.response.base import GAIN
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

    @property
    def clusters(self) -> Clusters:
        """Whose rows belong together; None where rows are independent."""
        names = [name for name in self.table if str(name).startswith(CLUSTER_PREFIX)]
        return self.table[names[0]].to_numpy() if names else None

    def share(self, hit: Floats | Mask, who: Mask | slice = slice(None)) -> Estimate:
        """Return the share of some people for whom something holds."""
        return share_estimate(hit[who], self.failure_probability, _of(self.clusters, who))

    def column(self, rule: str, name: str) -> Floats:
        """Return a column of a rule as numbers."""
        full = name if rule == PUBLISHED else f"{rule}.{name}"
        return self.table[full].to_numpy(dtype=np.float64)

    def knows(self, rule: str) -> bool:
        """Return whether the decisions of a rule are there."""
        return rule == PUBLISHED or f"{rule}.{AFTER}" in self.table

    @property
    def anybody_moved(self) -> bool:
        """Whether the published rule decides about anybody otherwise once people respond."""
        before, after = (self.column(PUBLISHED, when) for when in (BEFORE, AFTER))
        return bool((before != after).any())

    def right(self, rule: str, when: str) -> Floats:
        """Return everybody's chance of a right decision by a rule."""
        chance = self.column(rule, when)
        return np.where(self.favourable, chance, 1.0 - chance)


def _of(clusters: Clusters, who: Mask | slice) -> Clusters:
    return None if clusters is None else clusters[who]


def decision_summary(
    decisions: pd.DataFrame,
    model: PublishedModel,
    schema: Schema,
    metrics: Facts,
    calibration: Facts,
    certificates: Sequence[Facts],
    move_map: Facts | None,
    future: Facts | None = None,
    transfer: Facts | None = None,
    sheet: Facts | None = None,
    regret: Facts | None = None,
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
    metrics, calibration, certificates, move_map, future, transfer, sheet, regret
        What the run found, as in its JSON files.
    failure_probability
        Chance that an interval misses, each on its own.

    Returns
    -------
    dict
        JSON-ready: ``conclusion`` (the decision and its reasons), ``people`` (who they may be),
        ``regret`` (by rule and member), ``headline``, ``rule`` (scorecard), ``approval_rate``,
        ``accuracy`` and ``auc`` of the published rule (``strategic``) and of others,
        ``difference`` (paired, against the best simple rule), ``differences`` (against each),
        ``favourable_rate``, ``groups``, ``promise``, ``would_change``, ``retraining``,
        ``collective_threat``, ``deployment``, ``verdict`` (holds, does not hold, not shown, not
        tested, holds if people respond as assumed) and
        ``identity``.
    """
    check_judged(decisions)
    judged = _Judged(decisions, failure_probability)
    compared = _compared(judged, metrics)
    groups = _groups(judged, dict(schema.references))
    promise = _promise(judged, calibration)
    expected = future or {}
    people = None if regret is None else regret["people"]
    verdict = verdicts(compared, groups, promise, metrics, certificates, sheet, people)
    concluded = None
    if regret is not None:
        concluded = conclude(regret, verdict, promise, bool(metrics.get("adopted")))
    return {
        "dataset": schema.name,
        "level": 1.0 - failure_probability,
        "conclusion": concluded,
        "people": people,
        "regret": None if regret is None else regret["rules"],
        "headline": headline(compared, promise, metrics, moved=judged.anybody_moved),
        "rule": _scorecard(model, schema),
        "approval_rate": judged.share(judged.column(PUBLISHED, AFTER)),
        "approval_rate_nobody_moves": judged.share(judged.column(PUBLISHED, BEFORE)),
        **compared,
        "favourable_rate": _favourable_rate(judged),
        "groups": groups,
        "promise": promise,
        "would_change": would_change(metrics, move_map),
        "retraining": expected.get("retraining"),
        "collective_threat": expected.get("collective_threat"),
        "deployment": None if transfer is None else transfer["verdict"],
        "verdict": [*verdict, *untested(future_lines(future), people)],
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
            # A level of a column, or that it has no value, is so or is not.
            "unit": schema.feature(column.source).unit if column.name == column.source else None,
            "per_unit": float(per_deviation[j] / scale[j]),
            "per_deviation": float(per_deviation[j]),
            "deviation": float(scale[j]),
        }
        for j, column in enumerate(columns)
    ]
    points.sort(key=lambda entry: -abs(entry["per_deviation"]))
    return about | {"points": points, "base": base}


def _compared(judged: _Judged, metrics: Facts) -> dict[str, Any]:
    """Return accuracy and AUC of the published rule and of others, and paired differences."""
    miss, favourable = judged.failure_probability, judged.favourable
    # Intervals of an AUC count rows: of clusters it is shown without one.
    counted = miss if judged.clusters is None else None
    best = _best_simple(judged, metrics)
    named = {PUBLISHED: PUBLISHED, "blind": "blind", "majority": "majority", "logistic": "logistic"}
    named |= {BEST_SIMPLE: best} if best else {}
    rules = {name: rule for name, rule in named.items() if judged.knows(rule)}
    scores = {name: judged.column(rule, SCORE_AFTER) for name, rule in rules.items()}
    right = {name: judged.right(rule, AFTER) for name, rule in rules.items()}
    before = {name: judged.right(rule, BEFORE) for name, rule in rules.items()}
    gains = {
        name: {
            "accuracy": paired_difference(right[PUBLISHED], right[name], miss, judged.clusters),
            "auc": auc_difference(scores[PUBLISHED], scores[name], favourable, counted),
        }
        for name in rules
        if name != PUBLISHED
    }
    return {
        "best_simple": best,
        "accuracy": {
            "after_response": {name: judged.share(hit) for name, hit in right.items()},
            "nobody_moves": {name: judged.share(hit) for name, hit in before.items()},
        },
        "auc": {name: auc_estimate(found, favourable, counted) for name, found in scores.items()},
        "difference": gains[BEST_SIMPLE]["accuracy"] if BEST_SIMPLE in gains else None,
        "differences": gains,
    }


def _best_simple(judged: _Judged, metrics: Facts) -> str | None:
    """Return the best simple rule whose decisions are known; None where nothing was chosen."""
    choice = metrics.get("choice")
    if choice is None:
        return None
    # Decisions of the same kind of score at its best threshold are kept only if it is published.
    if choice["best_simple"] != "blind":
        return str(choice["best_simple"])
    if choice["kept"] == "blind":
        return "before_promise"
    known = {
        name: found["cross_validated"]
        for name, found in metrics["accuracy"].get("baselines", {}).items()
        if name not in ("trained", "annealed") and judged.knows(name)
    }
    return max(known, key=lambda name: float(known[name]), default=None)


def _favourable_rate(judged: _Judged) -> dict[str, Estimate]:
    """Return how many of the approved, and of the refused, have a favourable outcome."""
    approved = judged.column(PUBLISHED, AFTER)
    if np.isin(approved, (0.0, 1.0)).all():
        who = approved > 0.0
        return {
            name: judged.share(judged.favourable, chosen)
            for name, chosen in (("approved", who), ("refused", ~who))
        }
    # People who differ are approved by chance: each counts with it, and n is the expected number.
    found = {}
    for name, chance in (("approved", approved), ("refused", 1.0 - approved)):
        n = float(chance.sum())
        value = float(chance @ judged.favourable) / n if n else None
        found[name] = {"value": value, "low": None, "high": None, "n": round(n)}
    return found


def _groups(judged: _Judged, references: Mapping[str, str]) -> dict[str, list[dict[str, Any]]]:
    """Return approval, error and burden by the values of each sensitive column."""
    columns = [str(name) for name in judged.table if str(name).startswith(GROUP_PREFIX)]
    names = [column.removeprefix(GROUP_PREFIX) for column in columns]
    return {name: _by_value(judged, name, references.get(name)) for name in names}


def _by_value(judged: _Judged, column: str, declared: str | None) -> list[dict[str, Any]]:
    """Compare groups with the declared one, else with the largest: not with a lucky small one."""
    miss = judged.failure_probability
    labels = judged.table[GROUP_PREFIX + column].astype(str).to_numpy()
    approved, right = judged.column(PUBLISHED, AFTER), judged.right(PUBLISHED, AFTER)
    price = judged.table["price"].to_numpy(dtype=np.float64)
    masks = {value: labels == value for value in sorted(set(labels))}
    largest = max(masks, key=lambda value: int(masks[value].sum()))
    reference = largest if declared is None else declared
    base = masks.get(reference, np.zeros(len(labels), dtype=bool))
    clusters, priced = judged.clusters, judged.favourable & np.isfinite(price)
    shown = {
        value
        for value, who in masks.items()
        if value != reference and min(who.sum(), base.sum()) >= SMALLEST_GROUP
    }
    return [
        {
            "group": value,
            "n": int(who.sum()),
            "approval": judged.share(approved, who),
            "reference": value == reference,
            "ratio": ratio_estimate(
                approved[who], approved[base], miss, (_of(clusters, who), _of(clusters, base))
            )
            if value in shown
            else None,
            "error": judged.share(1.0 - right, who),
            # Beyond what approval is worth nobody pays: without an end a mean has no interval.
            "burden": mean_estimate(
                np.minimum(price[who & priced], GAIN), GAIN, miss, _of(clusters, who & priced)
            ),
        }
        for value, who in masks.items()
    ]


def _promise(judged: _Judged, calibration: Facts) -> dict[str, Any]:
    """Return what is promised about recourse, what was asked, and the accuracy it costs."""
    claim, terms = calibration["certificate"], calibration["terms"]
    given = claim["value"] is not None
    cost = paired_difference(
        judged.right("before_promise", AFTER), judged.right(PUBLISHED, AFTER),
        judged.failure_probability, judged.clusters,
    )  # fmt: skip
    return {
        "words": claim["words"],
        "applicable": given,
        "reason": claim["reason"],
        "asked": 1.0 - terms["miss_rate"],
        "promised": 1.0 - claim["value"] if given else None,
        "led_by": calibration["led_by"],
        "largest_loss": terms["largest_loss"],
        "level": claim["level"],
        "n": claim["n"],
        "assumptions": [one["statement"] for one in claim["assumptions"]],
        "cost": cost,
    }
