"""From a raw table to a typed one.

The recipe brings the raw layout to the schema's columns; typing then reads every column as
its kind says. Rows that cannot be read are set aside (`clean_rows`), or refused together (`clean`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from countermove._types import Floats, Index, Mask
from countermove.data.checks import (
    TableError,
    TableProblem,
    category_problems,
    cell_problem,
    constant_problems,
    group_problems,
    header_problems,
    missing_id_problems,
    missing_problems,
    number_problems,
    numbering,
    raise_all,
    repeated_id_problems,
    rows_problem,
)
from countermove.data.doubts import dated_after
from countermove.data.files import RawTable
from countermove.data.parsing import is_number, numbers, texts, truth_values
from countermove.data.quarantine import (
    Cleaned,
    check_share,
    joined,
    listed_cells,
    with_broken,
)
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
        found.append(listed_cells(read.problems, read.cells, read.ids, first + read.rows))
        wrong = _wrong(read, schema)
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
class _Read:
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

    def without(self, wrong: Mask) -> _Read:
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


def _wrong(read: _Read, schema: Schema) -> Mask:
    """Return which rows are named by a problem; of a series, all rows of their entities."""
    wrong = np.zeros(len(read.table), dtype=np.bool_)
    for problem in read.problems:
        wrong[list(problem.rows)] = True
    if schema.series is not None and read.ids is not None:
        wrong |= read.ids.isin(set(read.ids[wrong].dropna())).to_numpy(np.bool_)
    return wrong


def _finished(read: _Read, schema: Schema, whole: bool, counted: str) -> pd.DataFrame:
    """Return the typed table of rows that are all right, in the types of its columns."""
    table, problems = read.table, read.problems
    if read.steps is not None:
        table, problems = last_steps(table, read.steps, schema)
    if whole:
        problems = problems + constant_problems(table, schema)
    raise_all(problems, schema.name, counted)
    return table.astype({f.name: _dtype_of(f) for f in schema.features} | {LABEL: np.int64})


def _no_rows(schema: Schema) -> pd.DataFrame:
    """Return a typed table without rows."""
    types = {f.name: _dtype_of(f) for f in schema.features} | {LABEL: "int64"}
    types |= dict.fromkeys(schema.carried_windows, "float64")
    columns = (*schema.table_columns, *schema.carried_windows)
    return pd.DataFrame({name: pd.Series(dtype=types.get(name, "str")) for name in columns})


def _read(
    raw: pd.DataFrame, schema: Schema, part_from: int | None, places: Index, lenient: bool = False
) -> _Read:
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
        problems += _id_problems(typed[ROW_ID], named, part_from is None, lenient)
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
    _type_the_rest(named, schema, typed, problems)
    if schema.label.column in named:
        values, whole = named[schema.label.column], part_from is None
        typed[LABEL] = _typed_label(values, schema.label, asked, problems, whole)
    typed |= _windows(numbered, len(named), schema, problems)
    table = pd.DataFrame(typed)
    problems += group_problems(table, schema)
    if problems and part_from is None and not lenient:
        problems += constant_problems(table, schema)
    renamed = {f.name: named[f.column] for f in schema.observed if f.column in named}
    return _Read(named.assign(**renamed), table, rows, steps, problems)


def _type_the_rest(
    named: pd.DataFrame, schema: Schema, typed: dict[str, pd.Series], problems: list[TableProblem]
) -> None:
    """Add the columns that are neither features nor the label."""
    words = (*schema.sensitive, *([schema.group_by] if schema.group_by is not None else []))
    for column in words:
        if column in named and column not in typed:
            typed[column] = _words(named[column], schema.reading_of(column))
            problems += missing_problems(column, typed[column].isna().to_numpy(np.bool_))
    if schema.time is not None and schema.time in named and schema.time not in typed:
        reading = schema.reading_of(schema.time)
        typed[schema.time] = _typed_time(named[schema.time], schema.time, reading, problems)


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


def _id_problems(
    ids: pd.Series, named: pd.DataFrame, whole: bool, lenient: bool
) -> list[TableProblem]:
    """Return missing ids and, of a whole table, those that several rows have."""
    problems = missing_id_problems(ids)
    if not whole:
        return problems
    several = ids.duplicated(keep=False).to_numpy(np.bool_) & ids.notna().to_numpy(np.bool_)
    if lenient and several.any():
        several[several] = superfluous(ids[several], named[several])
    return problems + repeated_id_problems(ids, several)


def superfluous(ids: pd.Series, cells: pd.DataFrame) -> Mask:
    """Return which rows of repeated ids cannot be kept: all, or of equal ones all but the first."""
    hashes = pd.util.hash_pandas_object(cells, index=False).reset_index(drop=True)
    whose = ids.reset_index(drop=True)
    equal = (hashes.groupby(whose).transform("nunique") == 1).to_numpy(np.bool_)
    kept = equal & ~whose.duplicated().to_numpy(np.bool_)
    return np.asarray(~kept)


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
        problems += cell_problem(column, "a number among dates", mixed, "a date")
    return read


def _typed_feature(
    named: pd.DataFrame, feature: Feature, schema: Schema, problems: list[TableProblem]
) -> pd.Series:
    """Read one column; cells that cannot be read become missing, and a problem."""
    values = named[feature.column]
    if feature.categories:
        return _typed_categories(values, feature, problems)
    read, missing, unparseable = feature_numbers(named, feature, schema)
    problems += missing_problems(feature.name, missing) if feature.missing is None else []
    if unparseable.any():
        examples = dict.fromkeys(repr(str(cell)) for cell in values[unparseable].head(100))
        kind = "a date" if isinstance(feature.reading, DateReading) else "a number"
        what = f"not {kind}, such as {shown(examples, cap=3)}"
        problems += cell_problem(feature.name, what, unparseable, kind)
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


def _dtype_of(feature: Feature) -> str:
    """Return the type of a feature's column in a typed table."""
    if feature.categorical:
        return "str"
    whole = feature.kind != "numeric" and feature.missing is None
    return "int64" if whole else "float64"


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
    typed = {f.name: _typed_feature(named, f, schema, problems) for f in schema.features}
    ids = texts(named[schema.id]) if with_ids and schema.id is not None else None
    problems += [] if ids is None else _id_problems(ids, named, whole=True, lenient=False)
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
