"""Who moves and who pays: what the rule asks of people, group by group."""

from __future__ import annotations

from typing import Any

from countermove.reporting.numbers import number, share
from countermove.reporting.page.citing import Cited
from countermove.reporting.page.findings import Findings
from countermove.reporting.page.layout import Section, chart, grid, lines_of
from countermove.reporting.page.markup import Markup, absent, folded, joined, name, paragraph
from countermove.reporting.page.plain import html_table
from countermove.reporting.social import BY_GROUP, RULES, SOCIAL

MEASURES = {
    "burden": "burden (mean least cost of approval, deserving people)",
    "recourse": "recourse (share of the refused whom their own move brings to approval)",
    "utility": "utility (decision ±1 minus what the move cost)",
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
            "burden is in units of the cost, where approval rather than refusal is worth 2."
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
    figures = [_measure(cited, measure) for measure in BY_GROUP]
    return [
        paragraph("A mean can fall while one group pays more. Groups are the sensitive columns."),
        grid(figure for figure in figures if figure),
    ]


def _members(cited: Cited) -> list[tuple[str, str]]:
    by_group = cited.value("social", "by_group")
    return [(column, value) for column, values in by_group.items() for value in values]


def _measure(cited: Cited, measure: str) -> Markup:
    """Return one measure of every group as a figure; nothing where nobody has it."""
    groups = _members(cited)
    places = [lines_of(f"{column} = {value}", 20) for column, value in groups]

    def at(rule: str) -> list[Any]:
        return [cited.value("social", "by_group", c, v, rule, measure) for c, v in groups]

    if all(value is None for rule in SHOWN for value in at(rule)):
        return Markup("")
    data = [
        {
            "type": "scatter",
            "mode": "markers",
            "name": NAMES[rule],
            "x": at(rule),
            "y": places,
            "marker": {
                "symbol": symbol,
                "size": 9,
                "color": f"var:{colour}",
                "line": {"width": 2, "color": f"var:{colour}"},
            },
            "hovertemplate": "%{y}: %{x:.3f}<extra>" + NAMES[rule] + "</extra>",
        }
        for rule, (colour, symbol) in SHOWN.items()
    ]
    rows = [
        (
            joined((name(column), f" = {value}")),
            cited.link("social", "by_group", column, value, "calibrated", "people"),
            *(cited.link("social", "by_group", column, value, rule, measure) for rule in RULES),
        )
        for column, value in groups
    ]
    table = html_table(
        (f"{measure} of", "people", *RULES), rows, f"{measure.capitalize()} by group"
    )
    layout = {
        "xaxis": {"title": {"text": measure}, "rangemode": "tozero", "nticks": 5},
        "yaxis": {"autorange": "reversed", "tickfont": {"size": 11}},
    }
    caption = MEASURES[measure][0].upper() + MEASURES[measure][1:] + "."
    spec = {"data": data, "layout": layout}
    said = f"{caption} One line per group, one mark per rule."
    return chart(f"group-{measure}", caption, said, spec, table, 110 + 24 * len(groups))


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
