"""What a published rule does: accuracy under every response, and what it asks of people."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch

from countermove.data.partitions import Partitions
from countermove.data.rows import Rows, rows_of
from countermove.data.schema import Schema
from countermove.data.sources import table_hash
from countermove.execution import Mapper
from countermove.learning.decisions import BEFORE, judged_accuracy
from countermove.learning.evaluation import not_evaluated, sensitivity, usual_responses_to
from countermove.learning.simple_rules import chosen_from
from countermove.learning.social import social_report
from countermove.response import AscentResponse, BestResponse, Response
from countermove.response.partitions import (
    COST,
    FAVOURED,
    FAVOURED_BEFORE,
    MOVED,
    respond_parts,
)
from countermove.response.response_set import kinds_of, why_relaxed
from countermove.scores import Score
from countermove.scores.storage import PublishedModel

MEASURED = 200
"""People whose ascent is compared with a longer search: shares to three points."""
PACKAGES = ("countermove", "kedro", "torch", "numpy", "pandas", "scikit-learn")


def rule_metrics(
    blind: PublishedModel,
    strategic: PublishedModel,
    uncalibrated: PublishedModel,
    typed: pd.DataFrame,
    test: pd.DataFrame,
    schema: Schema,
    response: Response,
    decisions: pd.DataFrame,
) -> dict[str, Any]:
    """Measure a blind and a calibrated strategic rule on the test rows.

    Accuracies under the stated response are counted from the ``decisions`` (`judged_decisions`).
    """
    people = rows_of(test, schema)
    response = response.with_windows(people.X, people.windows)
    # Of a robust response the worst member is reported (the mean where shares are known);
    # the uncalibrated rule shows what the promise of recourse cost.
    scores = {"blind": blind.rule, "strategic": strategic.rule}
    # Where one of them is a network, people climb both: a simple rule may have been kept.
    bent = next((score for score in scores.values() if score.slope() is None), strategic.rule)
    usual = usual_responses_to(bent, response)
    found = sensitivity(scores, people.X, people.y, usual).accuracies()
    return {
        "dataset": schema.name,
        "accuracy": {
            "nobody_moves": found["none"],
            "after_response": {
                "blind": judged_accuracy(decisions, "blind"),
                "strategic": judged_accuracy(decisions),
            },
            "sensitivity": found,
            "uncalibrated": {"strategic": judged_accuracy(decisions, "before_promise")},
            "whole_steps": whole_step_measures(scores, people, response),
            "relations": relations_kept(response),
            "baselines": baseline_accuracies(uncalibrated, decisions),
            "unproven": unproven_shares(scores, people, response),
        },
        "choice": _chosen(uncalibrated),
        "not_evaluated": not_evaluated(usual),
        "social": _social(blind, strategic, uncalibrated, people, response),
        "threshold": strategic.threshold,
        "response": response.describe(),
        "rows": strategic.about["rows"] | {"test": len(people.y)},
        "seed": strategic.about["seed"],
        "versions": {name: version(name) for name in PACKAGES},
        "data_hash": table_hash(typed),
        "adopted": blind.about.get("adopted"),  # where the model is not ours
    } | climbing_measures(strategic.rule, people, response)


def whole_step_measures(
    scores: Mapping[str, Score], people: Rows, response: Response
) -> dict[str, Any] | None:
    """Return what is left of the moves once only possible people move, in whole steps.

    Per rule: the accuracy and the share of the refused who reach approval, in whole steps and
    relaxed as in training, and by how much the relaxed accuracy is above the other. None unless
    people respond best, at a cost that is a sum over columns, to a score with a slope.
    """
    if not isinstance(response, BestResponse):
        return None
    shape = response.cost.canonical(people.X.shape[1])
    if shape is None or shape.weights is None:
        return None
    measured = {}
    for name, score in scores.items():
        if score.slope() is None:
            return None
        with torch.no_grad():
            refused = score(torch.from_numpy(people.X)).numpy() < 0.0
        relaxed = response.decisions_after(score, people.X)
        whole = response.decisions_in_whole_steps(score, people.X, people.windows)
        right, eased = ((decided == (people.y > 0)).mean() for decided in (whole, relaxed))
        measured[name] = {
            "accuracy": float(right),
            "accuracy_relaxed": float(eased),
            "gap": float(eased - right),
            "reach_relaxed": float(relaxed[refused].mean()) if refused.any() else None,
            "reach": float(whole[refused].mean()) if refused.any() else None,
        }
    return measured


def unproven_shares(
    scores: Mapping[str, Score], people: Rows, response: Response
) -> dict[str, float] | None:
    """Return, per rule, of how many people it is not known whether they cross; they are refused.

    None where responses are not searched for.
    """
    searched = not all(score.differentiable for score in scores.values())
    if not (searched and isinstance(response, BestResponse)):
        return None
    return {name: response.unproven(score, people.X) for name, score in scores.items()}


def relations_kept(response: Response) -> dict[str, Any] | None:
    """Return whether relations bind the responses, and if not, why; None where there are none."""
    possible = response.actions.possible
    if possible is None:
        return None
    if possible.in_responses:
        return {"obeyed": True, "reason": None}
    reason = why_relaxed(response) or "the settings relax them (serm.actions.responses)"
    return {"obeyed": False, "reason": reason}


def baseline_accuracies(
    model: PublishedModel, decisions: pd.DataFrame
) -> dict[str, dict[str, float]]:
    """Return how often the rules a rule was chosen from are right, each at its best threshold."""
    recorded = (model.about.get("choice") or {}).get("rules", {})
    return {
        name: {
            "nobody_moves": judged_accuracy(decisions, name, BEFORE),
            "after_response": judged_accuracy(decisions, name),
            "cross_validated": recorded[name]["value"],
            "gain": recorded[name]["gain"],
            "standard_error": recorded[name]["standard_error"],
        }
        for name in chosen_from(model)
    }


def _chosen(model: PublishedModel) -> dict[str, Any] | None:
    """Return which rule was kept and why, in a sentence; None where nothing was chosen."""
    choice = model.about.get("choice")
    if choice is None:
        return None
    return {name: choice[name] for name in ("kept", "best_simple", "sentence")}


def _social(
    blind: PublishedModel,
    calibrated: PublishedModel,
    strategic: PublishedModel,
    people: Rows,
    response: Response,
) -> dict[str, Any]:
    """Return the measures of the published rule, then of every rule and every group."""
    scores = {"blind": blind.rule, "strategic": strategic.rule, "calibrated": calibrated.rule}
    found = social_report(scores, people.X, people.y, people.groups, response)
    published = found["by_model"]["calibrated"]
    return {name: published[name] for name in ("utility", "burden", "recourse")} | found


def climbing_measures(score: Score, people: Rows, response: Response) -> dict[str, Any]:
    """Return how reliable responses by ascent are (see `OptimalityGap`); else nothing."""
    climbers = [kind for kind in kinds_of(response) if isinstance(kind, AscentResponse)]
    if not climbers:
        return {}
    X, climber = people.X[:MEASURED], climbers[0].of_rows(range(min(MEASURED, len(people.X))))
    found = climber.optimality_gap(score, X)
    responses = climber.respond(score, X, on_failure="mask")
    return {
        "ascent": {
            "converged": float(responses.converged.mean()),
            "gap": found.worst,
            "share": found.share,
            "against": found.against,
            "exact": found.exact,
            "people": len(X),
        }
    }


def answer_parts(
    model: PublishedModel,
    response: Response,
    parts: Partitions,
    folder: Path,
    schema: Schema,
    mapper: Mapper,
) -> dict[str, Any]:
    """Let a population in parts respond to a stored rule; return what that did."""
    names, months = schema.feature_names, schema.carried_windows
    carried = ("row_id", "label")
    run = respond_parts(response, model.rule, parts, folder, names, carried, mapper, months)
    return population_facts(run.result()).to_json() | {"run": run.to_json()}


@dataclass(frozen=True)
class PopulationFacts:
    """What the response to a rule did, counted over all rows."""

    rows: int
    moved: float  # share
    mean_cost: float  # of movers; 0 if nobody moved
    favoured: float  # share approved after response
    accuracy_nobody_moves: float
    accuracy_after_response: float

    def to_json(self) -> dict[str, float]:
        """Return the facts, JSON-ready."""
        return asdict(self)


def population_facts(moved_parts: Partitions, label: str = "label") -> PopulationFacts:
    """Count over the parts that `respond_parts` left, one part at a time."""
    totals = np.zeros(6)
    for part in moved_parts:
        wanted = part[label].to_numpy() > 0
        moved = part[MOVED].to_numpy(dtype=bool)
        after = part[FAVOURED].to_numpy(dtype=bool)
        before = part[FAVOURED_BEFORE].to_numpy(dtype=bool)
        cost = part[COST].to_numpy()[moved].sum()
        right = (before == wanted).sum(), (after == wanted).sum()
        totals += [len(part), moved.sum(), cost, after.sum(), *right]
    n, movers, cost, *rest = totals
    shares = [float(value / n) for value in rest]
    return PopulationFacts(int(n), float(movers / n), float(cost / max(movers, 1.0)), *shares)
