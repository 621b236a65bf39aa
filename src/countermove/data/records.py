"""People as they stand at some moment: ids and features, no outcome asked for.

The outcome of people seen right after a deployment is not known yet, and their
features alone say how they moved.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from countermove.data.checks import Problem, id_problems, raise_all
from countermove.data.cleaning import dtype_of, typed_feature
from countermove.data.design_matrix import coded_features
from countermove.data.parsing import texts
from countermove.data.recipes import RECIPES, apply_recipe
from countermove.data.schema import ROW_ID, Schema
from countermove.errors import DataError, shown


def people_records(raw: pd.DataFrame, schema: Schema, name: str, with_ids: bool) -> pd.DataFrame:
    """Return ids (if asked for) and model columns in original units, one row per person.

    Parameters
    ----------
    raw
        The table as read: the schema's columns, or those its recipe reads. Further columns
        are left alone.
    schema
        What the columns mean.
    name
        What errors call the table.
    with_ids
        Whether to read the id column.

    Raises
    ------
    DataError
        One error with every problem; ``rows`` holds all rows concerned.
    """
    if schema.series is not None:
        raise DataError(
            f"table {name!r}: {schema.name!r} is a time series; bring one row per entity and a "
            "schema without `series:`"
        )
    named = _columns(raw, schema, name, with_ids)
    problems: list[Problem] = []
    typed = {f.name: typed_feature(named[f.name], f, problems) for f in schema.features}
    ids = texts(named[schema.id]) if with_ids and schema.id is not None else None
    problems += [] if ids is None else id_problems(ids)
    raise_all(problems, name)
    table = pd.DataFrame(typed).astype({f.name: dtype_of(f) for f in schema.features})
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
    wanted = [*([schema.id] if with_ids else []), *(feature.name for feature in schema.features)]
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
