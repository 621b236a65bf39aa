"""What is wrong with a table, all of it at once.

A check returns problems; raising happens once, with every problem in the text
(rows capped) and every row on the error. Rows are counted from 0, the header
not counted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from countermove._types import Floats, Mask
from countermove.data.parsing import CONTROL, EXACT_INTEGERS, numbers, texts
from countermove.data.schema import LABEL, ROW_ID, Feature, Schema
from countermove.errors import DataError, nearest, shown

NUMBERING = "rows are counted from 0, the header not counted"


@dataclass(frozen=True)
class TableProblem:
    """One thing that is wrong, in words.

    Parameters
    ----------
    text
        What is wrong, and where.
    rows
        The rows concerned, which can be set aside; none if the table itself is wrong.
    columns
        The columns whose cells are wrong in those rows.
    expected
        What belongs there.
    """

    text: str
    rows: tuple[int, ...] = ()
    columns: tuple[str, ...] = ()
    expected: str = ""


class TableError(DataError):
    """A table that cannot be used, with every problem of it."""

    def __init__(self, message: str, problems: Sequence[TableProblem] = ()) -> None:
        rows = sorted({row for problem in problems for row in problem.rows})
        super().__init__(message, rows=rows)
        self.problems = tuple(problems)


def raise_all(problems: Sequence[TableProblem], name: str, counted: str = NUMBERING) -> None:
    """Raise one `TableError` with every problem, or none; ``counted`` says how rows are counted."""
    if not problems:
        return
    lines = [problem.text for problem in problems]
    listed = lines[0] if len(lines) == 1 else "".join(f"\n- {line}" for line in lines)
    count = "" if len(lines) == 1 else f"{len(lines)} problems:"
    note = f"\n({counted})" if any(problem.rows for problem in problems) else ""
    raise TableError(f"table {name!r}: {count}{listed}{note}", problems)


def numbering(kept: int, raw: int) -> str:
    """Say how rows are counted; a recipe may have left some out before."""
    return NUMBERING if kept == raw else f"{NUMBERING}, among the {kept} of {raw} rows kept"


def column_problems(
    columns: Iterable[object], expected: Sequence[str], ignore: Sequence[str]
) -> list[TableProblem]:
    """Return every duplicate, missing and extra column of a header; ``ignore`` may be there."""
    found = [str(column) for column in columns]
    twice = [column for column, count in Counter(found).items() if count > 1]
    missing = [column for column in expected if column not in found]
    extra = [c for c in dict.fromkeys(found) if c not in expected and c not in ignore]
    problems = []
    if twice:
        problems.append(TableProblem(f"duplicate columns in the header: {_quoted(twice)}"))
    if missing:
        close = f"; {nearest(missing[0], extra)}" if extra else ""
        problems.append(TableProblem(f"missing columns: {_quoted(missing)}{close}"))
    if extra:
        problems.append(
            TableProblem(
                f"extra columns the schema does not name: {_quoted(extra)}; describe them in "
                "the schema, or list them under `ignore:`"
            )
        )
    return problems


def header_problems(raw: pd.DataFrame, schema: Schema) -> list[TableProblem]:
    """Return what is wrong with the columns of a raw table; refuse one that cannot be read on."""
    from countermove.data.recipes import raw_columns

    expected, found = raw_columns(schema), [str(column) for column in raw.columns]
    beside = [*schema.ignore, *schema.window_columns, *schema.carried_windows]
    beside += [] if schema.label.date is None else [schema.label.date]
    problems = column_problems(found, expected, beside)
    stuck = len(set(found)) < len(found) or not set(expected) & set(found)
    if stuck or (schema.cleaning is not None and not set(expected) <= set(found)):
        raise_all(problems, schema.name)
    if raw.empty:
        raise DataError(f"table {schema.name!r} has no rows; expected at least one")
    return problems


def check_table(table: pd.DataFrame, schema: Schema) -> None:
    """Refuse a typed table that does not hold what its schema says, with every problem at once."""
    carried = schema.carried_windows
    raise_all(column_problems(table.columns, schema.table_columns, carried), schema.name)
    if table.empty:
        raise DataError(f"table {schema.name!r} has no rows; expected at least one")
    problems = [problem for f in schema.features for problem in _column_problems(table[f.name], f)]
    features = {feature.name for feature in schema.features}
    for column in dict.fromkeys((*schema.sensitive, *schema.split_columns)):
        if column not in features:
            problems += missing_problems(column, _mask(table[column].isna()))
    problems += group_problems(table, schema)
    problems += id_problems(table[ROW_ID])
    problems += _label_problems(table[LABEL])
    problems += constant_problems(table, schema)
    raise_all(problems, schema.name)


def number_problems(values: Floats, feature: Feature) -> list[TableProblem]:
    """Return what is wrong with numbers that are there (NaN is another check's matter)."""
    finite = np.isfinite(values)
    wrong = [("infinite value", np.isinf(values), "a finite number")]
    if feature.kind == "integer":
        wrong.append(
            ("not a whole number", finite & (np.floor(values) != values), "a whole number")
        )
        large = finite & (np.abs(values) > EXACT_INTEGERS)
        wrong.append(("whole number beyond 2^53", large, "at most 2^53"))
    if feature.kind == "binary":
        wrong.append(("neither 0 nor 1", finite & (values != 0) & (values != 1), "0 or 1"))
    unit = f" {feature.unit}" if feature.unit else ""
    if feature.min is not None:
        least = f"{feature.min:g}{unit}"
        wrong.append((f"below min {least}", finite & (values < feature.min), f"at least {least}"))
    if feature.max is not None:
        most = f"{feature.max:g}{unit}"
        wrong.append((f"above max {most}", finite & (values > feature.max), f"at most {most}"))
    return [
        problem
        for what, broken, expected in wrong
        for problem in cell_problem(feature.name, what, broken, expected, values)
    ]


def category_problems(values: pd.Series, feature: Feature, present: Mask) -> list[TableProblem]:
    """Return the values that are there but are no category of the feature."""
    unknown = present & ~_mask(values.isin(feature.categories))
    if not unknown.any():
        return []
    strange = sorted({str(value) for value in values[unknown]})
    what = f"unknown category {_quoted(strange)}, {nearest(strange[0], feature.categories)}"
    expected = f"one of {_quoted(feature.categories)}"
    return cell_problem(feature.name, what, unknown, expected)


def group_problems(table: pd.DataFrame, schema: Schema) -> list[TableProblem]:
    """Return the rows in which the columns of a declared group are not exactly one-hot."""
    members: dict[str, list[str]] = {}
    for feature in schema.features:
        if feature.group is not None and feature.name in table:
            members.setdefault(feature.group, []).append(feature.name)
    problems = []
    for group, columns in members.items():
        cells = table[columns].apply(pd.to_numeric, errors="coerce").to_numpy(np.float64)
        broken = np.isin(cells, (0.0, 1.0)).all(axis=1) & (cells.sum(axis=1) != 1.0)
        expected = f"exactly one of {_quoted(columns)} is 1"
        text = f"group {group!r}: not {expected}"
        problems += rows_problem(text, broken, columns=tuple(columns), expected=expected)
    return problems


def missing_problems(column: str, missing: Mask) -> list[TableProblem]:
    """Return the rows without a value."""
    return cell_problem(column, "missing value", missing, "a value")


def id_problems(ids: pd.Series) -> list[TableProblem]:
    """Return missing and repeated ids."""
    repeated = _mask(ids.duplicated(keep=False)) & ~_mask(ids.isna())
    return unusable_id_problems(ids) + repeated_id_problems(ids, repeated)


def repeated_id_problems(ids: pd.Series, repeated: Mask) -> list[TableProblem]:
    """Return the rows whose id is known to be another row's too."""
    named = dict.fromkeys(str(value) for value in ids[repeated])
    text = f"duplicated ids {_quoted(list(named))}; each row needs its own"
    columns = (str(ids.name),) if ids.name is not None else ()
    return rows_problem(text, repeated, columns=columns, expected="an id that no other row has")


def unusable_id_problems(ids: pd.Series) -> list[TableProblem]:
    """Return the rows without an id, and those whose id holds control characters."""
    columns = (str(ids.name),) if ids.name is not None else ()
    problems = rows_problem("missing id", _mask(ids.isna()), columns=columns, expected="an id")
    return problems + control_problems(ids)


def control_problems(ids: pd.Series) -> list[TableProblem]:
    """Return the rows whose id holds a NUL byte or another control character."""
    controlled = _mask(ids.astype("str").str.contains(CONTROL, regex=True, na=False))
    columns = (str(ids.name),) if ids.name is not None else ()
    text, expected = "an id with control characters", "an id without control characters"
    return rows_problem(text, controlled, columns=columns, expected=expected)


def constant_problems(table: pd.DataFrame, schema: Schema) -> list[TableProblem]:
    """Return features that never vary and one-hot categories that never occur."""
    problems = []
    for feature in schema.features:
        if feature.name not in table:
            continue
        held = table[feature.name].dropna()
        if len(held) and (held == held.iloc[0]).all():
            remedy = (
                "leave it out of `series.earlier:`"
                if feature.lag
                else "move it from `features:` to `ignore:`"
            )
            text = (
                f"column {feature.name!r}: constant feature, every row holds {held.iloc[0]!s}; "
                f"a score cannot use it: {remedy}"
            )
            problems.append(TableProblem(text))
        elif feature.kind == "onehot":
            distinct = set(held.unique())
            absent = [category for category in feature.categories if category not in distinct]
            if absent:
                text = (
                    f"column {feature.name!r}: constant model column, the category "
                    f"{_quoted(absent)} never occurs; take it out of the schema"
                )
                problems.append(TableProblem(text))
    return problems


def rows_problem(
    text: str,
    broken: Mask,
    values: Floats | None = None,
    columns: tuple[str, ...] = (),
    expected: str = "",
) -> list[TableProblem]:
    """Return a problem that names the broken rows (and their values), or none."""
    rows = np.flatnonzero(broken)
    if not rows.size:
        return []
    listed = (f"{row} ({values[row]:g})" if values is not None else str(row) for row in rows)
    text = f"{text}, in {rows.size} row(s): {shown(listed)}"
    return [TableProblem(text, tuple(rows.tolist()), columns, expected)]


def cell_problem(
    column: str, what: str, broken: Mask, expected: str, values: Floats | None = None
) -> list[TableProblem]:
    """Return what is wrong with the cells of one column in the broken rows, or nothing."""
    return rows_problem(f"column {column!r}: {what}", broken, values, (column,), expected)


def _column_problems(values: pd.Series, feature: Feature) -> list[TableProblem]:
    missing = _mask(values.isna())
    problems = missing_problems(feature.name, missing) if feature.missing is None else []
    if feature.categorical:
        return problems + category_problems(values, feature, ~missing)
    if not pd.api.types.is_numeric_dtype(values.dtype):
        text = f"column {feature.name!r}: holds {values.dtype}, expected numbers; clean it first"
        return [*problems, TableProblem(text)]
    return problems + number_problems(values.to_numpy(np.float64, na_value=np.nan), feature)


def _label_problems(label: pd.Series) -> list[TableProblem]:
    values = pd.to_numeric(label, errors="coerce").to_numpy(np.float64, na_value=np.nan)
    problems = rows_problem("label neither +1 nor -1", (values != 1) & (values != -1))
    found = [name for name, value in (("+1", 1.0), ("-1", -1.0)) if np.any(values == value)]
    if not problems and len(found) == 1:
        problems = [TableProblem(f"the label has one value, {found[0]}; expected both +1 and -1")]
    return problems


def _mask(values: pd.Series) -> Mask:
    return values.to_numpy(np.bool_)


def _quoted(values: Sequence[str]) -> str:
    return shown(repr(value) for value in values)


def whole_numbers(
    raw: pd.DataFrame, columns: Sequence[str], name: str, among: Mask | None = None
) -> dict[str, Floats]:
    """Parse columns of whole numbers, refusing others in the rows ``among`` that count."""
    problems: list[TableProblem] = []
    counted = np.ones(len(raw), dtype=np.bool_) if among is None else among
    cells: dict[str, Floats] = {}
    for column in columns:
        values, missing, unparseable = numbers(raw[column])
        problems += missing_problems(column, missing & counted)
        problems += cell_problem(column, "not a number", unparseable & counted, "a number")
        fraction = ~missing & ~unparseable & ~(np.isfinite(values) & (np.floor(values) == values))
        whole = "a whole number"
        problems += cell_problem(column, f"not {whole}", fraction & counted, whole, values)
        cells[column] = values
    raise_all(problems, name)
    return cells


def decoded(
    values: pd.Series,
    codes: Mapping[str, str],
    problems: list[TableProblem],
    among: Mask | None = None,
) -> pd.Series:
    """Spell out the codes of one column; an unknown code in a row that counts is a problem."""
    spelled = texts(values, numeric=all(code.isdigit() for code in codes))
    words = spelled.map(codes)
    unknown = words.isna().to_numpy(np.bool_)
    if among is not None:
        unknown = unknown & among
    if unknown.any():
        strange = sorted(set(spelled[unknown].fillna("").tolist()))
        what = f"unknown category {shown(map(repr, strange))}, {nearest(strange[0], codes)}"
        expected = f"one of {shown(map(repr, codes))}"
        problems += cell_problem(str(values.name), what, unknown, expected)
    return words
