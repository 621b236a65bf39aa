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
    check_raw,
    constant_problems,
    id_problems,
    missing_id_problems,
    missing_problems,
    number_problems,
    numbering,
    raise_all,
    rows_problem,
)
from countermove.data.parsing import numbers, texts, truth_values
from countermove.data.recipes import apply_recipe
from countermove.data.schema import LABEL, ROW_ID, Feature, Schema, value_text
from countermove.errors import nearest, shown


def clean(raw: pd.DataFrame, schema: Schema, part_from: int | None = None) -> pd.DataFrame:
    """Return the typed table of a raw one: each row that its recipe keeps.

    Its columns are ``row_id`` (text, from the id column or ``r0, r1, …``), the
    features (numeric: float; integer and binary: int; categorical: text), the
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
        not vary.

    Raises
    ------
    DataError
        One error with every problem of every column; ``rows`` holds all rows
        concerned, counted from 0 without the header.
    """
    check_raw(raw, schema)
    numbered = raw.reset_index(drop=True).set_axis([str(name) for name in raw.columns], axis=1)
    named = apply_recipe(numbered, schema)
    problems: list[Problem] = []
    typed: dict[str, pd.Series] = {ROW_ID: _row_ids(named, schema, part_from, problems)}
    for feature in schema.features:
        typed[feature.name] = _typed_feature(named[feature.name], feature, problems)
    for column in schema.sensitive:
        if column not in typed:
            typed[column] = texts(named[column])
            problems += missing_problems(column, typed[column].isna().to_numpy(np.bool_))
    label = named[schema.label.column]
    typed[LABEL] = _typed_label(label, schema, problems, whole=part_from is None)
    table = pd.DataFrame(typed)
    if part_from is None:
        problems += constant_problems(table, schema)
    raise_all(problems, schema.name, numbering(len(table), len(raw)))
    return table.astype({f.name: _dtype(f) for f in schema.features} | {LABEL: np.int64})


def _row_ids(
    named: pd.DataFrame, schema: Schema, part_from: int | None, problems: list[Problem]
) -> pd.Series:
    if schema.id is None:
        first = part_from or 0
        return pd.Series([f"r{row}" for row in range(first, first + len(named))], dtype="str")
    ids = texts(named[schema.id])
    # Whether an id repeats is known only once every part has been seen.
    problems += id_problems(ids) if part_from is None else missing_id_problems(ids)
    return ids


def _typed_feature(values: pd.Series, feature: Feature, problems: list[Problem]) -> pd.Series:
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
    words = texts(values, numeric=all(_is_number(text) for text in feature.categories))
    present = words.notna().to_numpy(np.bool_)
    problems += missing_problems(feature.name, ~present)
    problems += category_problems(words, feature, present)
    if feature.kind != "binary":
        return words
    return words.map({text: float(code) for code, text in enumerate(feature.categories)})


def _typed_label(
    values: pd.Series, schema: Schema, problems: list[Problem], whole: bool
) -> pd.Series:
    """Turn the two values of the label into +1 (favourable) and -1."""
    column = schema.label.column
    favourable = value_text(schema.label.favourable)
    words = texts(values, numeric=_is_number(favourable))
    missing = words.isna().to_numpy(np.bool_)
    problems += missing_problems(column, missing)
    found = sorted(words.dropna().unique().tolist())
    listed = shown(repr(word) for word in found)
    if found and (len(found) > 2 or (whole and len(found) == 1)):
        many = "one value" if len(found) == 1 else f"{len(found)} values"
        problems.append(Problem(f"the label {column!r} has {many}, {listed}; expected two"))
    if found and favourable not in found and (whole or len(found) == 2):
        text = f"the label {column!r} never holds its favourable value {favourable!r}; "
        problems.append(Problem(text + nearest(favourable, found)))
    return pd.Series(np.where(words == favourable, 1, -1))


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _dtype(feature: Feature) -> str:
    if feature.categorical:
        return "str"
    return "float64" if feature.kind == "numeric" else "int64"
