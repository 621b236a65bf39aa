"""From two standardised tables, as the pipelines keep them, to a report."""

from __future__ import annotations

import numpy as np
import pandas as pd

from countermove.data.schema import Schema
from countermove.errors import DataError, shown
from countermove.production.drift.report import DriftReport, drift_report
from countermove.production.drift.samples import Seen
from countermove.production.drift.terms import DriftTerms
from countermove.response import Response
from countermove.scores.storage import PublishedModel


def drift_of_tables(
    reference: pd.DataFrame,
    observed: pd.DataFrame,
    schema: Schema,
    model: PublishedModel,
    response: Response,
    terms: DriftTerms | None = None,
    seed: int = 0,
) -> DriftReport:
    """Report on two tables that `standardised_table` wrote; see `drift_report`.

    Parameters
    ----------
    reference, observed
        Standardised by the deployed model's standardiser. ``row_id`` and ``label`` may be absent;
        a label that has not arrived yet is missing.
    schema
        What the columns mean.
    model, response, terms, seed
        See `drift_report`.
    """
    tables = [
        seen_table(table, schema, where)
        for table, where in ((reference, "reference"), (observed, "observed"))
    ]
    return drift_report(tables[0], tables[1], model, response, terms, seed)


def seen_table(frame: pd.DataFrame, schema: Schema, where: str) -> Seen:
    """Return a standardised table as the report reads it."""
    names = tuple(schema.feature_names)
    absent = [name for name in names if name not in frame.columns]
    if absent:
        raise DataError(
            f"the {where} table lacks the columns {shown(map(repr, absent))}; standardise it "
            "with the deployed model's standardiser first"
        )
    X = np.array(frame[list(names)].to_numpy(dtype=np.float64, na_value=np.nan), order="C")
    y = ids = None
    if "label" in frame.columns:
        y = frame["label"].to_numpy(dtype=np.float64, na_value=np.nan)
    if "row_id" in frame.columns:
        ids = frame["row_id"].to_numpy(dtype=np.str_)
    return Seen(X, y, ids, names)
