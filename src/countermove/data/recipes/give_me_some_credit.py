"""Give Me Some Credit: cells that are missing, coded or out of all proportion are settled.

Every constant is fixed, so that next month's table is treated as this one was.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from countermove._types import Floats
from countermove.data.checks import Problem, missing_problems, raise_all, rows_problem
from countermove.data.parsing import numbers, texts
from countermove.data.recipes.cells import whole_numbers

PAST_DUE = (
    "NumberOfTime30-59DaysPastDueNotWorse",
    "NumberOfTime60-89DaysPastDueNotWorse",
    "NumberOfTimes90DaysLate",
)
COUNTS = (
    "age",
    *PAST_DUE,
    "NumberOfOpenCreditLinesAndLoans",
    "NumberRealEstateLoansOrLines",
    "SeriousDlqin2yrs",
)
GMSC_COLUMNS = (
    "Id",
    "RevolvingUtilizationOfUnsecuredLines",
    "DebtRatio",
    "MonthlyIncome",
    "NumberOfDependents",
    *COUNTS,
)

USUAL_INCOME = 5400.0
"""USD a month: the median of the incomes that are known."""

USUAL_DEPENDENTS = 0.0
"""The median where known."""

CODED = 96
"""From here on a count of late payments is a code (96 or 98), not a count."""

LARGEST_UTILIZATION, LARGEST_DEBT_RATIO, LARGEST_INCOME = 2.0, 5.0, 50_000.0
"""Caps: beyond them the published cells are amounts in a column of shares, or slips."""


def give_me_some_credit(raw: pd.DataFrame, name: str = "give-me-some-credit") -> pd.DataFrame:
    """Fill, decode and cap, with a column for each that says where.

    An unknown income becomes the usual one and ``income_missing`` 1; the debt ratio
    of these people holds the payments themselves, so it is divided by that income.
    Counts of late payments that are codes become 0 and ``past_due_coded`` 1.

    Parameters
    ----------
    raw
        The 11 published columns and the row number ``Id``.
    name
        Dataset named in errors.
    """
    cells = whole_numbers(raw, COUNTS, name)
    problems: list[Problem] = []
    utilization = _numbers(raw, "RevolvingUtilizationOfUnsecuredLines", problems)
    debt = _numbers(raw, "DebtRatio", problems)
    income = _numbers(raw, "MonthlyIncome", problems, may_miss=True)
    dependents = _numbers(raw, "NumberOfDependents", problems, may_miss=True)
    raise_all(problems, name)
    unknown = np.isnan(income)
    coded = np.any([cells[column] >= CODED for column in PAST_DUE], axis=0)
    debt = np.where(unknown, debt / USUAL_INCOME, debt)
    columns: dict[str, object] = {
        "Id": texts(raw["Id"]),
        "RevolvingUtilizationOfUnsecuredLines": np.minimum(utilization, LARGEST_UTILIZATION),
        "DebtRatio": np.minimum(debt, LARGEST_DEBT_RATIO),
        "MonthlyIncome": np.minimum(np.where(unknown, USUAL_INCOME, income), LARGEST_INCOME),
        "income_missing": unknown.astype(np.int64),
        "NumberOfDependents": np.where(np.isnan(dependents), USUAL_DEPENDENTS, dependents),
        "past_due_coded": coded.astype(np.int64),
    }
    columns |= {column: cells[column].astype(np.int64) for column in COUNTS}
    columns |= {
        column: np.where(cells[column] >= CODED, 0, cells[column]).astype(np.int64)
        for column in PAST_DUE
    }
    table = pd.DataFrame(columns)
    bands = pd.cut(
        table["age"], [-np.inf, 24, 61, np.inf], labels=["under 25", "25 to 61", "62 or over"]
    )
    return table.assign(age_band=bands.astype(str))


def _numbers(
    raw: pd.DataFrame, column: str, problems: list[Problem], may_miss: bool = False
) -> Floats:
    values, missing, strange = numbers(raw[column])
    if not may_miss:
        problems += missing_problems(column, missing)
    problems += rows_problem(f"column {column!r}: not a number", strange)
    return values
