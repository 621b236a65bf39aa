"""What an estimate says, in sentences."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from countermove.learning.people_estimation.candidates import Candidate, Interval
from countermove.learning.people_estimation.goodness import Fit

if TYPE_CHECKING:
    from countermove.learning.people_estimation.result import WeightEstimate

BEHAVIOUR = {
    "best": "people cross exactly when it is worth its price (best response)",
    "smooth": "people climb a smoothed step (smooth response)",
    "none": "nobody answered the rule",
    "drift": "people moved alike wherever they stood, rule or no rule (drift)",
}


def verdict(
    chosen: Candidate,
    reasons: Sequence[str],
    warnings: Sequence[str],
    fit: Fit,
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
            "people are elsewhere than it puts them, most of all those with gaps from "
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
