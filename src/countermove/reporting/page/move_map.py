"""The move map: people, their moves and both boundaries, for cheaper and dearer moves."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from countermove.reporting.numbers import number, share
from countermove.reporting.page.citing import Cited
from countermove.reporting.page.findings import Findings
from countermove.reporting.page.headline import RULES
from countermove.reporting.page.layout import SHEET, Section, chart, embedded
from countermove.reporting.page.markup import Markup, absent, folded, joined, paragraph
from countermove.reporting.page.plain import html_table
from countermove.reporting.tables import called

WORDS = {
    "stay_good": "outcome favourable, stays",
    "stay_bad": "outcome unfavourable, stays",
    "move_good": "outcome favourable, moves",
    "move_bad": "outcome unfavourable, moves",
    "strategic": "strategic boundary",
    "blind": "blind boundary",
}
RULE_WORDS = {"strategic": "The strategic rule", "blind": "The blind rule"}
AXES = {
    "linear": (
        "Across: the distance to the strategic boundary. Upwards: the part of the blind rule's "
        "weights that is orthogonal to the strategic ones. Both rules are linear, so in these two "
        "directions both boundaries are straight lines and nobody is drawn on the wrong side.",
        ("distance to the strategic boundary, approved right of 0", "the blind rule's own part"),
    ),
    "parallel": (
        "Across: the distance to the strategic boundary. The two rules weigh the columns alike and "
        "differ in the bar they set, so the other direction cannot change a decision: upwards is "
        "the one in which people differ most. Nobody is drawn on the wrong side of a boundary.",
        ("distance to the strategic boundary, approved right of 0", "where people differ most"),
    ),
    "scores": (
        "Across: the strategic score. Upwards: the blind score. Each boundary is the zero line of "
        "its score, whatever the shape of the rule, so nobody is drawn on the wrong side.",
        ("strategic score, approved right of 0", "blind score, approved above 0"),
    ),
    "shifted": (
        "Across: the strategic score. The blind rule is the same score with another bar, so the "
        "other direction cannot change a decision: upwards is the one in which people differ most. "
        "Nobody is drawn on the wrong side of a boundary.",
        ("strategic score, approved right of 0", "where people differ most"),
    ),
}
"""What the axes are: in words, and on the axes."""
COLUMNS: Mapping[str, tuple[str, Callable[[Any], str]]] = {
    "share_moved": ("people who move", share),
    "mean_cost": ("mean cost of a move", number),
    "approved": ("approved afterwards", share),
    "accuracy": ("judged right afterwards", share),
}
MARGIN = 0.08
BESIDE = 0.5
"""Per cent of the people who may stand outside the frame at either end of an axis."""


def move_map_section(found: Findings) -> Section:
    """Return the section, or the sentence in its place."""
    title = "Who moves, and where to"
    if found.move_map is None:
        missing = absent("There is no map of moves yet.", found.command("evaluation"))
        return Section("moves", title, "Move map", missing)
    cited = Cited("move_map.json", found.move_map)
    lead = paragraph(
        "Each arrow is one person's answer to a published rule. Make moving cheaper and more "
        "people cross the bar; make it dearer and they stay where they are."
    )
    parts = (_controls(cited), _counts(cited), _drawing(cited), _axes(cited))
    curve = (Markup("<h3>If the cost assumption is wrong</h3>"), _curve(cited))
    body = (lead, *parts, *curve)
    return Section("moves", title, "Move map", joined(body))


def _axes(cited: Cited) -> Markup:
    """Return what the axes are, who is drawn, and whose numbers these are."""
    rows = cited.value("rows")
    measured = (
        "The numbers are those of all test rows"
        if rows["measured"] == rows["test"]
        else f"The numbers are those of the {rows['measured']:,} people drawn alone"
    )
    return paragraph(
        AXES[cited.value("projection")][0],
        " Drawn are all " if rows["shown"] == rows["test"] else " Drawn are ",
        cited.link("rows", "shown"),
        " test people" if rows["shown"] == rows["test"] else " people chosen by lot",
        f". {measured}, people answering by ",
        cited.linked(called(cited.value("response")), "response"),
        ". Approval is worth +1 and refusal −1, so no move that costs more than 2 pays.",
        kind="note",
    )


def _scale_words(scale: float) -> dict[str, str]:
    times = f"{scale:g}"
    long = (
        "at the assumed cost" if scale == 1.0 else f"moving costs {times} times as much as assumed"
    )
    return {"short": f"× {times}", "long": long}


def _scales(cited: Cited) -> list[float]:
    return [entry["scale"] for entry in cited.value("rules", "strategic")]


def _controls(cited: Cited) -> Markup:
    """Return rule and scale as native controls."""
    scales = _scales(cited)
    now = scales.index(1.0)
    radios = "".join(
        f'<label><input type="radio" name="map-rule" value="{rule}"'
        f"{' checked' if rule == 'strategic' else ''}>{words}</label>"
        for rule, words in RULE_WORDS.items()
    )
    said = _scale_words(1.0)
    return Markup(
        '<div class="controls">'
        f"<fieldset><legend>People answer</legend>{radios}</fieldset>"
        '<div class="slider"><label class="top" for="map-scale">What moving costs, as a multiple '
        'of the assumption</label><div class="row">'
        f'<input type="range" id="map-scale" min="0" max="{len(scales) - 1}" step="1" '
        f'value="{now}" aria-valuetext="{said["long"]}" autocomplete="off">'
        f'<output id="map-scale-shown" for="map-scale">{said["short"]}</output></div>'
        '<div class="ends" aria-hidden="true"><span>cheaper</span><span>dearer</span></div>'
        "</div></div>"
    )


def _counts(cited: Cited) -> Markup:
    """Return the numbers of the picture; the script changes them with it."""
    path = ("rules", "strategic", _scales(cited).index(1.0))
    tiles = "".join(
        f"<div><dt>{words}</dt><dd>{_named(cited.link(*path, key, by=by), key)}</dd></div>"
        for key, (words, by) in COLUMNS.items()
    )
    entry = cited.value(*path)
    paid = "" if entry["mean_cost"] is None else f", at a mean cost of {number(entry['mean_cost'])}"
    said = (
        f"{RULE_WORDS['strategic']}, {_scale_words(1.0)['long']}: {share(entry['share_moved'])} of "
        f"people move{paid}; afterwards the rule is right for {share(entry['accuracy'])}."
    )
    return Markup(
        f'<dl class="counts">{tiles}</dl><p class="status" id="map-status" role="status" '
        f'aria-live="polite">{said}</p>'
    )


def _named(link: Markup, key: str) -> Markup:
    return Markup(link.replace("<a ", f'<a id="map-{key}" ', 1))


def _drawing(cited: Cited) -> Markup:
    """Return the picture with its data, and every scale as a table."""
    facts: Any = cited.facts
    across, up = AXES[facts["projection"]][1]
    content = {key: facts[key] for key in ("people", "boundaries", "rules")} | {
        "range": {axis: frame(facts, axis) for axis in ("x", "y")},
        "words": WORDS,
        "rule_words": RULE_WORDS,
        "scale_words": [_scale_words(scale) for scale in _scales(cited)],
        "axes": {
            "x": across,
            "y": up,
            "x_short": across.split(",")[0],
            "y_short": up.split(",")[0],
        },
    }
    said = (
        "Map of people with arrows from where they stand to where they move, and the boundaries "
        "of both rules. The table below holds its numbers for every cost."
    )
    caption = (
        "Dots and crosses are people who stay; arrows are people who move. Solid line: strategic "
        "boundary. Dashed line: blind boundary. Units are standard deviations of the columns."
        if facts["projection"] in ("linear", "parallel")
        else "Dots and crosses are people who stay; arrows are people who move. Solid line: "
        "strategic boundary. Dashed line: blind boundary."
    )
    return Markup(
        '<figure class="move-map"><div class="plot" role="img" '
        f'aria-label="{said}" style="min-height:540px"></div>{embedded(content, "map-data")}'
        f"<figcaption>{caption}</figcaption>{folded(SHEET, _table(cited))}</figure>"
    )


def _table(cited: Cited) -> Markup:
    rows = [
        (
            f"{words}, {_scale_words(scale)['short']}",
            *(cited.link("rules", rule, i, key, by=by) for key, (_, by) in COLUMNS.items()),
        )
        for rule, words in RULES.items()
        for i, scale in enumerate(_scales(cited))
    ]
    head = ("rule and cost", *(words for words, _ in COLUMNS.values()))
    return html_table(head, rows, "What people do at every cost of moving")


def _curve(cited: Cited) -> Markup:
    """Return accuracy of both rules against the cost of moving."""
    scales = _scales(cited)
    dashes = {"blind": "dash", "strategic": "solid"}
    data = [
        {
            "type": "scatter",
            "mode": "lines+markers",
            "name": words,
            "x": scales,
            "y": [entry["accuracy"] for entry in cited.value("rules", rule)],
            "line": {"color": f"var:{rule}", "width": 2.5, "dash": dashes[rule]},
            "marker": {"symbol": "circle-open" if rule == "blind" else "diamond", "size": 8},
            "hovertemplate": "× %{x}: %{y:.1%}<extra>" + words + "</extra>",
        }
        for rule, words in RULES.items()
    ]
    mark = {"color": "var:mark", "dash": "dot", "width": 1.5}
    layout = {
        "xaxis": {
            "type": "log",
            "title": {"text": "cost of moving (1: as assumed)"},
            "tickvals": scales,
            "ticktext": [f"{scale:g}" for scale in scales],
        },
        "yaxis": {"title": {"text": "share judged right"}, "tickformat": ".1%"},
        "shapes": [
            {"type": "line", "x0": 1, "x1": 1, "yref": "paper", "y0": 0, "y1": 1, "line": mark}
        ],
    }
    rows = [
        (
            _scale_words(scale)["short"],
            *(cited.link("rules", rule, i, "accuracy", by=share) for rule in RULES),
        )
        for i, scale in enumerate(scales)
    ]
    return chart(
        "cost-curve",
        "Accuracy of both rules once people have answered them. Dotted: the assumption.",
        "Share judged right by both rules, for moves from an eighth to eight times the cost.",
        {"data": data, "layout": layout, "narrow": _few(scales)},
        html_table(("cost", *RULES.values()), rows, "Share judged right, by the cost of moving"),
    )


def _few(scales: Sequence[float]) -> dict[str, Any]:
    """Return every other mark of the axis, for a narrow screen; the assumption is one of them."""
    shown = scales[scales.index(1.0) % 2 :: 2]
    return {"xaxis": {"tickvals": shown, "ticktext": [f"{scale:g}" for scale in shown]}}


def frame(facts: Mapping[str, Any], axis: str) -> list[float]:
    """Return the ends of an axis: nearly everybody before and after moving, and the bar at 0."""
    ends: Sequence[float] = [
        value for rule in facts["rules"].values() for entry in rule for value in entry[axis]
    ]
    low, high = np.percentile([*facts["people"][axis], *ends], [BESIDE, 100.0 - BESIDE])
    if axis == "x":
        low, high = min(low, 0.0), max(high, 0.0)
    gap = MARGIN * max(high - low, 1e-6)
    return [round(float(low - gap), 4), round(float(high + gap), 4)]
