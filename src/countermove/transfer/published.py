"""The transfer report of published models, from the tables of a run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from countermove.data.rows import rows_of
from countermove.data.schema import Schema
from countermove.response import Response
from countermove.transfer.chances import fit_chances
from countermove.transfer.report import TransferTerms, transfer_report


def report_published(
    rules: Mapping[str, Any],
    train: pd.DataFrame,
    validation: pd.DataFrame,
    test: pd.DataFrame,
    schema: Schema,
    responses: Mapping[str, Response],
    stated: Sequence[str],
    terms: TransferTerms,
    seed: int,
) -> dict[str, Any]:
    """Return the transfer report of a run, JSON-ready.

    P(Y | X) is fitted on the training rows, thresholds and bins are chosen on the
    validation rows, and everything told is measured on the test rows.
    """
    made, chosen, judged = (rows_of(frame, schema) for frame in (train, validation, test))
    chances = fit_chances(made.X, made.y) if "follow" in terms.labels else None
    report = transfer_report(
        rules,
        (chosen.X, chosen.y),
        (judged.X, judged.y),
        responses,
        stated,
        chances=chances,
        terms=terms,
        seed=seed,
    )
    return {"dataset": schema.name} | report.to_json()
