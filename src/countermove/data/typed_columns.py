"""The columns of a raw table, read: features by their kind, the label as +1 and -1, the rest.

What is wrong is added to the ``problems`` given; such a cell becomes missing.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from countermove._types import Floats, Mask
from countermove.data.checks import (
    TableProblem,
    category_problems,
    cell_problem,
    missing_problems,
    number_problems,
    rows_problem,
)
from countermove.data.parsing import is_number, numbers, texts, truth_values
from countermove.data.reading import (
    Cells,
    DateCells,
    DateReading,
    NumberReading,
    Reading,
    WordReading,
    until_dates,
)
from countermove.data.schema import Feature, Label, Schema, value_text
from countermove.data.series import read_times
from countermove.errors import nearest, shown


def typed_words(values: pd.Series, reading: Reading | None) -> pd.Series:
    """Return a column as words, in the form that its recipe gives them."""
    return reading.read(values) if isinstance(reading, WordReading) else texts(values)


def typed_time(
    values: pd.Series, column: str, reading: Reading | None, problems: list[TableProblem]
) -> pd.Series:
    """Return numbers or dates; both in one column would depend on which part holds which."""
    read, found = read_times(values, column, reading)
    problems += found
    dates = pd.api.types.is_datetime64_any_dtype(values.dtype) or reading is not None
    if read.dtype != np.float64 and not dates:
        mixed = ~np.isnan(numbers(values)[0])
        problems += cell_problem(column, "a number among dates", mixed, "a date")
    return read


def typed_feature(
    named: pd.DataFrame, feature: Feature, schema: Schema, problems: list[TableProblem]
) -> pd.Series:
    """Read one column; cells that cannot be read become missing, and a problem."""
    values = named[feature.column]
    if feature.categories:
        return _typed_categories(values, feature, problems)
    read, missing, unparseable = feature_numbers(named, feature, schema)
    problems += missing_problems(feature.name, missing) if feature.missing is None else []
    if isinstance(feature.reading, DateReading) and feature.reading.until_column is not None:
        own = feature.reading.dates(values)[2]
        problems += _end_problems(named, feature.reading, schema, unparseable & ~own)
        unparseable = own
    if unparseable.any():
        examples = dict.fromkeys(repr(str(cell)) for cell in values[unparseable].head(100))
        kind = "a date" if isinstance(feature.reading, DateReading) else "a number"
        what = f"not {kind}, such as {shown(examples, cap=3)}"
        problems += cell_problem(feature.name, what, unparseable, kind)
    problems += number_problems(read, feature)
    # One zero: -0.0 and 0.0 are the same value, and must look it when rows are compared.
    return pd.Series(read + 0.0)


def _end(table: pd.DataFrame, reading: DateReading, schema: Schema) -> DateCells | None:
    """Return the moments that are counted to, read by their column's own recipe."""
    return until_dates(table, reading, schema.recipes().get(reading.until_column or ""))


def _end_problems(
    named: pd.DataFrame, reading: DateReading, schema: Schema, endless: Mask
) -> list[TableProblem]:
    """Return the wrong cells of the column that is counted to.

    Unreadable ones are wrong in every row, missing ones where a date is counted (``endless``).
    """
    column, end = reading.until_column, _end(named, reading, schema)
    if column is None or end is None:
        return []
    _, missing, unreadable = end
    what, expected = "a moment that is counted to", "a date"
    problems = cell_problem(column, f"not {expected}, {what}", unreadable, expected)
    return problems + cell_problem(column, f"missing value, {what}", missing & endless, expected)


def feature_numbers(table: pd.DataFrame, feature: Feature, schema: Schema) -> Cells:
    """Return a feature without categories as numbers, which cells are missing or unreadable."""
    values, reading = table[feature.column], feature.reading
    if isinstance(reading, DateReading):
        return reading.read(values, _end(table, reading, schema))
    if feature.kind == "binary":
        values = truth_values(values)
    return reading.read(values) if isinstance(reading, NumberReading) else numbers(values)


def _typed_categories(
    values: pd.Series, feature: Feature, problems: list[TableProblem]
) -> pd.Series:
    words = feature_words(values, feature)
    present = words.notna().to_numpy(np.bool_)
    problems += missing_problems(feature.name, ~present) if feature.missing is None else []
    problems += category_problems(words, feature, present)
    if feature.kind != "binary":
        return words
    return words.map({text: float(code) for code, text in enumerate(feature.categories)})


def feature_words(values: pd.Series, feature: Feature) -> pd.Series:
    """Return a column of categories in their spelling, missing where it holds no value."""
    if isinstance(feature.reading, WordReading):
        return feature.reading.read(values, feature.categories)
    return texts(values, numeric=all(is_number(text) for text in feature.categories))


def dtype_of(feature: Feature) -> str:
    """Return the type of a feature's column in a typed table."""
    if feature.categorical:
        return "str"
    whole = feature.kind != "numeric" and feature.missing is None
    return "int64" if whole else "float64"


def typed_label(
    values: pd.Series, label: Label, asked: Mask, problems: list[TableProblem], whole: bool = True
) -> pd.Series:
    """Return +1 (favourable) and -1 per row; what is wrong is added to ``problems``."""
    # ``asked`` are the rows whose outcome counts: in a series, the last step of each entity.
    # A part of a table (not ``whole``) may hold one outcome only.
    if label.favourable is not None:
        return _one_of_two(values, label, asked, problems, whole)
    if isinstance(label.reading, NumberReading):
        read, missing, unparseable = label.reading.read(values)
    else:
        read, missing, unparseable = numbers(values)
    problems += missing_problems(label.column, missing & asked)
    text, column = f"the label {label.column!r}: not a number", (label.column,)
    problems += rows_problem(text, unparseable & asked, columns=column, expected="a number")
    good, rule = _within(read, label)
    judged = asked & ~np.isnan(read)
    if whole and judged.any() and len(set(good[judged])) == 1:
        some = "every" if good[judged].all() else "no"
        text = f"the label {label.column!r}: {some} row has {rule}; expected both outcomes "
        problems.append(
            TableProblem(text + f"(found {read[judged].min():g} to {read[judged].max():g})")
        )
    return pd.Series(np.where(good, 1, -1))


def _within(read: Floats, label: Label) -> tuple[Mask, str]:
    """Return which numbers are favourable, and the rule in words."""
    if label.at_least is not None:
        return read >= label.at_least, f"at least {label.at_least:g}"
    most = np.inf if label.at_most is None else label.at_most
    return read <= most, f"at most {most:g}"


def _one_of_two(
    values: pd.Series, label: Label, asked: Mask, problems: list[TableProblem], whole: bool
) -> pd.Series:
    column, favourable = label.column, label_values(label)[0]
    words = label_words(values, label)
    missing = words.isna().to_numpy(np.bool_)
    problems += missing_problems(column, missing & asked)
    found = sorted(words[asked].dropna().unique().tolist())
    listed = shown(repr(word) for word in found)
    if label.unfavourable is not None:
        known = label_values(label)
        unknown = asked & ~missing & ~words.isin(known).to_numpy(np.bool_)
        strange = shown(dict.fromkeys(repr(word) for word in words[unknown]))
        text = f"the label {column!r}: {strange} is neither {known[0]!r} nor {known[1]!r}"
        expected = f"{known[0]!r} or {known[1]!r}"
        problems += rows_problem(text, unknown, columns=(column,), expected=expected)
        found = [word for word in found if word in known]
    if found and (len(found) > 2 or (whole and len(found) == 1)):
        many = "one value" if len(found) == 1 else f"{len(found)} values"
        problems.append(TableProblem(f"the label {column!r} has {many}, {listed}; expected two"))
    if found and favourable not in found and (whole or len(found) == 2):
        text = f"the label {column!r} never holds its favourable value {favourable!r}; "
        problems.append(TableProblem(text + nearest(favourable, found)))
    return pd.Series(np.where(words == favourable, 1, -1))


def label_values(label: Label) -> list[str]:
    """Return the values that the schema names, the favourable one first."""
    given = (label.favourable, label.unfavourable)
    return [value_text(value) for value in given if value is not None]


def label_words(values: pd.Series, label: Label) -> pd.Series:
    """Return an outcome of two values in the schema's spelling, missing where it holds none."""
    known = label_values(label)
    if isinstance(label.reading, WordReading):
        return label.reading.read(values, known)
    return texts(values, numeric=is_number(known[0]))
