"""Decisions and advice for tables in parts, by the same mapper as every other work on parts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING

from countermove.data.partitions import Partitions
from countermove.data.rows import rows_of
from countermove.data.schema import Schema
from countermove.data.storage import settings_digest
from countermove.execution import PartTask
from countermove.randomness import generator
from countermove.recourse.advised import tell
from countermove.recourse.calibrated import CalibratedRule, calibrate_model
from countermove.recourse.pare_joint import Terms
from countermove.response import Response
from countermove.scores.storage import PublishedModel, model_digest

if TYPE_CHECKING:
    import pyarrow as pa

HELD = 200_000
"""Rows that are drawn for a calibration; its certificate speaks of so many."""


class AdviceTask(PartTask):
    """Decide about the people of a part and tell the refused what to do.

    Parameters
    ----------
    model
        The rule with its threshold folded in.
    schema, response, terms, seed
        As in `countermove.recourse.advised.advise`.
    """

    def __init__(
        self, model: PublishedModel, schema: Schema, response: Response, terms: Terms, seed: int
    ) -> None:
        self.model, self.schema, self.response = model, schema, response
        self.terms, self.seed = terms, seed
        self.columns = ("row_id", "label", *schema.feature_names)

    def __call__(self, rows: pa.Table, first_row: int) -> pa.Table:
        """Return one row per person: id, decision, probability, status, action, words."""
        import pyarrow as pa

        people = rows_of(rows.to_pandas(), self.schema)
        told = tell(self.model, people, self.schema, self.response, self.terms, self.seed)
        return pa.Table.from_pandas(told.table, preserve_index=False)

    def fingerprint(self) -> str:
        """Return a digest of the rule, the people and the terms."""
        said = {
            "model": model_digest(self.model),
            "schema": self.schema.digest(),
            "response": self.response.describe(),
            "terms": asdict(self.terms),
            "seed": self.seed,
        }
        return settings_digest(said)


def calibrate_parts(
    model: PublishedModel,
    splits: Mapping[str, Partitions],
    schema: Schema,
    response: Response,
    terms: Terms,
    seed: int,
) -> CalibratedRule:
    """Choose the threshold of a rule trained on parts, on rows drawn from the other splits.

    The splits are disjoint by construction, so no training ids are compared.
    """
    drawn = {
        name: splits[name].draw(HELD, generator(seed, f"held:{name}"))
        for name in ("calibration", "validation")
    }
    return calibrate_model(
        model, drawn["calibration"], drawn["validation"], (), schema, response, terms
    )
