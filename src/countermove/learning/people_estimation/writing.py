"""An estimate as JSON, and as a run configuration in YAML."""

from __future__ import annotations

import math
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import yaml

if TYPE_CHECKING:
    from countermove.learning.people_estimation.candidates import Interval
    from countermove.learning.people_estimation.result import PeopleEstimate

DIGITS = 6
"""Significant digits a YAML file needs: an estimate is never known to more."""


def estimate_json(estimate: PeopleEstimate) -> dict[str, Any]:
    """Return everything about an estimate, JSON-ready."""
    fit = estimate.fit
    return {
        "verdict": estimate.verdict,
        "identified": estimate.identified,
        "reasons": list(estimate.reasons),
        "warnings": list(estimate.warnings),
        "response": estimate.response,
        "cost": None if estimate.cost is None else estimate.cost.describe(),
        "scale": {"value": estimate.scale, "interval": _ends(estimate.scale_interval)},
        "temperature": {
            "value": estimate.temperature,
            "interval": _ends(estimate.temperature_interval),
        },
        "non_movers": {
            "value": estimate.non_movers,
            "interval": _ends(estimate.non_movers_interval),
        },
        "noise": asdict(estimate.noise),
        "weights": [_finite(asdict(weight)) for weight in estimate.weights],
        "comparison": [_finite(asdict(line)) for line in estimate.comparison],
        "fit": {
            "p_value": fit.p_value,
            "misplaced": fit.misplaced,
            "rejected": fit.rejected,
            "worst_gaps": list(fit.strip),
            "counts": fit.counts.tolist(),
        },
        "rows": {
            "before": estimate.n,
            "after": estimate.n_after,
            "matched": estimate.matched,
        },
        "level": estimate.level,
        "picture": estimate.picture,
    }


def estimate_yaml(estimate: PeopleEstimate, dataset: str | None, robust: bool) -> str:
    """Return a run configuration with the estimate, or one that is refused and says why."""
    comment = "".join(f"# {line}\n" for line in _wrapped(estimate.verdict))
    if estimate.identified and estimate.cost is not None:
        serm = estimate.serm_parameters(robust)
    else:
        # A response of this kind does not exist: a run with this file stops at once.
        serm = {"response": {"kind": "not_identified"}}
    params: dict[str, Any] = {} if dataset is None else {"dataset": dataset}
    params["serm"] = _rounded(serm)
    body = yaml.safe_dump(
        {"run": {"pipelines": "serm", "params": params}},
        sort_keys=False,
        default_flow_style=None,
        width=100,
    )
    return comment + body


def _ends(interval: Interval | None) -> dict[str, Any] | None:
    if interval is None:
        return None
    return _finite({"low": interval.low, "high": interval.high, "kind": interval.kind})


def _finite(entry: dict[str, Any]) -> dict[str, Any]:
    """Replace what JSON cannot hold by None."""
    return {
        name: None if isinstance(value, float) and not math.isfinite(value) else value
        for name, value in entry.items()
    }


def _rounded(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _rounded(entry) for name, entry in value.items()}
    if isinstance(value, list):
        if value and abs(sum(v for v in value if isinstance(v, float)) - 1.0) < 1e-9:
            return [float(v) for v in value]
        return [_rounded(entry) for entry in value]
    return float(f"{value:.{DIGITS}g}") if isinstance(value, float) else value


def _wrapped(text: str) -> list[str]:
    from textwrap import wrap

    return [line for part in text.splitlines() for line in wrap(part, 96) or [""]]
