"""Beyond one answer to one rule: retraining, acting together, everybody."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from countermove.reporting.numbers import number, share
from countermove.reporting.page.citing import Cited
from countermove.reporting.page.findings import Findings
from countermove.reporting.page.layout import Section
from countermove.reporting.page.markup import Markup, absent, folded, joined, paragraph
from countermove.reporting.page.plain import html_table

LISTED = 40
"""Rows of results a table shows at most; the file has them all."""


def beyond_section(found: Findings) -> Section:
    """Return a short part per further pipeline, or the sentence in its place."""
    parts = (
        Markup("<h3>People who look ahead</h3>"),
        _lookahead(found),
        Markup("<h3>People who act together</h3>"),
        _collective(found),
        Markup("<h3>Everybody, in parts</h3>"),
        _population(found),
    )
    return Section("beyond", "Beyond one answer to one rule", "Beyond", joined(parts))


def _lookahead(found: Findings) -> Markup:
    if found.lookahead is None:
        what = "Nobody has looked at retraining after retraining for this table."
        return absent(what, found.command("lookahead"))
    cited = Cited("lookahead.json", found.lookahead)
    results = cited.value("results")
    kind = str(cited.value("experiment", "kind")).replace("_", " ")
    lead = paragraph(
        "Retrained again and again on people who think several steps ahead: ",
        cited.linked(kind, "experiment", "kind"),
        " of the look-ahead paper on ",
        cited.link("people"),
        " people.",
    )
    if not results:
        return lead
    columns = list(results[0])
    rows = [
        [_value(cited, i, column) for column in columns] for i in range(min(LISTED, len(results)))
    ]
    head = [column.replace("_", " ") for column in columns]
    table = html_table(head, rows, "What came out of looking ahead")
    return joined((lead, folded("The results", table)))


def _value(cited: Cited, row: int, column: str) -> str:
    value = cited.value("results", row, column)
    by: Callable[[Any], str] = str if isinstance(value, str) else number
    return cited.link("results", row, column, by=by)


def _collective(found: Findings) -> Markup:
    if found.collective is None:
        what = "Nobody has looked at people of this table acting together."
        return absent(
            what, f"kedro run --pipeline=collective --params collective.dataset={found.dataset}"
        )
    cited = Cited("collective.json", found.collective)

    def short(value: float | None) -> str:
        return number(value, ".4g", "none found")

    return paragraph(
        "To bring one person from class ",
        cited.link("query", "start", by=str),
        " to class ",
        cited.link("query", "goal", by=str),
        " by moving alone takes a budget of ",
        cited.link("least_budget", "individual", by=short),
        "; with the help of others, ",
        cited.link("least_budget", "collective", by=short),
        ". Helping changes ",
        cited.link("side_effects", "changed", by=share),
        " of the decisions about others.",
    )


def _population(found: Findings) -> Markup:
    if found.population is None:
        what = "The answer of everybody has not been computed in parts (needed for large tables)."
        return absent(what, found.command("serm_parts"))
    cited = Cited("population.json", found.population)
    rows = [
        (" ".join(path).replace("_", " "), cited.link(*path)) for path in _leaves(found.population)
    ]
    lead = paragraph("The answer of the whole population, computed part by part.")
    table = html_table(("measure", "value"), rows, "The whole population")
    return joined((lead, folded("The numbers", table)))


def _leaves(facts: Any, path: tuple[str, ...] = ()) -> list[tuple[str, ...]]:
    """Return the paths of all numbers in nested mappings."""
    if isinstance(facts, dict):
        return [leaf for key, part in facts.items() for leaf in _leaves(part, (*path, str(key)))]
    return [path] if isinstance(facts, int | float) else []
