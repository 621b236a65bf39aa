"""The Adult census table, reduced to the nine features of the recourse papers."""

from __future__ import annotations

import numpy as np
import pandas as pd

from countermove.data.checks import Problem, missing_problems, raise_all
from countermove.data.parsing import texts
from countermove.data.recipes.cells import decoded, whole_numbers

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
    """Return the numbers as they are, and four facts as 0 or 1.

    ``married`` is any of the published "Married-…" values; a birthplace that was
    not recorded counts as not the United States, as in the papers. ``sex`` and
    ``race`` stay as words for audits.

    Parameters
    ----------
    raw
        The 15 published columns.
    name
        Dataset named in errors.
    """
    cells = whole_numbers(raw, ADULT_NUMBERS, name)
    problems: list[Problem] = []
    words = {column: texts(raw[column]) for column in ("race", "marital_status", "native_country")}
    for column, values in words.items():
        problems += missing_problems(column, values.isna().to_numpy(np.bool_))
    sex = decoded(raw["sex"], SEX_CODES, problems)
    income = decoded(raw["income"], INCOME_CODES, problems)
    raise_all(problems, name)
    facts = {
        "is_white": words["race"] == "White",
        "native_us": words["native_country"] == "United-States",
        "married": words["marital_status"].str.startswith("Married"),
        "is_male": sex == "male",
    }
    columns: dict[str, object] = {key: values.astype(np.int64) for key, values in cells.items()}
    columns |= {key: values.astype(np.int64) for key, values in facts.items()}
    return pd.DataFrame({**columns, "sex": sex, "race": words["race"], "income": income})
