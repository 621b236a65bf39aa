"""What a run would make of a table, told before it starts.

A table is cleaned, divided and standardised as a run would do it; every problem
is told at once, then what is sound but doubtful, then what the columns hold.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import pandas as pd

from countermove.data.cleaning import clean
from countermove.data.doubts import doubts
from countermove.data.rows import fit_standardiser
from countermove.data.schema import LABEL, Feature, Schema
from countermove.data.splits import split_table
from countermove.errors import DataError

CHANGES = {"immutable": "nobody", "up": "may rise", "down": "may fall", "both": "may change"}
CALIBRATION = "calibration"


@dataclass(frozen=True)
class SplitPlan:
    """How a run would divide the rows; see `split_table`.

    ``calibration_needed`` is the least number of calibration rows for the promise of
    recourse that the run is asked to make.
    """

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

    @property
    def sound(self) -> bool:
        """Whether a run would accept the table."""
        return not self.problems

    def text(self) -> str:
        """Return the report as it is printed."""
        lines = list(self.problems) + list(self.summary)
        lines += [f"warning: {warning}" for warning in self.warnings]
        verdict = "sound" if self.sound else "not usable yet: mend the above and check again"
        if self.sound and self.warnings:
            verdict += f", with {len(self.warnings)} warning(s)"
        return "\n".join([*lines, f"{self.name}: {verdict}"])


def report_on(raw: pd.DataFrame, schema: Schema, plan: SplitPlan) -> TableReport:
    """Return the report on a raw table.

    Parameters
    ----------
    raw
        The table as read.
    schema
        What its columns should mean.
    plan
        How a run would divide it.
    """
    try:
        table = clean(raw, schema)
    except DataError as error:
        return TableReport(schema.name, (str(error),), (), ())
    problems, sizes = _rehearsed(table, schema, plan)
    warnings = list(doubts(table, schema))
    rows = sizes.get(CALIBRATION, plan.calibration_needed)
    if rows < plan.calibration_needed:
        warnings.insert(
            0,
            f"{rows} calibration rows cannot carry the promise of recourse; it needs "
            f"{plan.calibration_needed}: bring more rows, enlarge the split, or ask for less",
        )
    summary = _summary(raw, table, schema, sizes)
    return TableReport(schema.name, tuple(problems), tuple(warnings), tuple(summary))


def _rehearsed(
    table: pd.DataFrame, schema: Schema, plan: SplitPlan
) -> tuple[list[str], dict[str, int]]:
    """Divide and standardise; return what went wrong and the rows per split."""
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
    sizes = {name: len(part) for name, part in parts.items()}
    try:
        fit_standardiser(next(iter(parts.values())), schema, divide_by_root_d=False)
    except DataError as error:
        return [str(error)], sizes
    return [], sizes


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
    else:
        unit = f" {feature.unit}" if feature.unit else ""
        seen = f"{values.min():g} to {values.max():g}{unit}"
    return feature.name, kind, seen, _who(feature)


def _who(feature: Feature) -> str:
    """Say what people may do about a feature, between which values and in what steps."""
    said = [CHANGES[feature.change]]
    if feature.change != "immutable":
        if feature.min is not None:
            said.append(f"not below {feature.min:g}")
        if feature.max is not None:
            said.append(f"not above {feature.max:g}")
        if feature.step is not None:
            said.append(f"in steps of {feature.step:g}")
    return ", ".join(said)


def _few_words(values: pd.Series) -> str:
    counts = values.astype("str").value_counts()
    listed = ", ".join(f"{word} ({count})" for word, count in counts.head(3).items())
    return listed + (f" and {len(counts) - 3} more" if len(counts) > 3 else "")
