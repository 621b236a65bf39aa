"""What one rule at one threshold is worth on test rows: decisions, recourse, its quality."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from countermove.data.standardise import Standardiser
from countermove.recourse.advice import FOUND, NOT_NEEDED, Advice
from countermove.recourse.audit import audit
from countermove.recourse.causal import CausalModel
from countermove.recourse.classifier import RecourseClassifier
from countermove.recourse.performance import performance, scores_of
from countermove.recourse.recommend import recommend

Floats = NDArray[np.float64]

REFEREE = "exhaustive"


@dataclass(frozen=True)
class Part:
    """People in standardised units, labels in {-1, +1}, and their sensitive columns."""

    X: Floats
    y: Floats
    groups: pd.DataFrame


@dataclass(frozen=True)
class Parts:
    """Rows to learn from, to choose on, to calibrate with and to report on; disjoint."""

    train: Part
    selection: Part
    calibration: Part
    test: Part
    names: tuple[str, ...]
    standardiser: Standardiser


def measures(
    model: RecourseClassifier,
    parts: Parts,
    threshold: float,
    methods: Sequence[str],
    *,
    audited: str | None = None,
    group: str | None = None,
    reference: str | None = None,
    causal: CausalModel | None = None,
    seed: int = 0,
) -> dict[str, Any]:
    """Return the figures of one rule on its test rows, by name.

    Parameters
    ----------
    model, threshold
        The rule.
    parts
        The people; only test rows are measured on.
    methods
        Searches for recourse.
    audited
        The search whose actions are audited.
    group, reference
        Sensitive column to compare recourse by, and the group compared with.
    causal
        For the method of that name.
    """
    test = parts.test
    rule = model.score_.at_threshold(threshold)
    found: dict[str, Any] = performance(scores_of(rule, test.X), test.y > 0).to_json()
    advised: dict[str, Advice] = {}
    for method in methods:
        advised[method] = recommend(
            model,
            test.X,
            method,
            threshold,
            causal=causal if method == "causal" else None,
            seed=seed,
        )
        found |= _shares(method, advised[method])
    if REFEREE in advised:
        found |= _against(advised)
    if group is not None:
        found |= _disparities(advised, test.groups[group].to_numpy() == reference)
    if audited is not None:
        found |= _audited(model, parts, advised[audited], threshold, seed)
    return found


def _shares(method: str, advice: Advice) -> dict[str, float]:
    refused, has = advice.status != NOT_NEEDED, advice.status == FOUND
    return {
        "refused": int(refused.sum()),
        f"recourse_neg_{method}": float(has[refused].mean()) if refused.any() else np.nan,
        f"recourse_all_{method}": float((has | ~refused).mean()),
    }


def _against(advised: dict[str, Advice]) -> dict[str, float]:
    """Return the share of the recourse known to exist that each search finds."""
    exists = advised[REFEREE].status == FOUND
    return {
        f"found_of_existing_{method}": float((advice.status[exists] == FOUND).mean())
        if exists.any()
        else np.nan
        for method, advice in advised.items()
        if method != REFEREE
    }


def _disparities(advised: dict[str, Advice], is_reference: NDArray[np.bool_]) -> dict[str, float]:
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
    model: RecourseClassifier, parts: Parts, advice: Advice, threshold: float, seed: int
) -> dict[str, Any]:
    """Return how actions and decisions stand up to noise, and whether moved people look real."""
    test = parts.test
    report = audit(
        model, test.X, test.y, advice, threshold=threshold, real=parts.train.X, seed=seed
    )
    found: dict[str, Any] = {
        "robust_actions": report.robust_actions.value,
        "robust_decisions_gaussian": report.brittleness.gaussian.value,
        "robust_decisions_deepfool": report.brittleness.deepfool.value,
        "robust_decisions_on_manifold": report.brittleness.on_manifold.value,
    }
    for test_ in report.in_distribution:
        found[f"told_apart_{test_.discriminator}"] = test_.accuracy.value
        found[f"told_apart_p_{test_.discriminator}"] = test_.p_accuracy
    return found
