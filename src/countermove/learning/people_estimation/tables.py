"""From two raw tables and a published model to an estimate, in original units at the border."""

from __future__ import annotations

import pandas as pd

from countermove.data.cleaning import people_records
from countermove.data.schema import ROW_ID, Schema
from countermove.learning.people_estimation.estimation import estimate_people
from countermove.learning.people_estimation.result import PeopleEstimate
from countermove.people import ActionSet
from countermove.scores.storage import PublishedModel


def estimate_from_tables(
    model: PublishedModel,
    before: pd.DataFrame,
    after: pd.DataFrame,
    schema: Schema,
    actions: ActionSet,
    matched: bool = True,
    cost: str = "auto",
    level: float = 0.95,
) -> PeopleEstimate:
    """Estimate how people answered a published model.

    Parameters
    ----------
    model
        The rule that was deployed, with its standardiser.
    before, after
        Raw tables: ids and features of the schema; outcomes are not needed.
    schema
        What the columns mean; its id is the key.
    actions
        What people could do, standardised units.
    matched
        Whether to pair people by id; else two samples.
    cost, level
        See `estimate_people`.
    """
    tables = [
        people_records(table, schema, f"{schema.name}_{moment}", matched)
        for table, moment in ((before, "before"), (after, "after"))
    ]
    return estimate_people(
        model.rule,
        *tables,
        key=ROW_ID if matched else None,
        actions=actions,
        units=model.standardiser,
        cost=cost,
        level=level,
    )
