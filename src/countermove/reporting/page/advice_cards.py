"""What a few refused people are told, in the units of the table."""

from __future__ import annotations

from typing import TYPE_CHECKING

from countermove.reporting.numbers import number, share
from countermove.reporting.page.citing import CitedTable
from countermove.reporting.page.findings import Findings
from countermove.reporting.page.layout import Section
from countermove.reporting.page.markup import Markup, absent, html, joined, name, paragraph

if TYPE_CHECKING:
    import pandas as pd

CHANGE = "change:"
"""Prefix of the columns that hold a change in original units, see the advice table."""
PLACES = {0.0: "the smallest change", 0.25: "a small change", 0.5: "a middling change"}
PLACES |= {0.9: "a large change", 1.0: "the largest change"}
"""Which of the people with a way back are shown, by the cost of theirs."""
OTHERS = {
    "PROVEN_NONE": ("no way back: proven", 2),
    "NOT_FOUND": ("no way back found", 1),
}
"""What else is shown, and how often."""


def advice_section(found: Findings) -> Section:
    """Return the section: a handful of cards, or the sentence in their place."""
    title = "What refused people are told"
    cited = found.advised()
    if cited is None:
        missing = absent("Nobody has been advised yet.", found.command("recourse"))
        return Section("advice", title, "Advice", missing)
    cards = _cards(cited)
    if not cards:
        told = paragraph("Nobody in the test rows is refused, so nobody needs advice.")
        return Section("advice", title, "Advice", told)
    lead = paragraph(
        "Real rows of the test table, chosen by what their way back costs. Each lists one set of "
        "changes that leads to approval; others may. All people are in ",
        Markup(f'<a href="{html(cited.file)}">advice.csv</a>'),
        ".",
    )
    body = joined((lead, Markup(f'<ul class="cards">{joined(cards)}</ul>')))
    return Section("advice", title, "Advice", body)


def chosen_rows(advice: pd.DataFrame) -> list[tuple[int, str]]:
    """Return positions of the people shown and why, each person once."""
    status = advice["status"].astype(str).to_numpy()
    order = advice["cost"].to_numpy().argsort(kind="stable")
    way_back = [int(i) for i in order if status[i] == "FOUND"]
    rows: dict[int, str] = {}
    for place, words in PLACES.items():
        if way_back:
            rows.setdefault(way_back[round(place * (len(way_back) - 1))], words)
    for kind, (words, most) in OTHERS.items():
        for i in [int(i) for i in range(len(status)) if status[i] == kind][:most]:
            rows[i] = words
    return list(rows.items())


def steps_of(words: str, changes: int) -> list[str]:
    """Return the steps of a sentence of advice, or the sentence where they cannot be told apart."""
    parts = [part.strip() for part in words.rstrip(".").split("; ")]
    return [f"{part[:1].upper()}{part[1:]}" for part in parts] if len(parts) == changes else [words]


def _cards(cited: CitedTable) -> list[Markup]:
    return [_card(cited, row, words) for row, words in chosen_rows(cited.table)]


def _card(cited: CitedTable, row: int, words: str) -> Markup:
    """Return one person's card."""
    person = cited.table.iloc[row]
    moves = [c for c in cited.table.columns if c.startswith(CHANGE)]
    changes = sum(1 for c in moves if person[c] == person[c] and abs(float(person[c])) > 0.0)
    found = person["status"] == "FOUND"
    facts: list[str] = ["probability ", cited.link(row, "probability", by=share)]
    if found:
        facts += [" → ", cited.link(row, "probability_after", by=share), ", cost "]
        facts += [cited.link(row, "cost", by=lambda value: number(value, ".2f"))]
    steps = "".join(f"<li>{_worded(step)}</li>" for step in steps_of(str(person["words"]), changes))
    return Markup(
        f'<li class="advice {"found" if found else "none"}">'
        f"<h3>Person {html(str(person['row_id']))}: {html(words)}</h3>"
        f'<p class="note">{joined(facts)}</p><ul>{steps}</ul></li>'
    )


def _worded(step: str) -> Markup:
    """Return a step whose long names may break."""
    return joined((name(word) for word in step.split(" ")), " ")
