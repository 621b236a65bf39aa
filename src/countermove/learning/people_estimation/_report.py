"""An estimate as sentences, as JSON, as a run configuration in YAML and as numbers to plot."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import numpy as np
import yaml

from countermove._types import Floats
from countermove.learning.people_estimation._candidates import Candidate, Interval
from countermove.learning.people_estimation._diagnostics import GoodnessOfFit
from countermove.learning.people_estimation.observation import Observation

if TYPE_CHECKING:
    from countermove.learning.people_estimation._candidates import Interval
    from countermove.learning.people_estimation.result import PeopleEstimate, WeightEstimate


BEHAVIOUR = {
    "best": "people cross exactly when it is worth its price (best response)",
    "smooth": "people climb a smoothed step (smooth response)",
    "none": "nobody responded to the rule",
    "drift": "people moved alike wherever they stood, rule or no rule (drift)",
}

DIGITS = 6
"""Significant digits a YAML file needs: an estimate is never known to more."""
POINTS = 1500
STRIPS = 30
"""People drawn one by one, and strips of gap for the averages."""


def verdict(
    chosen: Candidate,
    reasons: Sequence[str],
    warnings: Sequence[str],
    fit: GoodnessOfFit,
    weights: Sequence[WeightEstimate],
    level: float,
) -> str:
    """Return the verdict: behaviour, cost or why it is not identifiable, fit, doubts."""
    lines = [f"What fits best: {BEHAVIOUR[chosen.name]}."]
    if reasons:
        lines.append(f"The cost is not identifiable from these rows because {'; '.join(reasons)}.")
    else:
        lines.append(_cost_sentence(chosen, level))
        if weights:
            lines.append(_weights_sentence(weights))
    if fit.rejected:
        low, high = fit.strip
        lines.append(
            f"But the model does not fit (p = {fit.p_value:.2g}): {fit.misplaced:.1%} of the "
            "people are not where it puts them, most of all those with gaps from "
            f"{low:.2f} to {high:.2f}. Its intervals are not to be relied on; train robustly, or "
            "look for what else moved people."
        )
    else:
        lines.append(f"Nothing speaks against the model (p = {fit.p_value:.2g}).")
    return "\n".join([*lines, *warnings])


def span(interval: Interval, level: float) -> str:
    """Return an interval in words."""
    how = "for certain" if interval.kind == "bracket" else f"{level:.0%} interval"
    return f"{interval.low:.4g} to {interval.high:.4g}, {how}"


def _cost_sentence(chosen: Candidate, level: float) -> str:
    assert chosen.scale is not None
    assert chosen.scale_interval is not None
    text = f"Cost scale {chosen.scale:.4g} ({span(chosen.scale_interval, level)})"
    if chosen.temperature is not None and chosen.temperature_interval is not None:
        text += (
            f", temperature {chosen.temperature:.3g} ({span(chosen.temperature_interval, level)})"
        )
    ends = chosen.non_movers_interval
    share = chosen.noise.non_movers
    return (
        f"{text}; {share:.1%} of those with a reason to move do not move "
        f"({ends.low:.1%} to {ends.high:.1%})."
    )


def _weights_sentence(weights: Sequence[WeightEstimate]) -> str:
    known = [w for w in weights if w.identified]
    listed = ", ".join(f"{w.name} {w.value:.3g} ({w.low:.3g} to {w.high:.3g})" for w in known[:8])
    more = f" and {len(known) - 8} more" if len(known) > 8 else ""
    rest = [w.name for w in weights if not w.identified]
    text = f"Features are not priced alike: {listed}{more}."
    if rest:
        text += (
            f" The rows do not price {', '.join(rest[:8])}: nobody had a reason to move them, or "
            "nobody did."
        )
    return text


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


def matched_picture(observed: Observation, chosen: Candidate) -> dict[str, Any]:
    """Return points (gap, advance, model), and averages by strip of gap with their errors."""
    n = len(observed.gap)
    some = np.sort(np.linspace(0, n - 1, min(POINTS, n)).astype(np.intp))
    some = some[np.argsort(observed.gap[some], kind="stable")]
    stays = np.where(chosen.inside, chosen.noise.non_movers, 0.0)
    expected = (1.0 - stays) * (1.0 - chosen.noise.strays) * chosen.mean
    edges = np.unique(np.quantile(observed.gap, np.linspace(0.0, 1.0, min(STRIPS, n // 10) + 1)))
    if len(edges) < 2:
        edges = np.array([edges[0], edges[0] + 1.0])
    strip = np.clip(np.searchsorted(edges, observed.gap, side="right") - 1, 0, len(edges) - 2)
    count = np.maximum(np.bincount(strip, minlength=len(edges) - 1), 1)

    def mean(values: Floats) -> Floats:
        return np.bincount(strip, values, minlength=len(edges) - 1) / count

    seen = mean(observed.advance)
    error = np.sqrt(np.maximum(mean(observed.advance**2) - seen**2, 0.0) / count)
    return {
        "kind": "matched",
        "points": {
            "gap": observed.gap[some].tolist(),
            "advance": observed.advance[some].tolist(),
            "model": chosen.mean[some].tolist(),
        },
        "strips": {
            "gap": mean(observed.gap).tolist(),
            "seen": seen.tolist(),
            "error": error.tolist(),
            "model": mean(expected).tolist(),
        },
    }
