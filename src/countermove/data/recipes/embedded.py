"""Recipes of the embedded tables: credit, german, iris and digits; docs/data has their sheets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from countermove._types import Floats, Mask
from countermove.data.checks import TableProblem, cell_problem, decoded, raise_all, whole_numbers
from countermove.data.parsing import texts

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
