"""Mortgage applications in Boston, with groups in words for audits."""

from __future__ import annotations

import numpy as np
import pandas as pd

from countermove.data.checks import Problem, raise_all, rows_problem
from countermove.data.parsing import numbers
from countermove.data.recipes.cells import whole_numbers

RATIOS = ("hrat", "obrat", "loanprc", "unem")
FACTS = ("sch", "cosign", "chist", "pubrec", "mortlat1", "mortlat2", "vr", "approve")
RACES = ("white", "black", "hispan")
GROUPS = {"male": ("female", "male"), "married": ("not married", "married")}

LOANAPP_COLUMNS = (*RATIOS, *FACTS, *RACES, *GROUPS)

NOT_RECORDED = "not recorded"


def loanapp(raw: pd.DataFrame, name: str = "loanapp") -> pd.DataFrame:
    """Return the ratios and facts as published; race, sex and marital status as words.

    Parameters
    ----------
    raw
        The published columns that are read.
    name
        Dataset named in errors.
    """
    cells = whole_numbers(raw, (*FACTS, *RACES), name)
    problems: list[Problem] = []
    of_one_race = np.sum([cells[column] for column in RACES], axis=0) == 1
    problems += rows_problem("not of exactly one of white, black, hispan", ~of_one_race)
    groups = {}
    for column, words in GROUPS.items():
        values, missing, strange = numbers(raw[column])
        strange |= ~missing & ~np.isin(values, (0, 1))
        problems += rows_problem(f"column {column!r}: neither 0 nor 1", strange)
        groups[column] = np.select([missing, values == 0], [NOT_RECORDED, words[0]], words[1])
    raise_all(problems, name)
    columns: dict[str, object] = {column: raw[column] for column in RATIOS}
    columns |= {column: cells[column].astype(np.int64) for column in FACTS}
    columns["race"] = np.select(
        [cells["black"] == 1, cells["hispan"] == 1], ["black", "hispanic"], "white"
    )
    return pd.DataFrame({**columns, "sex": groups["male"], "marital_status": groups["married"]})
