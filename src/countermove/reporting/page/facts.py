"""The data sheet of the table, and what exactly was run."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from countermove.reporting.numbers import number, share
from countermove.reporting.page.citing import Cited
from countermove.reporting.page.findings import Findings
from countermove.reporting.page.layout import Section
from countermove.reporting.page.markup import Markup, absent, html, joined, name, paragraph
from countermove.reporting.page.plain import html_table
from countermove.reporting.tables import called

CHANGES = {
    "immutable": "nobody can change it",
    "up": "may rise",
    "down": "may fall",
    "both": "may rise or fall",
}
SOURCES = {
    "embedded": "comes with Countermove",
    "fabricated": "made up by Countermove; nobody in it is real",
    "fetched": "fetched from a pinned, hash-checked archive",
    "file": "brought by you",
}


def facts_section(found: Findings) -> Section:
    """Return the section: the table first, the run second."""
    parts = (
        Markup("<h3>The table</h3>"),
        *_sheet(found),
        Markup("<h3>The run</h3>"),
        _run(found),
    )
    return Section("facts", "The data and the run", "Data and run", joined(parts))


def _sheet(found: Findings) -> list[Markup]:
    if found.sheet is None:
        return [absent("The table has not been described yet.", found.command("reporting"))]
    cited = Cited("table_sheet.json", found.sheet)
    label = cited.value("label")
    rule = next(key for key in ("favourable", "at_least", "at_most") if key in label)
    wanted = {"favourable": "is", "at_least": "is at least", "at_most": "is at most"}[rule]
    terms = cited.value("terms")
    entries = [
        ("What it is", cited.linked(cited.value("description") or found.dataset, "description")),
        ("Rows", cited.link("rows")),
        (
            "Favourable outcome",
            joined(
                (
                    f"{label['column']} {wanted} {label[rule]}: ",
                    cited.link("favourable_share", by=share),
                )
            ),
        ),
        ("Where it is from", cited.linked(SOURCES[cited.value("source")], "source")),
        ("Terms", cited.linked(terms or "not on record: those you got the table under", "terms")),
        ("Groups told apart", ", ".join(cited.value("sensitive")) or "none"),
    ]
    if terms:
        entries.append(("Its data sheet", f"docs/data/{found.dataset}.md of the documentation"))
    return [_listed(entries), _columns(cited)]


def _columns(cited: Cited) -> Markup:
    rows = [
        (name(column["name"]), *_column(cited, i, column))
        for i, column in enumerate(cited.value("columns"))
    ]
    head = ("column", "people", "unit", "lowest", "median", "highest")
    table = html_table(head, rows, "What a score reads, and what people may change")
    return Markup(f'<div class="words">{table}</div>')


def _column(cited: Cited, i: int, column: dict[str, Any]) -> list[str]:
    said = [
        cited.linked(CHANGES[column["change"]], "columns", i, "change"),
        column["unit"] or column["kind"],
    ]
    if "values" in column:
        ends = list(column["values"]) or [""]
        return [*said, ends[0], "", ends[-1]]
    keys = ("lowest", "median", "highest")
    return said + [
        cited.link("columns", i, key, by=lambda value: number(value, ",.6g")) for key in keys
    ]


def _run(found: Findings) -> Markup:
    cited = found.cited
    response = cited.value("response")
    cost = response.get("cost")
    entries = [
        ("Seed", cited.link("seed")),
        ("Threshold", cited.link("threshold", by=lambda value: number(value, ".4f"))),
        ("People answer by", cited.linked(called(response["kind"]), "response", "kind")),
        *([("A move costs", cited.linked(_cost(cost), "response", "cost"))] if cost else []),
        ("Rows", _splits(cited)),
        ("Table, SHA-256", cited.link("data_hash", by=str)),
        *_schema(found),
        ("Versions", _versions(cited)),
    ]
    return _listed(entries)


def _cost(cost: dict[str, Any]) -> str:
    """Return a cost in words; its vectors stand in the file."""
    scale = f", scale {cost['scale']:g}" if isinstance(cost.get("scale"), int | float) else ""
    return f"{cost['kind']}{scale}"


def _splits(cited: Cited) -> Markup:
    return joined(
        (joined((cited.link("rows", part), f" {part}")) for part in cited.value("rows")), ", "
    )


def _schema(found: Findings) -> Iterable[tuple[str, str]]:
    if found.sheet is not None:
        cited = Cited("table_sheet.json", found.sheet)
        yield "Schema, SHA-256", cited.link("schema_digest", by=str)


def _versions(cited: Cited) -> Markup:
    packages = cited.value("versions")
    return joined(
        (joined((f"{package} ", cited.link("versions", package, by=str))) for package in packages),
        ", ",
    )


def _listed(entries: Iterable[tuple[str, str]]) -> Markup:
    inner = "".join(f"<dt>{html(term)}</dt><dd>{html(said)}</dd>" for term, said in entries)
    return Markup(f'<dl class="facts">{inner}</dl>')


def foot(found: Findings) -> Markup:
    """Return the last line of the page."""
    return paragraph(
        "Every number links to the file it was read from, which lies beside this page. Made by "
        f"Countermove {found.metrics['versions']['countermove']}."
    )
