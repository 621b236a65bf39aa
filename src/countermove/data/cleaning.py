"""From a raw table to a typed one.

The recipe brings the raw layout to the schema's columns; typing then reads every column as
its kind says. Rows that cannot be read are set aside (`clean_rows`), or refused together (`clean`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from countermove._types import Index, Mask
from countermove.data.checks import (
    TableError,
    TableProblem,
    cell_problem,
    constant_problems,
    group_problems,
    header_problems,
    missing_problems,
    numbering,
    raise_all,
    repeated_id_problems,
    unusable_id_problems,
)
from countermove.data.doubts import dated_after
from countermove.data.files import RawTable
from countermove.data.parsing import numbers, texts
from countermove.data.quarantine import (
    Cleaned,
    check_share,
    joined,
    listed_cells,
    with_broken,
)
from countermove.data.recipes import RECIPES, apply_recipe
from countermove.data.rows import coded_features
from countermove.data.schema import LABEL, ROW_ID, Label, Schema
from countermove.data.series import Steps, last_steps, order_steps
from countermove.data.typed_columns import (
    dtype_of,
    label_values,
    label_words,
    typed_feature,
    typed_label,
    typed_time,
    typed_words,
)
from countermove.errors import DataError, shown


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
    _check_parts(schema, part_from)
    read = _read(raw, schema, part_from, np.arange(len(raw)))
    counted = numbering(len(read.table), len(raw))
    raise_all(read.problems, schema.name, counted)
    return _finished(read, schema, part_from is None, counted)


def clean_rows(
    given: RawTable | pd.DataFrame, schema: Schema, part_from: int | None = None
) -> Cleaned:
    """Return the typed table of the rows that can be used, and the list of those that cannot.

    Parameters
    ----------
    given
        The table as read, with the lines of its file that are no rows, if there are any.
    schema, part_from
        As in `clean`. Of a series, all rows of an entity with a wrong one are set aside.

    Raises
    ------
    DataError
        If the table itself is wrong (a column is missing, a label has three values), or, of a
        whole table, more rows are wrong than ``schema.quarantine`` allows.
    """
    _check_parts(schema, part_from)
    whole = given if isinstance(given, RawTable) else RawTable(given)
    raw, n_lines = whole.frame, len(whole.frame) + len(whole.broken)
    first, places = part_from or 0, np.arange(len(raw))
    found: list[pd.DataFrame] = []
    read, wrong = None, np.zeros(0, dtype=np.bool_)
    while read is None and (len(places) or not found):
        try:
            read = _read(raw.iloc[places], schema, part_from, places, lenient=True)
        except TableError as error:
            # A recipe refuses the raw rows that it cannot translate; it then reads the others.
            if not all(problem.rows for problem in error.problems):
                raise
            cells = raw.iloc[places]
            ids = texts(cells[schema.id]) if schema.id in cells else None
            found.append(listed_cells(error.problems, cells, ids, first + places))
            places = np.delete(places, list(error.rows))
            continue
        if not all(problem.rows for problem in read.problems):
            raise_all(read.problems, schema.name, numbering(len(read.table), len(raw)))
        wrong = _wrong(read, schema)
        problems = read.problems
        if part_from is None and schema.id is not None:
            wrong, repeats = _without_repeats(read, schema.id, wrong)
            problems = [*problems, *repeats]
        found.append(listed_cells(problems, read.cells, read.ids, first + read.rows))
        if schema.series is not None and wrong.any():
            places, read = places[~wrong], None
    quarantine = with_broken(joined(found), whole.broken)
    if part_from is None:
        check_share(f"table {schema.name!r}", quarantine, n_lines, schema.quarantine)
    if read is None:
        return Cleaned(_no_rows(schema), np.arange(0), len(raw), quarantine)
    n_rows = len(read.table) + (len(raw) - len(places))
    used = read if schema.series is not None or not wrong.any() else read.without(wrong)
    counted = numbering(len(used.table), len(raw))
    table = _finished(used, schema, part_from is None, counted)
    late = dated_after(used.cells, schema)
    return Cleaned(table, used.rows, n_rows, quarantine, used.labels(schema.label), late)


def _check_parts(schema: Schema, part_from: int | None) -> None:
    if part_from is not None and schema.series is not None:
        raise DataError(
            f"table {schema.name!r} is a time series: the steps of an entity may lie in several "
            "parts; ingest it in one piece"
        )


@dataclass(frozen=True)
class _ReadRows:
    """A table whose every cell has been read, and all that is wrong with it."""

    cells: pd.DataFrame  # under the schema's names, as they came
    table: pd.DataFrame
    rows: Index  # the number of each row; if a recipe leaves rows out, among those it keeps
    steps: Steps | None
    problems: list[TableProblem]

    @property
    def ids(self) -> pd.Series | None:
        """The row ids, where there are any."""
        return self.table.get(ROW_ID)

    def without(self, wrong: Mask) -> _ReadRows:
        """Return the rows that are not wrong."""
        cells, table = (part[~wrong].reset_index(drop=True) for part in (self.cells, self.table))
        return replace(self, cells=cells, table=table, rows=self.rows[~wrong], problems=[])

    def labels(self, label: Label) -> tuple[str, ...]:
        """Return the two values that the outcome has, the favourable one first; else nothing."""
        if label.favourable is None:
            return ()
        known = label_values(label)
        found = label_words(self.cells[label.column], label).dropna().unique()
        both = tuple(dict.fromkeys([*known, *map(str, found)]))
        return both if len(both) == 2 else ()


def _wrong(read: _ReadRows, schema: Schema) -> Mask:
    """Return which rows are named by a problem; of a series, all rows of their entities."""
    wrong = np.zeros(len(read.table), dtype=np.bool_)
    for problem in read.problems:
        wrong[list(problem.rows)] = True
    if schema.series is not None and read.ids is not None:
        wrong |= read.ids.isin(set(read.ids[wrong].dropna())).to_numpy(np.bool_)
    return wrong


def _without_repeats(read: _ReadRows, column: str, wrong: Mask) -> tuple[Mask, list[TableProblem]]:
    """Return which rows are wrong once ids that right rows repeat are judged, and those ids."""
    repeated = np.zeros(len(read.table), dtype=np.bool_)
    repeated[~wrong] = superfluous(read.table[~wrong])
    ids = read.table[ROW_ID].rename(column)
    return wrong | repeated, repeated_id_problems(ids, repeated)


def _finished(read: _ReadRows, schema: Schema, whole: bool, counted: str) -> pd.DataFrame:
    """Return the typed table of rows that are all right, in the types of its columns."""
    table, problems = read.table, read.problems
    if read.steps is not None:
        table, problems = last_steps(table, read.steps, schema)
    if whole:
        problems = problems + constant_problems(table, schema)
    raise_all(problems, schema.name, counted)
    return table.astype({f.name: dtype_of(f) for f in schema.features} | {LABEL: np.int64})


def _no_rows(schema: Schema) -> pd.DataFrame:
    """Return a typed table without rows."""
    types = {f.name: dtype_of(f) for f in schema.features} | {LABEL: "int64"}
    types |= dict.fromkeys(schema.carried_windows, "float64")
    columns = (*schema.table_columns, *schema.carried_windows)
    return pd.DataFrame({name: pd.Series(dtype=types.get(name, "str")) for name in columns})


def _read(
    raw: pd.DataFrame, schema: Schema, part_from: int | None, places: Index, lenient: bool = False
) -> _ReadRows:
    """Read every cell: typed columns, the steps of a series, and all that is wrong."""
    problems = header_problems(raw, schema)
    numbered = raw.reset_index(drop=True).set_axis([str(name) for name in raw.columns], axis=1)
    # Without a recipe, a column that is missing need not keep the others from being read.
    named = numbered if schema.cleaning is None else apply_recipe(numbered, schema)
    rows = places if len(named) == len(places) else np.arange(len(named))
    typed: dict[str, pd.Series] = {}
    steps, asked = None, np.ones(len(named), dtype=np.bool_)
    if schema.series is None:
        first = part_from or 0
        typed[ROW_ID] = _row_ids(named, schema, first + rows)
        # Whether an id repeats is known only once every part has been seen.
        problems += _id_problems(typed[ROW_ID], part_from is None and not lenient)
    elif {schema.series.entity, schema.series.time} <= set(named.columns):
        entity, time = named[schema.series.entity], named[schema.series.time]
        reading = schema.reading_of(schema.series.time)
        steps, found = order_steps(entity, time, schema.series, reading)
        problems += found
        typed[ROW_ID] = texts(entity)
        asked = asked if steps is None else steps.last
    for feature in schema.observed:
        if feature.column in named:
            typed[feature.name] = typed_feature(named, feature, schema, problems)
    _type_the_rest(named, schema, typed, problems)
    if schema.label.column in named:
        values, whole = named[schema.label.column], part_from is None
        typed[LABEL] = typed_label(values, schema.label, asked, problems, whole)
    typed |= _windows(numbered, len(named), schema, problems)
    table = pd.DataFrame(typed)
    problems += group_problems(table, schema)
    if problems and part_from is None and not lenient:
        problems += constant_problems(table, schema)
    renamed = {f.name: named[f.column] for f in schema.observed if f.column in named}
    return _ReadRows(named.assign(**renamed), table, rows, steps, problems)


def _type_the_rest(
    named: pd.DataFrame, schema: Schema, typed: dict[str, pd.Series], problems: list[TableProblem]
) -> None:
    """Add the columns that are neither features nor the label."""
    words = (*schema.sensitive, *([schema.group_by] if schema.group_by is not None else []))
    for column in words:
        if column in named and column not in typed:
            typed[column] = typed_words(named[column], schema.reading_of(column))
            problems += missing_problems(column, typed[column].isna().to_numpy(np.bool_))
    if schema.time is not None and schema.time in named and schema.time not in typed:
        reading = schema.reading_of(schema.time)
        typed[schema.time] = typed_time(named[schema.time], schema.time, reading, problems)


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
            problems += cell_problem(column, "of a path: not a number", strange, "a number")
        found[carried] = pd.Series(cells)
    return found


def _row_ids(named: pd.DataFrame, schema: Schema, rows: Index) -> pd.Series:
    if schema.id is None or schema.id not in named:
        return pd.Series([f"r{row}" for row in rows.tolist()], dtype="str")
    return texts(named[schema.id])


def _id_problems(ids: pd.Series, whole: bool) -> list[TableProblem]:
    """Return unusable ids and, of a whole table, those that several rows have."""
    several = ids.duplicated(keep=False).to_numpy(np.bool_) & ids.notna().to_numpy(np.bool_)
    repeated = repeated_id_problems(ids, several) if whole else []
    return unusable_id_problems(ids) + repeated


def superfluous(table: pd.DataFrame) -> Mask:
    """Return which typed rows repeat an id and go: all that have it, or of equal ones all but one.

    Rows are compared by what was read from their cells, not by how the cells were written.
    """
    ids = table[ROW_ID]
    several = np.array(ids.duplicated(keep=False), dtype=np.bool_)
    hashes = pd.util.hash_pandas_object(table[several], index=False)
    equal = (hashes.groupby(ids[several]).transform("nunique") == 1).to_numpy(np.bool_)
    several[several] = ~equal | np.asarray(ids[several].duplicated())
    return several


def people_records(raw: pd.DataFrame, schema: Schema, name: str, with_ids: bool) -> pd.DataFrame:
    """Return ids (if wanted) and model columns in original units; extra columns are left alone.

    Cells that the schema lets people lack are NaN.
    """
    if schema.series is not None:
        raise DataError(
            f"table {name!r}: {schema.name!r} is a time series; bring one row per entity and a "
            "schema without `series:`"
        )
    named = _columns(raw, schema, name, with_ids)
    problems: list[TableProblem] = []
    typed = {f.name: typed_feature(named, f, schema, problems) for f in schema.features}
    ids = texts(named[schema.id]) if with_ids and schema.id is not None else None
    problems += [] if ids is None else _id_problems(ids, whole=True)
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
