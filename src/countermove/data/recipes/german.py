"""The Statlog German credit table, its codes spelled out."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd

from countermove.data.checks import Problem, raise_all
from countermove.data.recipes.cells import decoded, whole_numbers

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
GERMAN_NUMBERS = (
    "duration_months",
    "credit_amount",
    "installment_rate",
    "residence_since",
    "age_years",
    "existing_credits",
    "dependants",
)
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


def german(raw: pd.DataFrame, name: str = "german") -> pd.DataFrame:
    """Spell out the codes of the Statlog German credit table.

    "No account" is no amount of money: it is the lowest step of the balance, and a
    column of its own says that there was none, so that a score can tell the two
    apart. ``sex`` and ``age_band`` are derived for audits.

    Parameters
    ----------
    raw
        The 20 attributes and the outcome, with the published codes.
    name
        Dataset named in errors.
    """
    cells = whole_numbers(raw, GERMAN_NUMBERS, name)
    problems: list[Problem] = []
    table = pd.DataFrame(index=raw.index)
    for column in GERMAN_COLUMNS:
        if column in GERMAN_CODES:
            table[column] = decoded(raw[column], GERMAN_CODES[column], problems)
        else:
            table[column] = cells[column].astype(np.int64)
    raise_all(problems, name)
    table["no_checking_account"] = (table["checking_status"] == "no account").astype(np.int64)
    table["savings_unknown"] = (table["savings_status"] == "none or unknown").astype(np.int64)
    table["sex"] = table["personal_status"].str.partition(",")[0]
    bands = pd.cut(
        table["age_years"], [-np.inf, 24, 59, np.inf], labels=["under 25", "25 to 59", "60 or over"]
    )
    table["age_band"] = bands.astype(str)
    return table
