"""What the rows identify, and an estimate as sentences, JSON, a run configuration and a picture."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import numpy as np
import yaml

from countermove._types import Floats
from countermove.errors import shown
from countermove.learning.people_estimation._candidates import Candidate, Interval
from countermove.learning.people_estimation._fit_tests import GoodnessOfFit
from countermove.learning.people_estimation._moves import Direction, WeightEstimate, scale_of
from countermove.learning.people_estimation._price_fit import PriceFit
from countermove.learning.people_estimation.observation import Observation
from countermove.response.base import GAIN

if TYPE_CHECKING:
    from countermove.learning.people_estimation.result import PeopleEstimate


BEHAVIOUR = {
    "best": "people cross when it is worth its price to them (best response)",
    "smooth": "people climb a smoothed step (smooth response)",
    "none": "nobody responded to the rule",
    "drift": "people moved alike wherever they stood, rule or no rule (drift)",
}

DRIFT = 0.01
"""Of everybody, in units of distance or per unit of gap, worth a sentence."""
WIDE = 20.0
"""An interval whose ends differ by more than this factor is of no use for training."""
STRAYS = 0.02
"""Share of people moving for reasons of their own that is reported."""
SCATTER = 1.5
"""Off-line moves this many times the records' noise are not noise."""
OFF_LINE = 1e-3
"""Share of the moves' energy off the line that is not rounding, where records are exact."""
DIGITS = 6
"""Significant digits a YAML file needs: an estimate is never known to more."""
DOUBTFUL = 0.05
"""p-value below which a fit that is not refused is called doubtful."""
POINTS = 1500
STRIPS = 30
"""People drawn one by one, and strips of gap for the averages."""


def nothing_to_learn(observed: Observation, difficulty: Floats) -> tuple[str, ...]:
    """Return why the rows can show nothing, before any model is fitted."""
    refused = observed.gap > 0.0
    if not refused.any():
        return (f"all {len(refused)} people were approved before they moved: nobody had a gap",)
    if not np.isfinite(difficulty[refused]).any():
        return (
            f"none of the {int(refused.sum())} refused people has an allowed move that reaches "
            "approval",
        )
    return ()


def not_identified(chosen: Candidate, difficulty: Floats, alpha: float) -> tuple[str, ...]:
    """Return why the chosen model leaves the cost open."""
    if chosen.name == "none":
        return (_nobody(difficulty, alpha),)
    if chosen.name == "drift":
        reason = "people moved as much where the rule gave them no reason as where it did"
        if abs(chosen.drift[1]) > DRIFT:
            reason += f", by {chosen.drift[1]:+.2g} per unit of gap (regression to the mean)"
        return (reason,)
    ends = chosen.scale_interval
    assert ends is not None
    if ends.low == 0.0 and not math.isfinite(ends.high):
        return ("the likelihood hardly depends on the scale: both ends of its interval are open",)
    if ends.low == 0.0:
        return (
            "everybody within sight of approval moved, so that nobody shows where it stops being "
            f"worth it: all moves are censored, and the scale is only known to be at most "
            f"{ends.high:.4g}",
        )
    if not math.isfinite(ends.high):
        return (f"hardly anybody moved: the scale is only known to be at least {ends.low:.4g}",)
    if ends.high > WIDE * ends.low:
        return (
            f"the interval of the scale, {ends.low:.3g} to {ends.high:.3g}, is too wide to train "
            "on; more people, or a rule with other gaps, would narrow it",
        )
    return ()


def doubts(
    observed: Observation, chosen: Candidate, direction: Direction | None
) -> tuple[str, ...]:
    """Return what speaks against the model apart from its fit along the rule."""
    found = []
    rows, columns = observed.changed_fixed()
    if len(rows):
        found.append(
            f"Features that cannot change did, in {len(rows)} of {len(observed.X)} people "
            f"({shown(map(repr, columns))}; rows {shown(rows)}): measurement noise, a mistake in "
            "the schema, or other people under the same keys."
        )
    if chosen.noise.strays > STRAYS:
        found.append(
            f"{chosen.noise.strays:.1%} of the people moved for reasons the model does not know."
        )
    if direction is not None and _off_line(observed, direction):
        found.append(
            "People did not move along one line, as they would under a quadratic cost with the "
            "same weights for everybody: the cost has another shape, or differs between people. "
            "Scale and reach hold for rules like this one only."
        )
    return tuple(found)


def _nobody(difficulty: Floats, alpha: float) -> str:
    """Say what staying shows: a low cost would have moved one of the nearest, if half respond."""
    near = np.sort(difficulty[(difficulty > 0.0) & np.isfinite(difficulty)])
    count = math.ceil(math.log(alpha) / math.log(0.5))
    text = "nobody moved: high costs and people who never respond to rules look the same"
    if len(near) >= count:
        least = scale_of(float(near[count - 1]))
        text += f" (if at least half of them would respond, the scale is at least {least:.4g})"
    return text


def _off_line(observed: Observation, direction: Direction) -> bool:
    """Return whether moves scatter around their line by more than the records' noise."""
    if observed.recorded_exactly:
        return direction.scatter > OFF_LINE * direction.energy
    moves = observed.moves[:, direction.usable]
    if direction.usable.sum() < 2:
        return False
    along = direction.along[direction.usable]
    along = along / np.linalg.norm(along)
    # Whoever went back, if anywhere, did not respond: they show the records' noise across the line.
    still = observed.moves @ observed.slope <= 0.0
    if not still.any():
        return False
    across = moves[still] - np.outer(moves[still] @ along, along)
    noise = float(np.sum(across**2)) / (len(across) * (len(along) - 1))
    return direction.scatter > SCATTER * noise


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
        lines += _price_sentences(chosen, level)
        if weights:
            lines.append(_weights_sentence(weights))
    lines.append(_fit_sentence(fit))
    return "\n".join([*lines, *warnings])


def _fit_sentence(fit: GoodnessOfFit) -> str:
    if not fit.rejected:
        doubt = ", which is a doubt" if fit.p_value < DOUBTFUL else ""
        return (
            f"The test of fit does not refuse the model (p = {fit.p_value:.2g}; it refuses below "
            f"{fit.level:g}){doubt}. It compared where {int(fit.counts.sum()):,} people stand with "
            "where the model puts them; it cannot see a misfit too small for so many, nor what "
            "people would do before another rule."
        )
    if fit.misfits:
        named = "; ".join(misfit.words for misfit in fit.misfits)
        return (
            f"But the model does not fit (p = {fit.p_value:.2g}): {named}. Its intervals are not "
            "to be relied on."
        )
    low, high = fit.strip
    return (
        f"But the model does not fit (p = {fit.p_value:.2g}): {fit.misplaced:.1%} of the "
        "people are not where it puts them, most of all those with gaps from "
        f"{low:.2f} to {high:.2f}. Its intervals are not to be relied on; train robustly, or "
        "look for what else moved people."
    )


def span(interval: Interval, level: float) -> str:
    """Return an interval in words."""
    how = "for certain" if interval.kind == "bracket" else f"{level:.0%} interval"
    return f"{interval.low:.4g} to {interval.high:.4g}, {how}"


def _price_sentences(chosen: Candidate, level: float) -> list[str]:
    """Return never-movers, price and what else is known of them, in plain words."""
    assert chosen.scale is not None
    assert chosen.scale_interval is not None
    share, ends = chosen.noise.non_movers, chosen.non_movers_interval
    price = chosen.scale_interval
    who = f"About {share:.0%} never move ({ends.low:.1%} to {ends.high:.1%}); for the others"
    if share < 0.005 and ends.low < 0.005:
        who = f"Nearly everybody responds (at most {ends.high:.1%} never move); for them"
    sentences = [
        f"{who} a move of one standard deviation costs between {price.low:.3g} and "
        f"{price.high:.3g}, where approval is worth {GAIN:g}.",
        f"Cost scale {chosen.scale:.4g} ({span(price, level)}).",
    ]
    if chosen.temperature is not None and chosen.temperature_interval is not None:
        heat = span(chosen.temperature_interval, level)
        sentences.append(f"Temperature {chosen.temperature:.3g} ({heat}).")
    if chosen.log_sd_interval is not None:
        sentences.append(_spread_sentence(chosen.scale, chosen.log_sd, chosen.log_sd_interval))
    if chosen.prices is not None:
        sentences += _move_sentences(chosen.prices)
    return sentences


def _spread_sentence(scale: float, log_sd: float, ends: Interval) -> str:
    if log_sd == 0.0:
        return f"All pay the same price, as far as the rows show (log-sd at most {ends.high:.2g})."
    low, high = (scale * math.exp(side * 1.645 * log_sd) for side in (-1.0, 1.0))
    return (
        f"Prices differ: that is the median; nine in ten pay between {low:.2g} and {high:.2g} "
        f"(log-sd {log_sd:.2g}, {ends.low:.2g} to {ends.high:.2g})."
    )


def _move_sentences(fit: PriceFit) -> list[str]:
    over, found = fit.overshoot, []
    if over.kind == "proportional":
        found.append(f"Movers go {over.median:.2%} of their gap beyond the boundary (median).")
    elif over.kind == "absolute":
        found.append(f"Movers go {over.median:.3g} beyond the boundary (median).")
    if max(abs(fit.drift[0]), abs(fit.drift[1])) > DRIFT:
        found.append(
            f"Everybody drifted, rule or no rule, by {fit.drift[0]:+.3g} {fit.drift[1]:+.3g} per "
            "unit of gap (regression to the mean, or time): allowed for."
        )
    return found


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
        "log_sd": {"value": estimate.log_sd, "interval": _ends(estimate.log_sd_interval)},
        "overshoot": asdict(estimate.overshoot),
        "drift": list(estimate.drift),
        "noise": asdict(estimate.noise),
        "weights": [_finite(asdict(weight)) for weight in estimate.weights],
        "comparison": [_finite(asdict(line)) for line in estimate.comparison],
        "fit": {
            "p_value": fit.p_value,
            "misplaced": fit.misplaced,
            "rejected": fit.rejected,
            "worst_gaps": list(fit.strip),
            "counts": fit.counts.tolist(),
            "misfits": [asdict(misfit) for misfit in fit.misfits],
        },
        "rows": {
            "before": estimate.n,
            "after": estimate.n_after,
            "matched": estimate.matched,
        },
        "level": estimate.level,
        "picture": estimate.picture,
    }


def run_configuration(words: str, dataset: str | None, serm: dict[str, Any]) -> str:
    """Return the configuration of a run with these settings, headed by words."""
    comment = "".join(f"# {line}\n" for line in _wrapped(words))
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
    expected = chosen.chance * (1.0 - chosen.noise.strays) * chosen.mean
    if chosen.prices is not None:
        expected = expected + chosen.prices.drift[0] + chosen.prices.drift[1] * observed.gap
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
