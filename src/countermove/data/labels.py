"""The outcome: +1 for what people hope for, -1 for the rest."""

from __future__ import annotations

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from countermove._types import Mask
from countermove.data.checks import Problem, missing_problems, rows_problem
from countermove.data.parsing import is_number, numbers, texts
from countermove.data.schema import Label, value_text
from countermove.errors import nearest, shown


def typed_label(
    values: pd.Series, label: Label, asked: Mask, problems: list[Problem], whole: bool = True
) -> pd.Series:
    """Return +1 (favourable) and -1 per row.

    Parameters
    ----------
    values
        The label column as read.
    label
        Which values are favourable.
    asked
        The rows whose outcome counts; in a series, the last step of each entity.
    problems
        What is wrong is added here.
    whole
        Whether these are all rows; a part of a table may hold one outcome only.
    """
    if label.favourable is not None:
        favourable = value_text(label.favourable)
        return _one_of_two(values, label.column, favourable, asked, problems, whole)
    read, missing, unparseable = numbers(values)
    problems += missing_problems(label.column, missing & asked)
    problems += rows_problem(f"the label {label.column!r}: not a number", unparseable & asked)
    good, rule = _within(read, label)
    judged = asked & ~np.isnan(read)
    if whole and judged.any() and len(set(good[judged])) == 1:
        some = "every" if good[judged].all() else "no"
        text = f"the label {label.column!r}: {some} row has {rule}; expected both outcomes "
        problems.append(Problem(text + f"(found {read[judged].min():g} to {read[judged].max():g})"))
    return pd.Series(np.where(good, 1, -1))


def _within(read: NDArray[np.float64], label: Label) -> tuple[Mask, str]:
    """Return which numbers are favourable, and the rule in words."""
    if label.at_least is not None:
        return read >= label.at_least, f"at least {label.at_least:g}"
    most = np.inf if label.at_most is None else label.at_most
    return read <= most, f"at most {most:g}"


def _one_of_two(
    values: pd.Series,
    column: str,
    favourable: str,
    asked: Mask,
    problems: list[Problem],
    whole: bool,
) -> pd.Series:
    words = texts(values, numeric=is_number(favourable))
    missing = words.isna().to_numpy(np.bool_)
    problems += missing_problems(column, missing & asked)
    found = sorted(words[asked].dropna().unique().tolist())
    listed = shown(repr(word) for word in found)
    if found and (len(found) > 2 or (whole and len(found) == 1)):
        many = "one value" if len(found) == 1 else f"{len(found)} values"
        problems.append(Problem(f"the label {column!r} has {many}, {listed}; expected two"))
    if found and favourable not in found and (whole or len(found) == 2):
        text = f"the label {column!r} never holds its favourable value {favourable!r}; "
        problems.append(Problem(text + nearest(favourable, found)))
    return pd.Series(np.where(words == favourable, 1, -1))
