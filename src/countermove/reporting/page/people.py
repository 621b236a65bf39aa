"""Who moves and who pays: what the rule asks of people, group by group."""

from __future__ import annotations

from typing import Any

from countermove.reporting.numbers import number, share
from countermove.reporting.page.citing import Cited
from countermove.reporting.page.findings import Findings
from countermove.reporting.page.layout import Section, chart, lines_of
from countermove.reporting.page.markup import Markup, absent, folded, joined, name, paragraph
from countermove.reporting.page.plain import html_table
from countermove.reporting.social import BY_GROUP, RULES, SOCIAL

Groups = list[tuple[str, str]]

MEASURES = {
    "burden": "mean least cost of approval for deserving people",
    "recourse": "share of the refused whom their own move brings to approval",
    "utility": "decision (±1) minus what the move cost",
}
SHOWN = {"blind": ("blind", "circle-open"), "calibrated": ("strategic", "diamond")}
"""Rules drawn: their colour and their mark; the calibrated rule is the strategic one published."""
NAMES = {"blind": "Blind rule", "calibrated": "Strategic rule, as published"}


def people_section(found: Findings) -> Section:
    """Return the section: measures of all people, of every group, and recourse by group."""
    cited = found.cited
    parts = [
        paragraph(
            "Two rules can be equally often right and ask very different things of people. A "
            "burden is in units of the cost, where approval rather than refusal is worth 2. The "
            "calibrated rule is the strategic one at its published threshold."
        ),
        _all(cited),
        Markup("<h3>Group by group</h3>"),
        *_groups(cited),
        Markup("<h3>Who has a way back</h3>"),
        *_ways_back(found),
    ]
    return Section("people", "Who moves and who pays", "People", joined(parts))


def _all(cited: Cited) -> Markup:
    rows = [
        (words, *(cited.link("social", "by_model", rule, key) for rule in RULES))
        for key, words in SOCIAL.items()
    ]
    return html_table(("once people have moved", *RULES), rows, "What the rule asks of people")


def _groups(cited: Cited) -> list[Markup]:
    by_group = cited.value("social", "by_group")
    if not by_group:
        return [paragraph("No column of the table is marked sensitive, so nobody is told apart.")]
    lead = "A mean can fall while one group pays more. Groups are the sensitive columns."
    return [paragraph(lead), _figure(cited)]


def _members(cited: Cited) -> Groups:
    by_group = cited.value("social", "by_group")
    return [(column, value) for column, values in by_group.items() for value in values]


def _figure(cited: Cited) -> Markup:
    """Return every measure of every group: a panel per measure, a mark per rule."""
    groups = _members(cited)
    places = [lines_of(f"{column} = {value}", 24) for column, value in groups]
    data = [
        _marks(cited, groups, places, panel, measure, rule)
        for panel, measure in enumerate(BY_GROUP, start=1)
        for rule in SHOWN
    ]
    height, tall = 120 + 26 * len(groups), 80 + 24 * len(groups)
    spec = {
        "data": data,
        "layout": _panels(side_by_side=True),
        "narrow": _panels(side_by_side=False) | {"height": 60 + tall * len(BY_GROUP)},
    }
    tables = joined(_table(cited, groups, measure) for measure in BY_GROUP)
    caption = joined(f"{measure.capitalize()}: {words}. " for measure, words in MEASURES.items())
    said = "Burden, recourse and utility of every group, one mark per rule."
    return chart("groups", caption, said, spec, tables, height)


def _panels(side_by_side: bool) -> dict[str, Any]:
    """Return the axes of the panels: abreast, or below each other on a narrow screen."""
    layout: dict[str, Any] = {}
    share_of, gap = 1.0 / len(BY_GROUP), 0.035 if side_by_side else 0.05
    for i, measure in enumerate(BY_GROUP):
        tail = "" if i == 0 else str(i + 1)
        near = [i * share_of + (gap / 2 if i else 0.0), (i + 1) * share_of - gap / 2]
        far = [1.0 - (i + 1) * share_of + gap, 1.0 - i * share_of - gap / 4]
        layout[f"xaxis{tail}"] = {
            "title": {"text": measure},
            "rangemode": "tozero",
            "nticks": 5,
            "domain": near if side_by_side else [0.0, 1.0],
            "anchor": f"y{tail}",
        }
        layout[f"yaxis{tail}"] = {
            "autorange": "reversed",
            "tickfont": {"size": 11.5},
            "showticklabels": not side_by_side or i == 0,
            "domain": [0.0, 1.0] if side_by_side else far,
            "anchor": f"x{tail}",
        }
    return layout


def _marks(
    cited: Cited,
    groups: Groups,
    places: list[str],
    panel: int,
    measure: str,
    rule: str,
) -> dict[str, Any]:
    """Return one rule's marks in one panel."""
    colour, symbol = SHOWN[rule]
    tail = "" if panel == 1 else str(panel)
    return {
        "type": "scatter",
        "mode": "markers",
        "name": NAMES[rule],
        "legendgroup": rule,
        "showlegend": panel == 1,
        "x": [cited.value("social", "by_group", c, v, rule, measure) for c, v in groups],
        "y": places,
        "xaxis": f"x{tail}",
        "yaxis": f"y{tail}",
        "marker": {
            "symbol": symbol,
            "size": 9,
            "color": f"var:{colour}",
            "line": {"width": 2, "color": f"var:{colour}"},
        },
        "hovertemplate": "%{y}: %{x:.3f}<extra>" + NAMES[rule] + "</extra>",
    }


def _table(cited: Cited, groups: Groups, measure: str) -> Markup:
    rows = [
        (
            joined((name(column), f" = {value}")),
            cited.link("social", "by_group", column, value, "calibrated", "people"),
            *(cited.link("social", "by_group", column, value, rule, measure) for rule in RULES),
        )
        for column, value in groups
    ]
    return html_table((f"{measure} of", "people", *RULES), rows, f"{measure.capitalize()} by group")


def _ways_back(found: Findings) -> list[Markup]:
    """Return the audit of recourse: whom some allowed action brings to approval, by group."""
    if found.audit is None:
        return [absent("Nobody has looked for ways back yet.", found.command("recourse"))]
    cited = Cited("recourse_audit.json", found.audit)
    lead = paragraph(
        "Recourse here means any allowed action, however dear, not only the one a person would "
        "take: of ",
        cited.link("recourse", "refused"),
        " people refused where they stand, ",
        cited.link("recourse", "recourse_neg", "count"),
        " have one (",
        cited.link("recourse", "recourse_neg", "value", by=share),
        "), at a mean cost of ",
        cited.link("recourse", "mean_cost"),
        " and touching ",
        cited.link("recourse", "features_touched", by=lambda value: number(value, ".1f")),
        " columns on average.",
    )
    rows = [
        (
            joined((name(column), f" = {entry['group']}")),
            cited.link("groups", column, i, "refused"),
            cited.link("groups", column, i, "recourse_neg", "value", by=share),
            cited.link("groups", column, i, "mean_cost"),
        )
        for column, entries in found.audit.get("groups", {}).items()
        for i, entry in enumerate(entries)
    ]
    if not rows:
        return [lead]
    head = ("group", "refused", "of them with a way back", "its mean cost")
    table = html_table(head, rows, "Ways back by group")
    return [lead, folded("Ways back, group by group", table)]
