"""Rows that cannot be used are set aside and listed; a table with too many of them is refused.

Every wrong cell is one line: the row, the column, what was found and what belongs there.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from countermove._types import Index
from countermove.data.checks import NUMBERING, TableProblem
from countermove.data.files import BrokenLine
from countermove.data.parsing import CONTROL
from countermove.data.schema import ROW_ID
from countermove.errors import DataError, shown

ROW, COLUMN, FOUND, EXPECTED = "row", "column", "found", "expected"
LISTED = (ROW, COLUMN, FOUND, EXPECTED, ROW_ID)
"""Columns of a quarantine; rows are counted from 0, the header not counted."""

LONGEST = 200
"""Characters of a cell that are listed."""
MOST_REASONS = 5
"""Reasons that a refusal spells out, the most common first."""


@dataclass(frozen=True)
class Cleaned:
    """A raw table, read.

    Parameters
    ----------
    table
        The typed rows that can be used.
    kept
        Which rows they are, among the ``n_rows`` of the table (of a series: none are named).
    n_rows
        How many rows were read.
    quarantine
        The wrong cells of the others, with the columns `LISTED`, and lines that are no rows.
    labels
        The two values that the outcome has, where it has two, the favourable one first.
    late
        By feature, how many of its dates lie after the outcome's, where there are any.
    """

    table: pd.DataFrame
    kept: Index
    n_rows: int
    quarantine: pd.DataFrame
    labels: tuple[str, ...] = ()
    late: Mapping[str, int] = field(default_factory=dict)


def nothing_wrong() -> pd.DataFrame:
    """Return a quarantine without rows."""
    empty = pd.DataFrame({name: pd.Series(dtype="str") for name in LISTED})
    return empty.astype({ROW: np.int64})


def listed_cells(
    problems: Sequence[TableProblem], cells: pd.DataFrame, ids: pd.Series | None, rows: Index
) -> pd.DataFrame:
    """Return the quarantine of problems whose rows are positions in ``cells``.

    Parameters
    ----------
    problems
        Each names its rows.
    cells
        The table as it came.
    ids
        The row ids, where they are known.
    rows
        The number of each row of ``cells`` in the file.
    """
    parts = [_listed(problem, cells, ids, rows) for problem in problems if problem.rows]
    if not parts:
        return nothing_wrong()
    found = pd.concat(parts, ignore_index=True).sort_values(ROW, kind="stable", ignore_index=True)
    return found.drop_duplicates([ROW, COLUMN, EXPECTED], ignore_index=True)


def _listed(
    problem: TableProblem, cells: pd.DataFrame, ids: pd.Series | None, rows: Index
) -> pd.DataFrame:
    places = np.array(problem.rows, dtype=np.intp)
    names = [name for name in problem.columns if name in cells]
    found = [_texts(cells[name].iloc[places]) for name in names]
    if len(names) > 1:
        found = [name + "=" + words for name, words in zip(names, found, strict=True)]
    words = found[0] if found else pd.Series("", index=range(len(places)), dtype="str")
    for more in found[1:]:
        words = words + ", " + more
    who = pd.Series(None, index=range(len(places)), dtype="str")
    if ids is not None:
        who = _printable(ids.iloc[places].reset_index(drop=True).astype("str"))
    columns = {
        ROW: rows[places],
        COLUMN: ", ".join(problem.columns),
        FOUND: words,
        EXPECTED: problem.expected or problem.text.partition(", in ")[0],
        ROW_ID: who,
    }
    return pd.DataFrame(columns).astype({COLUMN: "str", EXPECTED: "str"})


def _texts(values: pd.Series) -> pd.Series:
    words = values.reset_index(drop=True)
    words = words.astype(object).where(words.notna(), "").map(str).astype("str")
    return _printable(words).str.slice(0, LONGEST)


def _printable(words: pd.Series) -> pd.Series:
    """Return texts whose control characters are spelled out, so that any program opens the list."""
    spelled = words.str.replace(CONTROL, lambda found: repr(found[0])[1:-1], regex=True)
    return spelled.astype("str")


def with_broken(quarantine: pd.DataFrame, broken: Sequence[BrokenLine]) -> pd.DataFrame:
    """Return a quarantine with the lines of a file that are no rows: they have no row number."""
    if not broken:
        return quarantine
    lines = pd.DataFrame(
        {
            ROW: pd.Series(pd.NA, index=range(len(broken)), dtype="Int64"),
            COLUMN: "",
            FOUND: [f"line {each.line}: {each.found}"[:LONGEST] for each in broken],
            EXPECTED: [each.expected for each in broken],
            ROW_ID: pd.Series(None, index=range(len(broken)), dtype="str"),
        }
    )
    return pd.concat([quarantine.astype({ROW: "Int64"}), lines], ignore_index=True)


def joined(parts: Iterable[pd.DataFrame]) -> pd.DataFrame:
    """Return one quarantine of several."""
    found = [part for part in parts if len(part)]
    return pd.concat(found, ignore_index=True) if found else nothing_wrong()


def set_aside(quarantine: pd.DataFrame) -> int:
    """Return how many rows, and lines that are none, a quarantine holds."""
    return _count(quarantine[ROW])


def _count(rows: pd.Series) -> int:
    return int(rows.nunique() + rows.isna().sum())


def reasons(quarantine: pd.DataFrame) -> list[dict[str, Any]]:
    """Return why rows were set aside: column, what was expected, how many rows, an example."""
    groups = quarantine.groupby([COLUMN, EXPECTED], sort=False, dropna=False)
    found = groups.agg(rows=(ROW, _count), example=(FOUND, "first")).reset_index()
    ordered = found.sort_values("rows", ascending=False, kind="stable")
    entries = ordered.astype({"rows": object}).to_dict("records")
    return [{str(key): value for key, value in entry.items()} for entry in entries]


def reason_words(reason: Mapping[str, Any]) -> str:
    """Return one of `reasons` as a line."""
    where = f"column {reason[COLUMN]!r}" if reason[COLUMN] else "the row"
    found = f"found {reason['example']!r}" if reason["example"] else "found nothing"
    return f"{reason['rows']} × {where}: expected {reason[EXPECTED]}, {found}"


def check_share(
    what: str,
    quarantine: pd.DataFrame,
    n_rows: int,
    largest: float,
    error: type[DataError] = DataError,
) -> None:
    """Refuse a table of which more than the largest share would be set aside."""
    count = set_aside(quarantine)
    if count <= largest * n_rows:
        return
    why, rows = reasons(quarantine), quarantine[ROW].dropna().drop_duplicates()
    lines = "".join(f"\n- {reason_words(reason)}" for reason in why[:MOST_REASONS])
    more = f"\n- and {len(why) - MOST_REASONS} more reasons" if len(why) > MOST_REASONS else ""
    raise error(
        f"{what}: {count} of {n_rows} rows ({count / max(n_rows, 1):.1%}) cannot be used, more "
        f"than the {largest:.1%} that may be set aside (`quarantine:` in the schema):{lines}{more}"
        f"\n(rows {shown(rows)}; {NUMBERING})",
        rows=sorted(rows),
    )


def words(count: int, n_rows: int) -> str:
    """Return how many rows were set aside, for people."""
    return f"{count} of {n_rows} rows set aside ({count / max(n_rows, 1):.1%})"


def intake(
    quarantine: pd.DataFrame,
    n_rows: int,
    largest: float,
    labels: Sequence[str] = (),
    **counted: Any,
) -> dict[str, Any]:
    """Return what became of a table's rows, JSON-ready; no cell of anybody set aside is in it.

    ``counted`` is what else was: equal rows, dates after the outcome.
    """
    why = [
        {key: value for key, value in reason.items() if key != "example"}
        for reason in reasons(quarantine)
    ]
    return {
        "rows": n_rows,
        "set_aside": set_aside(quarantine),
        "largest_share": largest,
        "reasons": why,
        "labels": list(labels),
        **counted,
    }
