"""Recipes of the fetched tables: adult, compas, give-me-some-credit, loanapp and mnist-5k.

Every constant is fixed, so that next month's table is treated as this one was; docs/data
says what each recipe does and why.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from countermove._types import Floats, Mask
from countermove.data.checks import (
    TableProblem,
    cell_problem,
    decoded,
    missing_problems,
    raise_all,
    rows_problem,
    whole_numbers,
)
from countermove.data.parsing import numbers, texts
from countermove.data.recipes.embedded import with_digit_labels

ADULT_COLUMNS = (
    "age",
    "workclass",
    "fnlwgt",
    "education",
    "education_num",
    "marital_status",
    "occupation",
    "relationship",
    "race",
    "sex",
    "capital_gain",
    "capital_loss",
    "hours_per_week",
    "native_country",
    "income",
)
"""The published file has no header; these are the names of its description."""

ADULT_NUMBERS = ("age", "education_num", "capital_gain", "capital_loss", "hours_per_week")

# The held-out part of the publication ends its labels with a full stop.
INCOME_CODES = {">50K": ">50K", "<=50K": "<=50K", ">50K.": ">50K", "<=50K.": "<=50K"}
SEX_CODES = {"Male": "male", "Female": "female"}


def adult(raw: pd.DataFrame, name: str = "adult") -> pd.DataFrame:
    """Return the numbers as they are, four facts as 0 or 1, and the groups for audits."""
    cells = whole_numbers(raw, ADULT_NUMBERS, name)
    problems: list[TableProblem] = []
    words = {column: texts(raw[column]) for column in ("race", "marital_status", "native_country")}
    for column, values in words.items():
        problems += missing_problems(column, values.isna().to_numpy(np.bool_))
    sex = decoded(raw["sex"], SEX_CODES, problems)
    income = decoded(raw["income"], INCOME_CODES, problems)
    raise_all(problems, name)
    # A birthplace that was not recorded counts as not the United States, as in the papers.
    facts = {
        "is_white": words["race"] == "White",
        "native_us": words["native_country"] == "United-States",
        "married": words["marital_status"].str.startswith("Married"),
        "is_male": sex == "male",
    }
    columns: dict[str, object] = {key: values.astype(np.int64) for key, values in cells.items()}
    columns |= {key: values.astype(np.int64) for key, values in facts.items()}
    return pd.DataFrame({**columns, "sex": sex, "race": words["race"], "income": income})


COMPAS_COLUMNS = (
    "id",
    "sex",
    "age",
    "race",
    "decile_score",
    "priors_count",
    "days_b_screening_arrest",
    "c_jail_in",
    "c_jail_out",
    "c_charge_degree",
    "is_recid",
    "score_text",
    "two_year_recid",
)

LARGEST_GAP = 30
"""Days between arrest and screening beyond which the two may not belong together."""

COMPAS_DEGREES = {"F": "felony", "M": "misdemeanour"}
COMPAS_STAMP = "%Y-%m-%d %H:%M:%S"


def compas(raw: pd.DataFrame, name: str = "compas") -> pd.DataFrame:
    """Return the people ProPublica analysed, with the papers' features."""
    problems: list[TableProblem] = []
    kept, gap = _analysed(raw, problems)
    sex = decoded(raw["sex"], SEX_CODES, problems, kept)
    degree = decoded(raw["c_charge_degree"], COMPAS_DEGREES, problems, kept)
    race = texts(raw["race"])
    problems += missing_problems("race", race.isna().to_numpy(np.bool_) & kept)
    stay = _days_in_jail(raw, kept, problems)
    raise_all(problems, name)
    columns = ("age", "priors_count", "decile_score", "two_year_recid")
    cells = whole_numbers(raw, columns, name, kept)
    facts: dict[str, object] = {
        "id": texts(raw["id"]),
        "age": cells["age"],
        "priors_count": cells["priors_count"],
        "length_of_stay": stay,
        "days_b_screening_arrest": gap,
        "is_male": sex == "male",
        "is_caucasian": race == "Caucasian",
        "charge_felony": degree == "felony",
        "decile_score": cells["decile_score"],
        "sex": sex,
        "race": race,
        "two_year_recid": cells["two_year_recid"],
    }
    table = pd.DataFrame(facts, index=raw.index)[kept].reset_index(drop=True)
    whole = [column for column in table if column not in ("id", "sex", "race")]
    return table.astype(dict.fromkeys(whole, np.int64))


def _analysed(raw: pd.DataFrame, problems: list[TableProblem]) -> tuple[Mask, Floats]:
    """Return which rows ProPublica keeps, and the days between arrest and screening."""
    gap, _, strange = numbers(raw["days_b_screening_arrest"])
    problems += cell_problem("days_b_screening_arrest", "not a number", strange, "a number")
    known = texts(raw["is_recid"], numeric=True) != "-1"
    traffic = texts(raw["c_charge_degree"]) == "O"
    scored = ~texts(raw["score_text"]).isin(["N/A"])
    kept = (np.abs(gap) <= LARGEST_GAP) & (known & ~traffic & scored).to_numpy(np.bool_)
    return kept, gap


def _days_in_jail(raw: pd.DataFrame, kept: Mask, problems: list[TableProblem]) -> Floats:
    """Return the whole days from booking to release, rounded down."""
    stamps = {}
    for column in ("c_jail_in", "c_jail_out"):
        stamps[column] = pd.to_datetime(texts(raw[column]), format=COMPAS_STAMP, errors="coerce")
        broken = stamps[column].isna().to_numpy(np.bool_) & kept
        problems += cell_problem(column, "not a date and time", broken, "a date and time")
    stay = (stamps["c_jail_out"] - stamps["c_jail_in"]).dt.days
    return np.asarray(stay, dtype=np.float64)


GMSC_PAST_DUE = (
    "NumberOfTime30-59DaysPastDueNotWorse",
    "NumberOfTime60-89DaysPastDueNotWorse",
    "NumberOfTimes90DaysLate",
)
GMSC_COUNTS = (
    "age",
    *GMSC_PAST_DUE,
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
    *GMSC_COUNTS,
)

USUAL_INCOME = 5400.0
"""USD a month: the median of the incomes that are known."""

USUAL_DEPENDENTS = 0.0
"""The median where known."""

GMSC_CODED = 96
"""From here on a count of late payments is a code (96 or 98), not a count."""

LARGEST_UTILIZATION, LARGEST_DEBT_RATIO, LARGEST_INCOME = 2.0, 5.0, 50_000.0
"""Caps: beyond them the published cells are amounts in a column of shares, or slips."""


def give_me_some_credit(raw: pd.DataFrame, name: str = "give-me-some-credit") -> pd.DataFrame:
    """Fill, decode and cap, with a column for each that says where."""
    cells = whole_numbers(raw, GMSC_COUNTS, name)
    problems: list[TableProblem] = []
    utilization = _numbers(raw, "RevolvingUtilizationOfUnsecuredLines", problems)
    debt = _numbers(raw, "DebtRatio", problems)
    income = _numbers(raw, "MonthlyIncome", problems, may_miss=True)
    dependents = _numbers(raw, "NumberOfDependents", problems, may_miss=True)
    raise_all(problems, name)
    unknown = np.isnan(income)
    coded = np.any([cells[column] >= GMSC_CODED for column in GMSC_PAST_DUE], axis=0)
    # Without an income, the published ratio holds the payments themselves.
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
    columns |= {column: cells[column].astype(np.int64) for column in GMSC_COUNTS}
    columns |= {
        column: np.where(cells[column] >= GMSC_CODED, 0, cells[column]).astype(np.int64)
        for column in GMSC_PAST_DUE
    }
    table = pd.DataFrame(columns)
    bands = pd.cut(
        table["age"], [-np.inf, 24, 61, np.inf], labels=["under 25", "25 to 61", "62 or over"]
    )
    return table.assign(age_band=bands.astype(str))


def _numbers(
    raw: pd.DataFrame, column: str, problems: list[TableProblem], may_miss: bool = False
) -> Floats:
    values, missing, strange = numbers(raw[column])
    if not may_miss:
        problems += missing_problems(column, missing)
    problems += cell_problem(column, "not a number", strange, "a number")
    return values


LOANAPP_RATIOS = ("hrat", "obrat", "loanprc", "unem")
LOANAPP_FACTS = ("sch", "cosign", "chist", "pubrec", "mortlat1", "mortlat2", "vr", "approve")
LOANAPP_RACES = ("white", "black", "hispan")
LOANAPP_GROUPS = {"male": ("female", "male"), "married": ("not married", "married")}

LOANAPP_COLUMNS = (*LOANAPP_RATIOS, *LOANAPP_FACTS, *LOANAPP_RACES, *LOANAPP_GROUPS)

NOT_RECORDED = "not recorded"


def loanapp(raw: pd.DataFrame, name: str = "loanapp") -> pd.DataFrame:
    """Return the ratios and facts as published; race, sex and marital status as words."""
    cells = whole_numbers(raw, (*LOANAPP_FACTS, *LOANAPP_RACES), name)
    problems: list[TableProblem] = []
    of_one_race = np.sum([cells[column] for column in LOANAPP_RACES], axis=0) == 1
    problems += rows_problem("not of exactly one of white, black, hispan", ~of_one_race)
    groups = {}
    for column, words in LOANAPP_GROUPS.items():
        values, missing, strange = numbers(raw[column])
        strange |= ~missing & ~np.isin(values, (0, 1))
        problems += cell_problem(column, "neither 0 nor 1", strange, "0 or 1")
        groups[column] = np.select([missing, values == 0], [NOT_RECORDED, words[0]], words[1])
    raise_all(problems, name)
    columns: dict[str, object] = {column: raw[column] for column in LOANAPP_RATIOS}
    columns |= {column: cells[column].astype(np.int64) for column in LOANAPP_FACTS}
    columns["race"] = np.select(
        [cells["black"] == 1, cells["hispan"] == 1], ["black", "hispanic"], "white"
    )
    return pd.DataFrame({**columns, "sex": groups["male"], "marital_status": groups["married"]})


SIDE = 28
"""Pixels along an edge of an image; 0 is white, 255 black."""

PIXELS = tuple(f"pixel_{row}_{column}" for row in range(SIDE) for column in range(SIDE))
MNIST_COLUMNS = (*PIXELS, "digit")


def mnist(raw: pd.DataFrame, name: str = "mnist-5k") -> pd.DataFrame:
    """Return the pixels, the digit, and ``is_0`` … ``is_9``, each a possible label."""
    return with_digit_labels(raw, MNIST_COLUMNS, name)
