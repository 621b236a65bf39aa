"""What else was run, the data sheet of the table, and what exactly this run was."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from countermove.data import quarantine
from countermove.reporting.citing import Citation, Cited, Row, Text
from countermove.reporting.words import called, number, share

if TYPE_CHECKING:
    from countermove.reporting.page import Findings

LISTED = 40
"""Rows of results a table shows at most; the file has them all."""
WANTED = {"favourable": "is", "at_least": "is at least", "at_most": "is at most"}
"""When a label is favourable, in words."""


def future_facts(found: Findings) -> dict[str, Any]:
    """Return where retraining leads, at other prices too, and what applicants can do together."""
    if found.future is None:
        return {"future": None}
    future = Cited("future.json", found.future)
    threats = enumerate(found.future["collective_threat"].get("segments") or ())
    at = ("collective_threat", "segments")
    shares, courses = _retraining_map(future)
    return {
        "future": future,
        "shares": shares,
        "courses": courses,
        "threats": [future.words(*at, i, "words") for i, _ in threats],
    }


def _retraining_map(future: Cited) -> tuple[list[str], list[Row]]:
    """Return the shares who look ahead, and by price of moving where retraining leads for each."""
    cells = list(enumerate(future.value("retraining").get("map") or ()))
    shares = list(dict.fromkeys(cell["looking_ahead"] for _, cell in cells))
    rows: list[Row] = [
        (
            f"{number(price, '.3g')} × the assumed price",
            *(
                (
                    future.words("retraining", "map", i, "course"),
                    ", ",
                    future.share("retraining", "map", i, "accuracy"),
                )
                for i, cell in cells
                if cell["price"] == price
            ),
        )
        for price in dict.fromkeys(cell["price"] for _, cell in cells)
    ]
    return [f"{share(value, 0)} look ahead" for value in shares], rows


def beyond_facts(found: Findings) -> dict[str, Any]:
    """Return what further pipelines left: looking ahead, acting together, everybody."""
    lookahead, collective, population = (
        None if content is None else Cited(f"{name}.json", content)
        for name, content in (
            ("lookahead", found.lookahead),
            ("collective", found.collective),
            ("population", found.population),
        )
    )
    return {
        "lookahead": None if lookahead is None else _lookahead(lookahead),
        "collective": None if collective is None else _collective(collective),
        "population": None
        if population is None
        else [
            (" ".join(path).replace("_", " "), population.link(*path))
            for path in _leaves(population.facts)
        ],
        "command": f"kedro run --pipeline=collective --params collective.dataset={found.dataset}",
    }


def _lookahead(cited: Cited) -> dict[str, Any]:
    results = cited.value("results")
    columns = list(results[0]) if results else []
    kind = str(cited.value("experiment", "kind")).replace("_", " ")
    return {
        "kind": cited.linked(kind, "experiment", "kind"),
        "people": cited.link("people"),
        "head": [column.replace("_", " ") for column in columns],
        "rows": [
            [_result(cited, i, column) for column in columns]
            for i in range(min(LISTED, len(results)))
        ],
    }


def _result(cited: Cited, row: int, column: str) -> Citation:
    value = cited.value("results", row, column)
    return cited.link("results", row, column, by=str if isinstance(value, str) else number)


def _collective(cited: Cited) -> dict[str, Citation]:
    def budget(value: float | None) -> str:
        return number(value, ".4g", "none found")

    return {
        "start": cited.link("query", "start", by=str),
        "goal": cited.link("query", "goal", by=str),
        "alone": cited.link("least_budget", "individual", by=budget),
        "together": cited.link("least_budget", "collective", by=budget),
        "changed": cited.share("side_effects", "changed"),
    }


def _leaves(facts: Any, path: tuple[str, ...] = ()) -> list[tuple[str, ...]]:
    """Return the paths of all numbers in nested mappings."""
    if isinstance(facts, dict):
        return [leaf for key, part in facts.items() for leaf in _leaves(part, (*path, str(key)))]
    return [path] if isinstance(facts, int | float) else []


def run_facts(found: Findings) -> dict[str, Any]:
    """Return the table's sheet, and the run's seed, threshold, hashes and versions."""
    sheet = None if found.sheet is None else Cited("table_sheet.json", found.sheet)
    response = found.metrics["response"]
    cost = response.get("cost")
    metrics = found.cited
    return {
        "sheet": sheet,
        "favourable": "" if sheet is None else _favourable(sheet.value("label")),
        "columns": [] if sheet is None else _columns(sheet),
        "set_aside": None if sheet is None else _set_aside(sheet),
        "warnings": [] if found.sheet is None else found.sheet.get("warnings", []),
        "response": metrics.linked(called(response["kind"]), "response", "kind"),
        "cost": metrics.linked(_cost(cost), "response", "cost") if cost else None,
        "splits": list(found.metrics["rows"]),
        "packages": list(found.metrics["versions"]),
    }


def _favourable(label: Mapping[str, Any]) -> str:
    rule = next(key for key in WANTED if key in label)
    return f"{label['column']} {WANTED[rule]} {label[rule]}"


def _set_aside(sheet: Cited) -> dict[str, Any] | None:
    """Return how many rows were set aside and why; None where no run has counted them."""
    intake = sheet.value("intake") if "intake" in sheet.facts else None
    if intake is None:
        return None
    why = [
        (reason["column"], reason["expected"], sheet.link("intake", "reasons", i, "rows"))
        for i, reason in enumerate(intake["reasons"])
    ]
    counted = quarantine.words(intake["set_aside"], intake["rows"])
    return {"words": sheet.linked(counted, "intake", "set_aside"), "reasons": why}


def _columns(sheet: Cited) -> list[Row]:
    """Return what every column holds and who may change it."""
    changes = {
        "immutable": "nobody can change it",
        "up": "may rise",
        "down": "may fall",
        "both": "may rise or fall",
    }
    rows: list[Row] = []
    for i, column in enumerate(sheet.value("columns")):
        change = sheet.linked(changes[column["change"]], "columns", i, "change")
        if "values" in column:
            values = list(column["values"]) or [""]
            ends: list[Text] = [values[0], "", values[-1]]
        else:
            keys = ("lowest", "median", "highest")
            ends = [sheet.number("columns", i, key, form=",.6g") for key in keys]
        rows.append((column["name"], change, column["unit"] or column["kind"], *ends))
    return rows


def _cost(cost: Mapping[str, Any]) -> str:
    """Return a cost in words; its vectors stand in the file."""
    scale = f", scale {cost['scale']:g}" if isinstance(cost.get("scale"), int | float) else ""
    return f"{cost['kind']}{scale}"
