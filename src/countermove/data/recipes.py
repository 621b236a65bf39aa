"""From the layout in which a table was published to the columns its schema names.

A recipe keeps the order of the rows, checks the codes it translates, and may offer
more columns than a schema picks. One that leaves rows out says so in its data sheet. Every
constant is fixed, so that next month's table is treated as this one was; docs/data says why.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

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
from countermove.data.schema import Schema, value_text
from countermove.errors import SchemaError, nearest

__all__ = ["RECIPES", "apply_recipe", "outcome_columns", "raw_columns"]

TWD_PER_USD = 32.75
"""Exchange rate of September 2005, the last month of the credit table."""

MONTHS = 6
"""The credit table covers April to September 2005."""

LOW_SPENDING, HIGH_SPENDING = 0.20, 0.80
"""Share of the credit limit below (above) which a month's bill counts as low (high)."""

BILLS = tuple(f"BILL_AMT{month}" for month in range(1, MONTHS + 1))
PAYMENTS = tuple(f"PAY_AMT{month}" for month in range(1, MONTHS + 1))
# The published header skips PAY_1.
DELAYS = ("PAY_0", *(f"PAY_{month}" for month in range(2, MONTHS + 1)))
CREDIT_COLUMNS = (
    "ID",
    "LIMIT_BAL",
    "SEX",
    "EDUCATION",
    "MARRIAGE",
    "AGE",
    *DELAYS,
    *BILLS,
    *PAYMENTS,
    "default payment next month",
)

SEX_CODES = {"1": "male", "2": "female"}


def credit(raw: pd.DataFrame, name: str = "credit") -> pd.DataFrame:
    """Process the UCI credit-default table as the strategic-classification papers do."""
    cells = whole_numbers(raw, CREDIT_COLUMNS, name)
    bills = _dollars(_stack(cells, BILLS))
    payments = _dollars(_stack(cells, PAYMENTS))
    limit = _dollars(cells["LIMIT_BAL"])[:, None]
    delays = np.maximum(_stack(cells, DELAYS), 0)
    overdue = delays > 0
    age = cells["AGE"]
    columns: dict[str, NDArray[np.generic]] = {
        "NoDefaultNextMonth": 1 - cells["default payment next month"],
        "Married": cells["MARRIAGE"] == 1,
        "Single": cells["MARRIAGE"] == 2,
        # The published bands share the age of 40.
        "Age_lt_25": age < 25,
        "Age_in_25_to_40": (age >= 25) & (age <= 40),
        "Age_in_40_to_59": (age >= 40) & (age <= 59),
        "Age_geq_60": age >= 60,
        "EducationLevel": _education(cells["EDUCATION"]),
        "MaxBillAmountOverLast6Months": np.maximum(bills.max(axis=1), 0),
        "MaxPaymentAmountOverLast6Months": np.maximum(payments.max(axis=1), 0),
        "MonthsWithZeroBalanceOverLast6Months": (payments > bills).sum(axis=1),
        "MonthsWithLowSpendingOverLast6Months": (bills < LOW_SPENDING * limit).sum(axis=1),
        "MonthsWithHighSpendingOverLast6Months": (bills > HIGH_SPENDING * limit).sum(axis=1),
        "MostRecentBillAmount": np.maximum(bills[:, 0], 0),
        "MostRecentPaymentAmount": np.maximum(payments[:, 0], 0),
        "TotalOverdueCounts": _spells(overdue),
        "TotalMonthsOverdue": delays.sum(axis=1),
        "HistoryOfOverduePayments": delays.max(axis=1) > 0,
    }
    table = pd.DataFrame({"ID": texts(raw["ID"])})
    for column, values in columns.items():
        table[column] = values.astype(np.int64)
    problems: list[TableProblem] = []
    table["Sex"] = decoded(raw["SEX"], SEX_CODES, problems)
    raise_all(problems, name)
    return table


def _stack(cells: Mapping[str, Floats], columns: Sequence[str]) -> Floats:
    return np.column_stack([cells[column] for column in columns])


def _dollars(amount: Floats) -> Floats:
    """Convert TWD to USD, rounded to tens."""
    return np.round(amount / TWD_PER_USD / 10) * 10


def _education(codes: Floats) -> Floats:
    """Order the published codes: other 0, high school 1, university 2, graduate school 3."""
    known = (codes >= 1) & (codes <= 3)
    return np.where(known, 4 - codes, 0)


def _spells(overdue: Mask) -> NDArray[np.int64]:
    """Count the maximal runs of overdue months: months overdue whose neighbour is not."""
    before = np.zeros_like(overdue)
    before[:, 1:] = overdue[:, :-1]
    return np.asarray((overdue & ~before).sum(axis=1), dtype=np.int64)


GERMAN_CODES: Mapping[str, Mapping[str, str]] = {
    "checking_status": {
        "A11": "overdrawn",
        "A12": "under 200 DM",
        "A13": "200 DM or more",
        "A14": "no account",
    },
    "credit_history": {
        "A30": "no credits or all repaid",
        "A31": "all repaid at this bank",
        "A32": "repaid duly so far",
        "A33": "past delays",
        "A34": "critical or credits elsewhere",
    },
    "purpose": {
        "A40": "new car",
        "A41": "used car",
        "A42": "furniture",
        "A43": "radio or television",
        "A44": "domestic appliances",
        "A45": "repairs",
        "A46": "education",
        "A47": "vacation",
        "A48": "retraining",
        "A49": "business",
        "A410": "other",
    },
    "savings_status": {
        "A61": "under 100 DM",
        "A62": "100 to 499 DM",
        "A63": "500 to 999 DM",
        "A64": "1000 DM or more",
        "A65": "none or unknown",
    },
    "employment_since": {
        "A71": "unemployed",
        "A72": "under 1 year",
        "A73": "1 to 3 years",
        "A74": "4 to 6 years",
        "A75": "7 years or more",
    },
    "personal_status": {
        "A91": "male, divorced or separated",
        "A92": "female, not single",
        "A93": "male, single",
        "A94": "male, married or widowed",
        "A95": "female, single",
    },
    "other_debtors": {"A101": "none", "A102": "co-applicant", "A103": "guarantor"},
    "property": {
        "A121": "real estate",
        "A122": "savings agreement or life insurance",
        "A123": "car or other",
        "A124": "none or unknown",
    },
    "other_installment_plans": {"A141": "bank", "A142": "stores", "A143": "none"},
    "housing": {"A151": "rented", "A152": "owned", "A153": "free"},
    "job": {
        "A171": "unemployed or unskilled non-resident",
        "A172": "unskilled resident",
        "A173": "skilled",
        "A174": "management or highly qualified",
    },
    "telephone": {"A191": "none", "A192": "registered"},
    "foreign_worker": {"A201": "yes", "A202": "no"},
    "credit_risk": {"1": "good", "2": "bad"},
}
GERMAN_COLUMNS = (
    "checking_status",
    "duration_months",
    "credit_history",
    "purpose",
    "credit_amount",
    "savings_status",
    "employment_since",
    "installment_rate",
    "personal_status",
    "other_debtors",
    "residence_since",
    "property",
    "age_years",
    "other_installment_plans",
    "housing",
    "existing_credits",
    "job",
    "dependants",
    "telephone",
    "foreign_worker",
    "credit_risk",
)
GERMAN_NUMBERS = tuple(column for column in GERMAN_COLUMNS if column not in GERMAN_CODES)


def german(raw: pd.DataFrame, name: str = "german") -> pd.DataFrame:
    """Spell out the codes of the Statlog German credit table."""
    cells = whole_numbers(raw, GERMAN_NUMBERS, name)
    problems: list[TableProblem] = []
    table = pd.DataFrame(index=raw.index)
    for column in GERMAN_COLUMNS:
        if column in GERMAN_CODES:
            table[column] = decoded(raw[column], GERMAN_CODES[column], problems)
        else:
            table[column] = cells[column].astype(np.int64)
    raise_all(problems, name)
    # "No account" is no amount of money: it is the lowest step of the balance, and a column of
    # its own says that there was none, so that a score can distinguish the two.
    table["no_checking_account"] = (table["checking_status"] == "no account").astype(np.int64)
    table["savings_unknown"] = (table["savings_status"] == "none or unknown").astype(np.int64)
    table["sex"] = table["personal_status"].str.partition(",")[0]
    bands = pd.cut(
        table["age_years"], [-np.inf, 24, 59, np.inf], labels=["under 25", "25 to 59", "60 or over"]
    )
    table["age_band"] = bands.astype(str)
    return table


SMALL_SIDE = 8
"""Pixels along an edge of a small digit; 0 is white, 16 black."""

SPECIES = ("setosa", "versicolor", "virginica")
IRIS_COLUMNS = ("sepal_length", "sepal_width", "petal_length", "petal_width", "species")
DIGITS_COLUMNS = (
    *(f"pixel_{row}_{col}" for row in range(SMALL_SIDE) for col in range(SMALL_SIDE)),
    "digit",
)


def iris(raw: pd.DataFrame, name: str = "iris") -> pd.DataFrame:
    """Return the four lengths in cm, the species, and ``is_<species>``, each a possible label."""
    species = texts(raw["species"])
    strange = (~species.isin(SPECIES)).to_numpy(np.bool_)
    raise_all(cell_problem("species", "not one of the three", strange, "one of the three"), name)
    labels = {f"is_{kind}": (species == kind).astype(np.int64) for kind in SPECIES}
    return raw[list(IRIS_COLUMNS)].assign(**labels)


def digits(raw: pd.DataFrame, name: str = "digits") -> pd.DataFrame:
    """Return the pixels, the digit, and ``is_0`` … ``is_9``, each a possible label."""
    return with_digit_labels(raw, DIGITS_COLUMNS, name)


def with_digit_labels(raw: pd.DataFrame, columns: Sequence[str], name: str) -> pd.DataFrame:
    """Return some columns of images of digits and ``is_0`` … ``is_9``; refuse other digits."""
    digit = whole_numbers(raw, ("digit",), name)["digit"]
    strange = (digit < 0) | (digit > 9)
    raise_all(cell_problem("digit", "not one of 0 to 9", strange, "0 to 9", digit), name)
    labels = pd.DataFrame({f"is_{d}": (digit == d).astype(np.int64) for d in range(10)})
    return pd.concat([raw[list(columns)], labels], axis=1)


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
SEX_WORDS = {"Male": "male", "Female": "female"}


def adult(raw: pd.DataFrame, name: str = "adult") -> pd.DataFrame:
    """Return the numbers as they are, four facts as 0 or 1, and the groups for audits."""
    cells = whole_numbers(raw, ADULT_NUMBERS, name)
    problems: list[TableProblem] = []
    words = {column: texts(raw[column]) for column in ("race", "marital_status", "native_country")}
    for column, values in words.items():
        problems += missing_problems(column, values.isna().to_numpy(np.bool_))
    sex = decoded(raw["sex"], SEX_WORDS, problems)
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
    sex = decoded(raw["sex"], SEX_WORDS, problems, kept)
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


@dataclass(frozen=True)
class CleaningRecipe:
    """What a published layout must hold, how it is read, and which of its columns are outcomes."""

    columns: tuple[str, ...]
    apply: Callable[[pd.DataFrame, str], pd.DataFrame]
    # Each with a value it may take: applicants have no outcome yet, and the recipe reads one.
    outcome: Mapping[str, str]


RECIPES: Mapping[str, CleaningRecipe] = {
    "adult": CleaningRecipe(ADULT_COLUMNS, adult, {"income": ">50K"}),
    "compas": CleaningRecipe(COMPAS_COLUMNS, compas, {"is_recid": "0", "two_year_recid": "0"}),
    "credit": CleaningRecipe(CREDIT_COLUMNS, credit, {"default payment next month": "0"}),
    "digits": CleaningRecipe(DIGITS_COLUMNS, digits, {"digit": "0"}),
    "german": CleaningRecipe(GERMAN_COLUMNS, german, {"credit_risk": "1"}),
    "give-me-some-credit": CleaningRecipe(
        GMSC_COLUMNS, give_me_some_credit, {"SeriousDlqin2yrs": "0"}
    ),
    "iris": CleaningRecipe(IRIS_COLUMNS, iris, {"species": "setosa"}),
    "loanapp": CleaningRecipe(LOANAPP_COLUMNS, loanapp, {"approve": "1"}),
    "mnist-5k": CleaningRecipe(MNIST_COLUMNS, mnist, {"digit": "0"}),
}


def raw_columns(schema: Schema) -> tuple[str, ...]:
    """Return the columns the raw table must hold: the recipe's, else the schema's."""
    if schema.cleaning is None:
        return schema.raw_columns
    return RECIPES[schema.cleaning].columns


def outcome_columns(schema: Schema) -> dict[str, str]:
    """Return the raw columns that hold the outcome, each with some value it may take."""
    if schema.cleaning is not None:
        return dict(RECIPES[schema.cleaning].outcome)
    label = schema.label
    rule = (label.favourable, label.at_least, label.at_most)
    return {label.column: value_text(next(value for value in rule if value is not None))}


def apply_recipe(raw: pd.DataFrame, schema: Schema) -> pd.DataFrame:
    """Return the columns the schema names, for the rows the recipe keeps."""
    if schema.cleaning is None:
        return raw[[column for column in schema.raw_columns if column in raw]]
    offered = RECIPES[schema.cleaning].apply(raw, schema.name)
    for column in schema.raw_columns:
        if column not in offered:
            raise SchemaError(
                f"schema {schema.name!r}: the recipe {schema.cleaning!r} offers no column "
                f"{column!r}; {nearest(column, map(str, offered.columns))}"
            )
    return offered[list(schema.raw_columns)]
