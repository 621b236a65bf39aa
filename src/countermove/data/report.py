"""What a run would make of a table, reported before it starts, and a table's data sheet.

A table is cleaned, divided and standardised as a run would do it; every problem is
reported at once, then what is sound but doubtful, then what the columns hold.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import pandas as pd

from countermove.data.cleaning import clean_rows
from countermove.data.doubts import doubts, looked_at, protected_features
from countermove.data.fetch import known_facts
from countermove.data.files import RawTable
from countermove.data.quarantine import MOST_REASONS, reason_words, reasons, set_aside, words
from countermove.data.relations import relation_report
from countermove.data.rows import fit_standardiser
from countermove.data.schema import LABEL, Feature, Schema
from countermove.data.splits import split_table
from countermove.errors import DataError

CHANGES = {"immutable": "nobody", "up": "may rise", "down": "may fall", "both": "may change"}
CALIBRATION = "calibration"

SAME = 5e-5
"""Shares of favourable outcomes are on record to four digits."""


@dataclass(frozen=True)
class SplitPlan:
    """How a run would divide the rows, and the calibration rows that its promise needs."""

    fractions: Mapping[str, float]
    seed: int = 0
    balance: bool = False
    max_rows: int | None = None
    calibration_needed: int = 0


@dataclass(frozen=True)
class TableReport:
    """What is wrong, what is doubtful, and what is there, each in lines for people."""

    name: str
    problems: tuple[str, ...]
    warnings: tuple[str, ...]
    summary: tuple[str, ...]
    # The typed table; empty where the raw one cannot be typed.
    table: pd.DataFrame = field(default_factory=pd.DataFrame, repr=False, compare=False)

    @property
    def sound(self) -> bool:
        """Whether a run would accept the table."""
        return not self.problems

    def text(self) -> str:
        """Return the report as it is printed."""
        lines = list(self.problems) + list(self.summary)
        lines += [f"warning: {warning}" for warning in self.warnings]
        verdict = "sound" if self.sound else "not usable yet: fix the above and check again"
        if self.sound and self.warnings:
            verdict += f", with {len(self.warnings)} warning(s)"
        return "\n".join([*lines, f"{self.name}: {verdict}"])


def report_on(given: RawTable | pd.DataFrame, schema: Schema, plan: SplitPlan) -> TableReport:
    """Return what a run would find wrong or doubtful in a raw table, and what is there."""
    whole = given if isinstance(given, RawTable) else RawTable(given)
    try:
        read = clean_rows(whole, schema)
    except DataError as error:
        return TableReport(schema.name, (str(error),), (), ())
    table, raw = read.table, whole.frame
    problems, parts = _rehearsed(table, schema, plan)
    sizes = {name: len(part) for name, part in parts.items()}
    known = raw.iloc[read.kept] if len(read.kept) == len(table) else raw
    possible = relation_report(known.reset_index(drop=True), table, schema)
    problems += possible.problems
    warnings = [*_set_aside(read.quarantine, len(raw) + len(whole.broken))]
    warnings += [*doubts(table, schema, parts, read.late), *possible.warnings]
    if schema.label.date is not None and schema.label.date not in raw.columns:
        warnings.append(
            f"label.date names {schema.label.date!r}, which the table does not have: no feature "
            "is compared with the day of the outcome"
        )
    rows = sizes.get(CALIBRATION, plan.calibration_needed)
    # Where rows belong together, clusters count: `countermove.recourse.check.few_clusters`.
    if rows < plan.calibration_needed and schema.group_by is None:
        warnings.insert(
            0,
            f"{rows} calibration rows cannot carry the promise of recourse; it needs "
            f"{plan.calibration_needed}: bring more rows, enlarge the split, or ask for less",
        )
    summary = (*_summary(raw, table, schema, sizes), *possible.summary)
    return TableReport(schema.name, tuple(problems), tuple(warnings), summary, table)


def _set_aside(quarantine: pd.DataFrame, n_rows: int) -> Iterator[str]:
    """Yield how many rows a run would set aside, and why."""
    if len(quarantine):
        why = "; ".join(map(reason_words, reasons(quarantine)[:MOST_REASONS]))
        yield f"{words(set_aside(quarantine), n_rows)}: {why}"


def _rehearsed(
    table: pd.DataFrame, schema: Schema, plan: SplitPlan
) -> tuple[list[str], dict[str, pd.DataFrame]]:
    """Divide and standardise; return what went wrong and the splits."""
    try:
        parts = split_table(
            table,
            schema,
            plan.fractions,
            plan.seed,
            balance=plan.balance,
            max_rows=plan.max_rows,
        )
    except DataError as error:
        return [str(error)], {}
    try:
        fit_standardiser(next(iter(parts.values())), schema, divide_by_root_d=False)
    except DataError as error:
        return [str(error)], parts
    return [], parts


def _summary(
    raw: pd.DataFrame, table: pd.DataFrame, schema: Schema, sizes: Mapping[str, int]
) -> list[str]:
    good = int((table[LABEL] == 1).sum())
    rate = good / len(table)
    lines = [f"{len(table)} rows, {good} of them favourable ({rate:.1%})"]
    if schema.series is not None:
        steps = f"the last {schema.series.steps} step(s) of each {schema.series.entity!r}"
        lines[0] += f"; {steps}, from {len(raw)} rows"
    if sizes:
        lines.append(", ".join(f"{name} {size}" for name, size in sizes.items()))
    cells = [("column", "kind", "seen", "who")]
    cells += [_row(table[feature.name], feature) for feature in schema.features]
    cells += [
        (name, "sensitive", _few_words(table[name]), "for audits") for name in schema.sensitive
    ]
    widths = [max(len(row[column]) for row in cells) for column in range(len(cells[0]))]
    for row in cells:
        padded = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        lines.append("  ".join(padded).rstrip())
    return lines


def _row(values: pd.Series, feature: Feature) -> tuple[str, str, str, str]:
    """Return name, kind, what was seen and who may change it."""
    kind = feature.kind if feature.group is None else f"one of {feature.group}"
    if feature.categorical:
        seen = _few_words(values)
    elif values.isna().all():
        seen = "no value"
    else:
        unit = f" {feature.unit}" if feature.unit else ""
        seen = f"{values.min():g} to {values.max():g}{unit}"
    return feature.name, kind, seen, _who(feature)


def _who(feature: Feature) -> str:
    """Say what people may do about a feature, between which values and in what steps."""
    words = [CHANGES[feature.change]]
    if feature.change != "immutable":
        if feature.min is not None:
            words.append(f"not below {feature.min:g}")
        if feature.max is not None:
            words.append(f"not above {feature.max:g}")
        if feature.step is not None:
            words.append(f"in steps of {feature.step:g}")
    if feature.suppliable and feature.missing is not None:
        words.append(f"an empty cell can be supplied at {feature.missing.price:g}")
    elif feature.missing is not None and feature.missing.supply:
        words.append("an empty cell can be supplied, in words only: nobody enters a category")
    return ", ".join(words)


def _few_words(values: pd.Series) -> str:
    counts = values.astype("str").value_counts()
    listed = ", ".join(f"{word} ({count})" for word, count in counts.head(3).items())
    return listed + (f" and {len(counts) - 3} more" if len(counts) > 3 else "")


def table_sheet(
    typed: pd.DataFrame,
    schema: Schema,
    intake: Mapping[str, Any] | None = None,
    splits: Mapping[str, pd.DataFrame] | None = None,
) -> dict[str, Any]:
    """Return the data sheet of a typed table, JSON-ready.

    Parameters
    ----------
    typed, schema
        The rows, and what their columns mean.
    intake
        What became of the rows of the file.
    splits
        The rows as they were divided, for what differs between them.
    """
    favourable = float((typed[LABEL] > 0).mean())
    known = known_facts(schema.name)
    # A user's own file may bear the name of a known table: then its terms are not on record.
    same = known and len(typed) == known.rows and abs(favourable - known.favourable) < SAME
    return {
        "name": schema.name,
        "description": schema.description,
        "source": schema.source,
        "terms": known.terms if known and same else None,
        "rows": len(typed),
        "favourable_share": favourable,
        "label": schema.label.to_mapping(),
        "sensitive": list(schema.sensitive),
        "protected": protected_features(looked_at(typed), schema),
        "schema_digest": schema.digest(),
        "columns": [_column(feature, typed[feature.name]) for feature in schema.features],
        "intake": intake,
        "warnings": list(doubts(typed, schema, splits, (intake or {}).get("dated_after"))),
    }


def _column(feature: Feature, values: pd.Series) -> dict[str, Any]:
    """Return what a column means and what it holds: its range, or its categories."""
    about: dict[str, Any] = {"name": feature.name, "kind": feature.kind, "change": feature.change}
    about["unit"] = feature.unit
    if feature.categorical:
        counts = values.astype(str).value_counts()
        return about | {"values": {name: int(counts.get(name, 0)) for name in feature.categories}}
    numbers = values.astype(float)
    lowest, median, highest = (float(numbers.quantile(q)) for q in (0.0, 0.5, 1.0))
    return about | {"lowest": lowest, "median": median, "highest": highest}
