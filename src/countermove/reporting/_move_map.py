"""The move map: people, their moves and both boundaries, for cheaper and more expensive moves."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from countermove.reporting.accuracy import DASHES, MARKS, RULES
from countermove.reporting.citing import Cited, Row
from countermove.reporting.words import called, number, rule_names, share

if TYPE_CHECKING:
    from countermove.reporting.page import Findings

WORDS = {
    "stay_good": "outcome favourable, stays",
    "stay_bad": "outcome unfavourable, stays",
    "move_good": "outcome favourable, moves",
    "move_bad": "outcome unfavourable, moves",
}
DISTANCE = "distance to the boundary of the {strategic}, approved right of 0"
SCORE = "score of the {strategic}, approved right of 0"
AXES = {
    "linear": (DISTANCE, "the {blind}'s own part"),
    "parallel": (DISTANCE, "where people differ most"),
    "scores": (SCORE, "score of the {blind}, approved above 0"),
    "shifted": (SCORE, "where people differ most"),
}
"""What stands on the axes, by projection."""
COLUMNS: Mapping[str, tuple[str, Callable[[Any], str]]] = {
    "share_moved": ("people who move", share),
    "mean_cost": ("mean cost of a move", number),
    "approved": ("approved afterwards", share),
    "accuracy": ("accuracy afterwards", share),
}
MARGIN = 0.08
BESIDE = 0.5
"""Per cent of the people who may stand outside the frame at either end of an axis."""


def move_map_facts(found: Findings) -> dict[str, Any]:
    """Return the map, its numbers at the assumed cost, and accuracy over the cost of moving."""
    if found.move_map is None:
        return {"move_map": None}
    cited = Cited("move_map.json", found.move_map)
    scales = [entry["scale"] for entry in found.move_map["rules"]["strategic"]]
    now = scales.index(1.0)
    path = ("rules", "strategic", now)
    names = rule_names(found.metrics)
    return {
        "move_map": cited,
        "names": names,
        "rule_words": {rule: f"The {names[rule]}" for rule in RULES},
        "last": len(scales) - 1,
        "now": now,
        "assumed": _scale_words(1.0),
        "counts": [
            (words, cited.link(*path, key, by=by, id=f"map-{key}"))
            for key, (words, by) in COLUMNS.items()
        ],
        "paid": found.move_map["rules"]["strategic"][now]["mean_cost"] is not None,
        "at_cost": {key: by(cited.value(*path, key)) for key, (_, by) in COLUMNS.items()},
        "content": _content(found.move_map, scales, names),
        "in_deviations": found.move_map["projection"] in ("linear", "parallel"),
        "head": ("rule and cost", *(words for words, _ in COLUMNS.values())),
        "rows": _rows(cited, scales, names),
        "response": cited.linked(called(found.move_map["response"]), "response"),
        "curve": _curve(cited, scales, names),
        "curve_head": ("cost", *(names[rule].capitalize() for rule in RULES)),
        "curve_rows": [
            (
                _scale_words(scale)["short"],
                *(cited.share("rules", rule, i, "accuracy") for rule in RULES),
            )
            for i, scale in enumerate(scales)
        ],
    }


def _scale_words(scale: float) -> dict[str, str]:
    times = f"{scale:g}"
    long = (
        "at the assumed cost" if scale == 1.0 else f"moving costs {times} times as much as assumed"
    )
    return {"short": f"× {times}", "long": long}


def _content(
    facts: Mapping[str, Any], scales: Sequence[float], names: Mapping[str, str]
) -> dict[str, Any]:
    """Return what the page's script draws the map from."""
    across, up = (words.format_map(names) for words in AXES[facts["projection"]])
    return {key: facts[key] for key in ("people", "boundaries", "rules")} | {
        "range": {axis: frame(facts, axis) for axis in ("x", "y")},
        "words": WORDS | {rule: f"boundary of the {names[rule]}" for rule in RULES},
        "rule_words": {rule: f"The {names[rule]}" for rule in RULES},
        "scale_words": [_scale_words(scale) for scale in scales],
        "axes": {
            "x": across,
            "y": up,
            "x_short": across.split(",")[0],
            "y_short": up.split(",")[0],
        },
    }


def _rows(cited: Cited, scales: Sequence[float], names: Mapping[str, str]) -> list[Row]:
    """Return what people do at every cost, for both rules."""
    return [
        (
            f"{names[rule].capitalize()}, {_scale_words(scale)['short']}",
            *(cited.link("rules", rule, i, key, by=by) for key, (_, by) in COLUMNS.items()),
        )
        for rule in RULES
        for i, scale in enumerate(scales)
    ]


def _curve(cited: Cited, scales: Sequence[float], names: Mapping[str, str]) -> dict[str, Any]:
    """Return accuracy of both rules against the cost of moving."""
    data = [
        {
            "type": "scatter",
            "mode": "lines+markers",
            "name": names[rule].capitalize(),
            "x": scales,
            "y": [entry["accuracy"] for entry in cited.value("rules", rule)],
            "line": {"color": f"var:{rule}", "width": 2.5, "dash": DASHES[rule]},
            "marker": {"symbol": MARKS[rule], "size": 8},
            "hovertemplate": "× %{x}: %{y:.1%}<extra>" + names[rule].capitalize() + "</extra>",
        }
        for rule in RULES
    ]
    mark = {"color": "var:mark", "dash": "dot", "width": 1.5}
    layout = {
        "xaxis": {
            "type": "log",
            "title": {"text": "cost of moving (1: as assumed)"},
            "tickvals": scales,
            "ticktext": [f"{scale:g}" for scale in scales],
        },
        "yaxis": {"title": {"text": "accuracy"}, "tickformat": ".1%"},
        "shapes": [
            {"type": "line", "x0": 1, "x1": 1, "yref": "paper", "y0": 0, "y1": 1, "line": mark}
        ],
    }
    return {"data": data, "layout": layout, "narrow": _few(scales)}


def _few(scales: Sequence[float]) -> dict[str, Any]:
    """Return every other mark of the axis, for a narrow screen; the assumption is one of them."""
    shown = scales[scales.index(1.0) % 2 :: 2]
    return {"xaxis": {"tickvals": shown, "ticktext": [f"{scale:g}" for scale in shown]}}


def frame(facts: Mapping[str, Any], axis: str) -> list[float]:
    """Return the ends of an axis: nearly everybody before and after moving, and 0."""
    ends: Sequence[float] = [
        value for rule in facts["rules"].values() for entry in rule for value in entry[axis]
    ]
    low, high = np.percentile([*facts["people"][axis], *ends], [BESIDE, 100.0 - BESIDE])
    if axis == "x":
        low, high = min(low, 0.0), max(high, 0.0)
    gap = MARGIN * max(high - low, 1e-6)
    return [round(float(low - gap), 4), round(float(high + gap), 4)]
