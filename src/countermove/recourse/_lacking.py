"""Cells that people lack, in words: what is not known of them, and what supplying it would do."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from countermove._types import Floats
from countermove.data.missing import FillColumns, fill_columns
from countermove.data.schema import MISSING, Feature, Schema
from countermove.data.standardise import Standardiser
from countermove.recourse._steps import display_name
from countermove.recourse.phrases import Phrases
from countermove.recourse.problem import ApprovalThreshold
from countermove.recourse.words import CHANGE
from countermove.scores.base import score_of, values

if TYPE_CHECKING:
    import pandas as pd

DIGITS = 3
"""Significant digits of a value that would be enough, rounded to the safe side."""


def with_lacking(
    table: pd.DataFrame,
    model: Any,
    X: Floats,
    schema: Schema,
    standardiser: Standardiser,
    cut: ApprovalThreshold,
    phrases: Phrases,
) -> pd.DataFrame:
    """Return advice that tells the refused what is not known of them, and what they can supply.

    The column ``supply`` is there if the schema lets people supply something: the features that
    a person may supply, separated by ``;``. Whoever is advised to supply one is told that the
    decision is made with what they supply. Others are told from which value on it would be
    favourable, all else as it is, where the score is affine in an amount.
    """
    cells, before = fill_columns(schema), standardiser.inverse(X)
    refused = (table["decision"] < 0).to_numpy(np.bool_)
    said, supply = np.full((2, len(table)), "", dtype=object)
    advised = np.zeros(len(table), dtype=np.bool_)
    for each in cells:
        lacking = refused & each.lacking(before)
        name = display_name(each.feature, phrases) or each.feature.name
        if not each.policy.supply:
            said[lacking] += phrases["lacking"].replace("{name}", name)
            continue
        supply[lacking] = [f"{text};{each.feature.name}".lstrip(";") for text in supply[lacking]]
        change = table.get(f"{CHANGE}{each.feature.name}={MISSING}", 0.0)
        steps = lacking & np.asarray(change < 0.0)
        advised |= steps
        who = np.flatnonzero(lacking & ~steps)
        enough = _enough(each, model, X[who], standardiser, cut)
        said[who] += [_supplied(*value, each.feature, name, phrases) for value in enough]
    said[advised] = [phrases["supplied"] + text for text in said[advised]]
    table = table.assign(words=(table["words"] + said).astype("str")) if said.any() else table
    if any(each.policy.supply for each in cells):
        table.insert(list(table.columns).index("words"), "supply", supply)
    return table


def _supplied(value: float, rises: bool, feature: Feature, name: str, phrases: Phrases) -> str:
    if math.isnan(value):
        return phrases["supply"].replace("{name}", name)
    amount = phrases.number(f"{value:.10g}", bool(feature.unit))
    amount += phrases.unit(feature.unit, value)
    limit = phrases["at_least" if rises else "at_most"].replace("{value}", amount)
    return phrases["supply_enough"].replace("{name}", name).replace("{value}", limit)


def _enough(
    each: FillColumns, model: Any, X: Floats, standardiser: Standardiser, cut: ApprovalThreshold
) -> list[tuple[float, bool]]:
    """Return for each person a value that would be enough if supplied, and whether more is too."""
    # NaN where none is within the bounds, or the score is not affine in it.
    score, (j, *others) = score_of(model), each.columns
    slope = score.slope()
    weight = 0.0 if slope is None or others else float(slope.detach()[j])
    if each.feature.kind not in ("numeric", "integer") or not weight or j in score.fixed:
        return [(math.nan, True)] * len(X)
    supplied, i = X.copy(), each.indicator
    supplied[:, i] = -standardiser.mean[i] / standardiser.scale[i]
    need = supplied[:, j] + (cut.aim - values(score, supplied)) / weight
    asked = need * standardiser.scale[j] + standardiser.mean[j]
    found = np.array([_rounded(value, weight > 0, each.feature) for value in asked.tolist()])
    supplied[:, j] = (found - standardiser.mean[j]) / standardiser.scale[j]
    good = np.zeros(len(X), dtype=np.bool_)
    known = np.flatnonzero(np.isfinite(found))
    good[known] = cut.approved(values(score, supplied[known])) if known.size else False
    return [(value, weight > 0) for value in np.where(good, found, math.nan).tolist()]


def _rounded(value: float, up: bool, feature: Feature) -> float:
    """Return a value rounded to where it is still enough; NaN outside the feature's bounds."""
    size = (
        1.0
        if feature.kind == "integer" or not value
        else 10.0 ** (math.floor(math.log10(abs(value))) + 1 - DIGITS)
    )
    rounded = (math.ceil if up else math.floor)(value / size) * size
    low = -math.inf if feature.min is None else feature.min
    high = math.inf if feature.max is None else feature.max
    # Whatever people have is enough if the bound itself is.
    rounded = max(rounded, low) if up else min(rounded, high)
    return rounded if low <= rounded <= high else math.nan
