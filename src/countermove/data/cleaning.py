"""From a raw table to a typed one.

The recipe brings the raw layout to the schema's columns; typing then reads every
column as its kind says. All that cannot be read is reported together.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from countermove._types import Floats, Mask
from countermove.data.checks import (
    TableProblem,
    category_problems,
    constant_problems,
    group_problems,
    header_problems,
    id_problems,
    missing_id_problems,
    missing_problems,
    number_problems,
    numbering,
    raise_all,
    rows_problem,
)
from countermove.data.parsing import is_number, numbers, texts, truth_values
from countermove.data.reading import (
    Cells,
    DateReading,
    NumberReading,
    Reading,
    WordReading,
    until_dates,
)
from countermove.data.recipes import RECIPES, apply_recipe
from countermove.data.rows import coded_features
from countermove.data.schema import LABEL, ROW_ID, Feature, Label, Schema, value_text
from countermove.data.series import Steps, last_steps, order_steps, read_times
from countermove.errors import DataError, nearest, shown


def clean(raw: pd.DataFrame, schema: Schema, part_from: int | None = None) -> pd.DataFrame:
    """Return the typed table of a raw one: each row its recipe keeps (of a series: each entity).

    Its columns are ``row_id`` (text, from the id or entity column, or ``r0, r1, …``),
    the features (numeric: float; integer and binary: int; categorical: text), the
    sensitive columns and ``group_by`` (text, unless they are features as well), ``time``
    (numbers or dates) and ``label`` (+1 favourable, -1 otherwise).

    Parameters
    ----------
    raw
        The table as read.
    schema
        What its columns mean.
    part_from
        None: ``raw`` is the whole table. A number: it is the part that begins at
        that row of the typed table, and may lack a class or hold a feature that does
        not vary. Series have no parts.

    Raises
    ------
    DataError
        One error with every problem of every column; ``rows`` holds all rows
        concerned, counted from 0 without the header.
    """
    if part_from is not None and schema.series is not None:
        raise DataError(
            f"table {schema.name!r} is a time series: the steps of an entity may lie in several "
            "parts; ingest it in one piece"
        )
    long, steps, problems = _typed_steps(raw, schema, part_from)
    counted = numbering(len(long), len(raw))
    raise_all(problems, schema.name, counted)
    table = long
    if steps is not None:
        table, problems = last_steps(long, steps, schema)
    if part_from is None:
        problems += constant_problems(table, schema)
    raise_all(problems, schema.name, counted)
    return table.astype({f.name: _dtype_of(f) for f in schema.features} | {LABEL: np.int64})


def _typed_steps(
    raw: pd.DataFrame, schema: Schema, part_from: int | None = None
) -> tuple[pd.DataFrame, Steps | None, list[TableProblem]]:
    """Read every cell: return typed columns, the steps of a series, and all that is wrong."""
    problems = header_problems(raw, schema)
    numbered = raw.reset_index(drop=True).set_axis([str(name) for name in raw.columns], axis=1)
    # Without a recipe, a column that is missing need not keep the others from being read.
    named = numbered if schema.cleaning is None else apply_recipe(numbered, schema)
    typed: dict[str, pd.Series] = {}
    steps, asked = None, np.ones(len(named), dtype=np.bool_)
    if schema.series is None:
        typed[ROW_ID] = _row_ids(named, schema, part_from, problems)
    elif {schema.series.entity, schema.series.time} <= set(named.columns):
        entity, time = named[schema.series.entity], named[schema.series.time]
        reading = schema.reading_of(schema.series.time)
        steps, found = order_steps(entity, time, schema.series, reading)
        problems += found
        typed[ROW_ID] = texts(entity)
        asked = asked if steps is None else steps.last
    for feature in schema.observed:
        if feature.column in named:
            typed[feature.name] = _typed_feature(named, feature, schema, problems)
    words = (*schema.sensitive, *([schema.group_by] if schema.group_by is not None else []))
    for column in words:
        if column in named and column not in typed:
            typed[column] = _words(named[column], schema.reading_of(column))
            problems += missing_problems(column, typed[column].isna().to_numpy(np.bool_))
    if schema.time is not None and schema.time in named and schema.time not in typed:
        reading = schema.reading_of(schema.time)
        typed[schema.time] = _typed_time(named[schema.time], schema.time, reading, problems)
    if schema.label.column in named:
        values, whole = named[schema.label.column], part_from is None
        typed[LABEL] = _typed_label(values, schema.label, asked, problems, whole)
    typed |= _windows(numbered, len(named), schema, problems)
    table = pd.DataFrame(typed)
    problems += group_problems(table, schema)
    if problems and part_from is None:
        problems += constant_problems(table, schema)
    return table, steps, problems


def _windows(
    raw: pd.DataFrame, n_rows: int, schema: Schema, problems: list[TableProblem]
) -> dict[str, pd.Series]:
    """Return the raw columns that paths read; a table without them has NaN there."""
    # A recipe that leaves rows out does not say which: nothing is known of its windows.
    found: dict[str, pd.Series] = {}
    if schema.series is not None:
        return found
    for column, carried in zip(schema.window_columns, schema.carried_windows, strict=True):
        cells = np.full(n_rows, np.nan)
        # A table that was typed before holds them under their carried names.
        source = column if column in raw else carried
        if source in raw and len(raw) == n_rows:
            cells, _, strange = numbers(raw[source])
            problems += rows_problem(f"column {column!r} of a path: not a number", strange)
        found[carried] = pd.Series(cells)
    return found


def _row_ids(
    named: pd.DataFrame, schema: Schema, part_from: int | None, problems: list[TableProblem]
) -> pd.Series:
    if schema.id is None or schema.id not in named:
        first = part_from or 0
        return pd.Series([f"r{row}" for row in range(first, first + len(named))], dtype="str")
    ids = texts(named[schema.id])
    # Whether an id repeats is known only once every part has been seen.
    problems += id_problems(ids) if part_from is None else missing_id_problems(ids)
    return ids


def _words(values: pd.Series, reading: Reading | None) -> pd.Series:
    return reading.read(values) if isinstance(reading, WordReading) else texts(values)


def _typed_time(
    values: pd.Series, column: str, reading: Reading | None, problems: list[TableProblem]
) -> pd.Series:
    """Return numbers or dates; both in one column would depend on which part holds which."""
    read, found = read_times(values, column, reading)
    problems += found
    dates = pd.api.types.is_datetime64_any_dtype(values.dtype) or reading is not None
    if read.dtype != np.float64 and not dates:
        mixed = ~np.isnan(numbers(values)[0])
        problems += rows_problem(f"column {column!r}: a number among dates", mixed)
    return read


def _typed_feature(
    named: pd.DataFrame, feature: Feature, schema: Schema, problems: list[TableProblem]
) -> pd.Series:
    """Read one column; cells that cannot be read become missing, and a problem."""
    values = named[feature.column]
    if feature.categories:
        return _typed_categories(values, feature, problems)
    read, missing, unparseable = feature_numbers(named, feature, schema)
    problems += missing_problems(feature.name, missing)
    if unparseable.any():
        examples = dict.fromkeys(repr(str(cell)) for cell in values[unparseable].head(100))
        what = "date" if isinstance(feature.reading, DateReading) else "number"
        text = f"column {feature.name!r}: not a {what}, such as {shown(examples, cap=3)}"
        problems += rows_problem(text, unparseable)
    problems += number_problems(read, feature)
    # One zero: -0.0 and 0.0 are the same value, and must look it when rows are compared.
    return pd.Series(read + 0.0)


def feature_numbers(table: pd.DataFrame, feature: Feature, schema: Schema) -> Cells:
    """Return a feature without categories as numbers, which cells are missing or unreadable."""
    values, reading = table[feature.column], feature.reading
    if isinstance(reading, DateReading):
        own = schema.reading_of(reading.until_column or "")
        moment = own if isinstance(own, DateReading) else None
        return reading.read(values, until_dates(table, reading, moment))
    if feature.kind == "binary":
        values = truth_values(values)
    return reading.read(values) if isinstance(reading, NumberReading) else numbers(values)


def _typed_categories(
    values: pd.Series, feature: Feature, problems: list[TableProblem]
) -> pd.Series:
    words = feature_words(values, feature)
    present = words.notna().to_numpy(np.bool_)
    problems += missing_problems(feature.name, ~present)
    problems += category_problems(words, feature, present)
    if feature.kind != "binary":
        return words
    return words.map({text: float(code) for code, text in enumerate(feature.categories)})


def feature_words(values: pd.Series, feature: Feature) -> pd.Series:
    """Return a column of categories in their spelling, missing where it holds no value."""
    if isinstance(feature.reading, WordReading):
        return feature.reading.read(values, feature.categories)
    return texts(values, numeric=all(is_number(text) for text in feature.categories))


def _dtype_of(feature: Feature) -> str:
    """Return the type of a feature's column in a typed table."""
    if feature.categorical:
        return "str"
    return "float64" if feature.kind == "numeric" else "int64"


def _typed_label(
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
    problems += rows_problem(f"the label {label.column!r}: not a number", unparseable & asked)
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
        problems += rows_problem(text, unknown)
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


def people_records(raw: pd.DataFrame, schema: Schema, name: str, with_ids: bool) -> pd.DataFrame:
    """Return ids (if wanted) and model columns in original units; extra columns are left alone."""
    if schema.series is not None:
        raise DataError(
            f"table {name!r}: {schema.name!r} is a time series; bring one row per entity and a "
            "schema without `series:`"
        )
    named = _columns(raw, schema, name, with_ids)
    problems: list[TableProblem] = []
    typed = {f.name: _typed_feature(named, f, schema, problems) for f in schema.features}
    ids = texts(named[schema.id]) if with_ids and schema.id is not None else None
    problems += [] if ids is None else id_problems(ids)
    raise_all(problems, name)
    table = pd.DataFrame(typed).astype({f.name: _dtype_of(f) for f in schema.features})
    frame = pd.DataFrame(coded_features(table, schema), columns=list(schema.feature_names))
    if ids is not None:
        frame.insert(0, ROW_ID, ids.to_numpy(dtype=object))
    return frame


def _columns(raw: pd.DataFrame, schema: Schema, name: str, with_ids: bool) -> pd.DataFrame:
    """Return the table under the schema's names, by its recipe where it has the raw layout."""
    if with_ids and schema.id is None:
        raise DataError(
            f"table {name!r}: people are matched by the id column, and the schema names none; add "
            "`id:` to the schema, or compare two samples with estimate_people.matched=false"
        )
    if raw.empty:
        raise DataError(f"table {name!r} has no rows; expected at least one")
    named = raw.reset_index(drop=True).set_axis([str(column) for column in raw.columns], axis=1)
    wanted = [*([schema.id] if with_ids else []), *schema.feature_columns]
    recipe = None if schema.cleaning is None else RECIPES[schema.cleaning]
    absent = [str(column) for column in wanted if column not in named.columns]
    if absent and recipe is not None and set(recipe.columns) <= set(named.columns):
        named = apply_recipe(named, schema).reset_index(drop=True)
        absent = [str(column) for column in wanted if column not in named.columns]
    if absent:
        raise DataError(f"table {name!r} lacks the columns {shown(map(repr, absent))}")
    twice = np.unique(named.columns[named.columns.duplicated()])
    if len(twice):
        raise DataError(f"table {name!r} has duplicate columns: {shown(map(repr, twice))}")
    return named
