"""ProPublica's COMPAS table, filtered as ProPublica did and reduced to the papers' features."""

from __future__ import annotations

import numpy as np
import pandas as pd

from countermove._types import Floats, Mask
from countermove.data.checks import Problem, missing_problems, raise_all, rows_problem
from countermove.data.parsing import numbers, texts
from countermove.data.recipes.cells import decoded, whole_numbers

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

SEX_CODES = {"Male": "male", "Female": "female"}
DEGREE_CODES = {"F": "felony", "M": "misdemeanour"}
STAMP = "%Y-%m-%d %H:%M:%S"


def compas(raw: pd.DataFrame, name: str = "compas") -> pd.DataFrame:
    """Return the people ProPublica analysed.

    Left out, as there: a screening more than 30 days from the arrest (or without
    a date), no record of the case, an ordinary traffic offence, no score.

    Parameters
    ----------
    raw
        The columns of the publication that are read; one row per person.
    name
        Dataset named in errors.
    """
    problems: list[Problem] = []
    kept, gap = _analysed(raw, problems)
    sex = decoded(raw["sex"], SEX_CODES, problems, kept)
    degree = decoded(raw["c_charge_degree"], DEGREE_CODES, problems, kept)
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


def _analysed(raw: pd.DataFrame, problems: list[Problem]) -> tuple[Mask, Floats]:
    """Return which rows ProPublica keeps, and the days between arrest and screening."""
    gap, _, strange = numbers(raw["days_b_screening_arrest"])
    problems += rows_problem("column 'days_b_screening_arrest': not a number", strange)
    known = texts(raw["is_recid"], numeric=True) != "-1"
    traffic = texts(raw["c_charge_degree"]) == "O"
    scored = ~texts(raw["score_text"]).isin(["N/A"])
    kept = (np.abs(gap) <= LARGEST_GAP) & (known & ~traffic & scored).to_numpy(np.bool_)
    return kept, gap


def _days_in_jail(raw: pd.DataFrame, kept: Mask, problems: list[Problem]) -> Floats:
    """Return the whole days from booking to release, rounded down."""
    stamps = {}
    for column in ("c_jail_in", "c_jail_out"):
        stamps[column] = pd.to_datetime(texts(raw[column]), format=STAMP, errors="coerce")
        broken = stamps[column].isna().to_numpy(np.bool_) & kept
        problems += rows_problem(f"column {column!r}: not a date and time", broken)
    stay = (stamps["c_jail_out"] - stamps["c_jail_in"]).dt.days
    return np.asarray(stay, dtype=np.float64)
