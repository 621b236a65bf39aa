"""From a raw table to a typed one.

The recipe brings the raw layout to the schema's columns; typing then reads every
column as its kind says. All that cannot be read is reported together.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from countermove.data.checks import (
    Problem,
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
from countermove.data.labels import typed_label
from countermove.data.parsing import is_number, numbers, texts, truth_values
from countermove.data.recipes import apply_recipe
from countermove.data.schema import LABEL, ROW_ID, Feature, Schema
from countermove.data.series import Steps, last_steps, order_steps
from countermove.errors import DataError, shown


def clean(raw: pd.DataFrame, schema: Schema, part_from: int | None = None) -> pd.DataFrame:
    """Return the typed table of a raw one: each row its recipe keeps (of a series: each entity).

    Its columns are ``row_id`` (text, from the id or entity column, or ``r0, r1, …``),
    the features (numeric: float; integer and binary: int; categorical: text), the
    sensitive columns (text, unless they are features as well) and ``label``
    (+1 favourable, -1 otherwise).

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
    long, steps, problems = typed_steps(raw, schema, part_from)
    counted = numbering(len(long), len(raw))
    raise_all(problems, schema.name, counted)
    table = long
    if steps is not None:
        table, problems = last_steps(long, steps, schema)
    if part_from is None:
        problems += constant_problems(table, schema)
    raise_all(problems, schema.name, counted)
    return table.astype({f.name: dtype_of(f) for f in schema.features} | {LABEL: np.int64})


def typed_steps(
    raw: pd.DataFrame, schema: Schema, part_from: int | None = None
) -> tuple[pd.DataFrame, Steps | None, list[Problem]]:
    """Read every cell, and return all that is wrong beside the result.

    Returns
    -------
    tuple
        The typed columns, one row per row of ``raw``; where the steps of a series
        lie; the problems. With problems, the table is not to be used.
    """
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
        steps, found = order_steps(entity, time, schema.series)
        problems += found
        typed[ROW_ID] = texts(entity)
        asked = asked if steps is None else steps.last
    for feature in schema.observed:
        if feature.name in named:
            typed[feature.name] = typed_feature(named[feature.name], feature, problems)
    for column in schema.sensitive:
        if column in named and column not in typed:
            typed[column] = texts(named[column])
            problems += missing_problems(column, typed[column].isna().to_numpy(np.bool_))
    if schema.label.column in named:
        values, whole = named[schema.label.column], part_from is None
        typed[LABEL] = typed_label(values, schema.label, asked, problems, whole)
    table = pd.DataFrame(typed)
    problems += group_problems(table, schema)
    if problems and part_from is None:
        problems += constant_problems(table, schema)
    return table, steps, problems


def _row_ids(
    named: pd.DataFrame, schema: Schema, part_from: int | None, problems: list[Problem]
) -> pd.Series:
    if schema.id is None or schema.id not in named:
        first = part_from or 0
        return pd.Series([f"r{row}" for row in range(first, first + len(named))], dtype="str")
    ids = texts(named[schema.id])
    # Whether an id repeats is known only once every part has been seen.
    problems += id_problems(ids) if part_from is None else missing_id_problems(ids)
    return ids


def typed_feature(values: pd.Series, feature: Feature, problems: list[Problem]) -> pd.Series:
    """Read one column; cells that cannot be read become missing, and a problem."""
    if feature.categories:
        return _typed_categories(values, feature, problems)
    if feature.kind == "binary":
        values = truth_values(values)
    read, missing, unparseable = numbers(values)
    problems += missing_problems(feature.name, missing)
    if unparseable.any():
        examples = dict.fromkeys(repr(str(cell)) for cell in values[unparseable].head(100))
        text = f"column {feature.name!r}: not a number, such as {shown(examples, cap=3)}"
        problems += rows_problem(text, unparseable)
    problems += number_problems(read, feature)
    # One zero: -0.0 and 0.0 are the same value, and must look it when rows are compared.
    return pd.Series(read + 0.0)


def _typed_categories(values: pd.Series, feature: Feature, problems: list[Problem]) -> pd.Series:
    words = texts(values, numeric=all(is_number(text) for text in feature.categories))
    present = words.notna().to_numpy(np.bool_)
    problems += missing_problems(feature.name, ~present)
    problems += category_problems(words, feature, present)
    if feature.kind != "binary":
        return words
    return words.map({text: float(code) for code, text in enumerate(feature.categories)})


def dtype_of(feature: Feature) -> str:
    """Return the type of a feature's column in a typed table."""
    if feature.categorical:
        return "str"
    return "float64" if feature.kind == "numeric" else "int64"
