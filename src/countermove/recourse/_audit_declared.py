"""What an auditor reads about declarations: sensitive columns among reasons, advice that games."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import numpy as np

from countermove._types import Mask
from countermove.data.schema import CAUSES, Schema
from countermove.recourse._audit_groups import share
from countermove.recourse.reasons import Reasons
from countermove.recourse.recommend import BEYOND_REACH, FOUND, Advice


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
