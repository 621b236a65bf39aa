"""What one rule at one threshold is worth on test rows: decisions, recourse, its quality."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from countermove._types import Floats
from countermove.data.schema import Schema
from countermove.data.standardise import Standardiser
from countermove.recourse.audit import audit, in_distribution, robust_actions
from countermove.recourse.classifier import RecourseClassifier
from countermove.recourse.performance import performance, scores_of
from countermove.recourse.recommend import FOUND, NOT_NEEDED, Advice, best_reachable, recommend
from countermove.recourse.words import NOTHING, sentences

REFEREE = "exhaustive"


@dataclass(frozen=True)
class Part:
    """People in standardised units, labels in {-1, +1}, and their sensitive columns."""

    X: Floats
    y: Floats
    groups: pd.DataFrame


@dataclass(frozen=True)
class RecourseParts:
    """Rows to learn from, to choose on, to calibrate with and to report on; disjoint."""

    train: Part
    selection: Part
    calibration: Part
    test: Part
    schema: Schema
    standardiser: Standardiser

    @property
    def names(self) -> tuple[str, ...]:
        """The features, in the order of the columns."""
        return self.schema.feature_names


def measures(
    model: RecourseClassifier,
    parts: RecourseParts,
    threshold: float,
    advised: Mapping[str, Advice],
    *,
    audited: str | None = None,
    margins: Sequence[float] = (),
    group: str | None = None,
    reference: str | None = None,
    seed: int = 0,
) -> dict[str, Any]:
    """Return what one rule is worth on its test rows, by name, given what each search advises."""
    test = parts.test
    rule = model.score_.at_threshold(threshold)
    found: dict[str, Any] = performance(scores_of(rule, test.X), test.y > 0).to_json()
    for method, advice in advised.items():
        found |= _shares(method, advice)
    if REFEREE in advised:
        found |= _against(advised)
    if group is not None:
        found |= _disparities(advised, test.groups[group].to_numpy() == reference)
    if audited is not None:
        found |= _audited(model, parts, advised[audited], threshold, seed)
        found |= robustness(model, test.X, threshold, audited, margins, advised, seed)
    return found


def _shares(method: str, advice: Advice) -> dict[str, float]:
    refused, has = advice.status != NOT_NEEDED, advice.status == FOUND
    return {
        "refused": int(refused.sum()),
        f"recourse_neg_{method}": float(has[refused].mean()) if refused.any() else np.nan,
        f"recourse_all_{method}": float((has | ~refused).mean()),
    }


def _against(advised: Mapping[str, Advice]) -> dict[str, float]:
    """Return the share of the recourse known to exist that each search finds."""
    exists = advised[REFEREE].status == FOUND
    return {
        f"found_of_existing_{method}": float((advice.status[exists] == FOUND).mean())
        if exists.any()
        else np.nan
        for method, advice in advised.items()
        if method != REFEREE
    }


def _disparities(
    advised: Mapping[str, Advice], is_reference: NDArray[np.bool_]
) -> dict[str, float]:
    """Return recourse-all of the reference group minus that of everybody else."""
    found: dict[str, float] = {}
    for method, advice in advised.items():
        has = (advice.status == FOUND) | (advice.status == NOT_NEEDED)
        here, others = float(has[is_reference].mean()), float(has[~is_reference].mean())
        found |= {
            f"recourse_all_{method}_reference": here,
            f"recourse_all_{method}_others": others,
            f"disparity_{method}": here - others,
        }
    return found


def _audited(
    model: RecourseClassifier, parts: RecourseParts, advice: Advice, threshold: float, seed: int
) -> dict[str, Any]:
    """Return how actions and decisions stand up to noise, and whether moved people look real."""
    test = parts.test
    report = audit(
        model, test.X, test.y, advice, threshold=threshold, real=parts.train.X, seed=seed
    )
    found: dict[str, Any] = {
        "robust_decisions_gaussian": report.brittleness.gaussian.value,
        "robust_decisions_deepfool": report.brittleness.deepfool.value,
        "robust_decisions_on_manifold": report.brittleness.on_manifold.value,
    }
    # The paper compares with everybody; approved people are whom the moved ones want to be like.
    moved = test.X[advice.status == FOUND] + advice.action[advice.status == FOUND]
    everybody = in_distribution(moved, parts.train.X, seed=seed)
    for whom, tests in (("approved", report.in_distribution), ("everybody", everybody)):
        for test_ in tests:
            found[f"told_from_{whom}_{test_.discriminator}"] = test_.accuracy.value
            found[f"told_from_{whom}_p_{test_.discriminator}"] = test_.p_accuracy
    return found


def robustness(
    model: RecourseClassifier,
    X: Floats,
    threshold: float,
    method: str,
    margins: Sequence[float],
    advised: Mapping[str, Advice],
    seed: int,
) -> dict[str, float | None]:
    """Return how many actions still work under noise: the cheapest, with margins, the furthest."""
    ways = {name: advice.action for name, advice in advised.items() if name != REFEREE}
    for margin in margins:
        advice = recommend(model, X, method, threshold, margin=margin, seed=seed)
        ways[f"margin_{margin:g}"] = advice.action
    ways["furthest"] = best_reachable(model, X, method, seed=seed).action
    found: dict[str, float | None] = {}
    who = advised[method].status == FOUND
    for name, action in ways.items():
        noisy = robust_actions(model, X[who], action[who], threshold=threshold, seed=seed)
        found[f"robust_actions_{name}"] = noisy.value
        found[f"cost_{name}"] = (
            float((action[who] ** 2).sum(axis=1).mean()) if who.any() else np.nan
        )
    return found


COLUMNS = (
    "person",
    "feature",
    "before",
    "after",
    "change",
    "unit",
    "probability",
    "probability_after",
    "words",
)
"""Of the table of examples, after those that name the cell."""


def examples_of(
    advice: Advice, X: NDArray[np.float64], parts: RecourseParts, count: int
) -> list[dict[str, Any]]:
    """Return what ``count`` people are advised, one row per feature that changes."""
    # Spread evenly over the costs of the advice: one is the median, three are the end of the
    # cheapest quarter, the median and that of the most expensive quarter.
    found = np.flatnonzero(advice.status == FOUND)
    if not count or not found.size:
        return []
    shares = (np.arange(count) + 1.0) / (count + 1.0)
    ranked = found[np.argsort(advice.cost[found], kind="stable")]
    picked = dict.fromkeys(ranked[np.round(shares * (len(ranked) - 1)).astype(int)].tolist())
    words = sentences(advice, X, parts.schema, parts.standardiser)
    before = parts.standardiser.inverse(X)
    action = parts.standardiser.action_to_original(advice.action)
    moved = np.abs(advice.action) > NOTHING
    columns = parts.schema.model_features()
    return [
        {
            "person": i,
            "feature": columns[j].name,
            "before": before[i, j],
            "after": before[i, j] + action[i, j],
            "change": action[i, j],
            "unit": parts.schema.feature(columns[j].source).unit or "",
            "probability": advice.probability_before[i],
            "probability_after": advice.probability_after[i],
            "words": words[i],
        }
        for i in picked
        for j in np.flatnonzero(moved[i]).tolist()
    ]
