"""Ingest a part at a time, for tables that do not fit into memory.

Parts are written while the next ones are read. Kedro would save every item of a generator by
itself, so the nodes return iterators that are none (``chain``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import chain
from typing import Any

import numpy as np
import pandas as pd
from kedro.pipeline import Node, Pipeline

from countermove.data import streaming
from countermove.data.partitions import Partitions
from countermove.data.quarantine import intake
from countermove.data.schema import Schema
from countermove.data.standardise import Standardiser
from countermove.params import IngestParameters

RawParts = Callable[..., Partitions]
Parts = Iterator[tuple[str, pd.DataFrame]]


def place_rows(
    raw: RawParts, schema: Schema, ingest: IngestParameters, seed: int
) -> tuple[pd.DataFrame, pd.DataFrame, dict[str, Any]]:
    """Decide the split of every row and set wrong ones aside; the rows are not kept."""
    placed = streaming.place_rows(
        raw(ingest.rows_per_part, layout=schema.file), schema, ingest.split.build(),
        ingest.split_seed(seed), ingest.balance, ingest.max_rows,
    )  # fmt: skip
    alike, split = placed.alike
    facts = intake(
        placed.quarantine, placed.n_lines, schema.quarantine, placed.labels,
        same_features=alike, differing_outcomes=split, dated_after=dict(placed.late),
    )  # fmt: skip
    return pd.DataFrame({"split": placed.place}), placed.quarantine, facts


def split(raw: RawParts, schema: Schema, places: pd.DataFrame, ingest: IngestParameters) -> Parts:
    """Put the typed rows of each part into their splits."""
    place = places["split"].to_numpy(np.int8)
    parts = raw(ingest.rows_per_part, layout=schema.file)
    return chain(streaming.split_parts(parts, schema, place, ingest.split.build()))


def fit_standardiser(
    parts: dict[str, Partitions], schema: Schema, ingest: IngestParameters
) -> Standardiser:
    """Learn means and scales from the training parts only."""
    return streaming.fit_standardiser(parts["train"], schema, ingest.divide_by_root_d)


def standardise(parts: dict[str, Partitions], schema: Schema, standardiser: Standardiser) -> Parts:
    """Express every part in standardised units, ids, labels and groups beside it."""
    return chain(streaming.standardised_parts(parts, schema, standardiser))


def create_pipeline(**_: object) -> Pipeline:
    """Return the ingest pipeline for tables in parts."""
    steps = [
        Node(
            place_rows,
            ["raw_parts", "schema", "params:ingest", "params:seed"],
            ["places", "quarantine", "intake"],
            name="place_rows",
        ),
        Node(
            split,
            ["raw_parts", "schema", "places", "params:ingest"],
            "primary_parts",
            name="split_parts",
        ),
        Node(
            fit_standardiser,
            ["primary_parts", "schema", "params:ingest"],
            "parts_standardiser",
            name="fit_parts_standardiser",
        ),
        Node(
            standardise,
            ["primary_parts", "schema", "parts_standardiser"],
            "model_input_parts",
            name="standardise_parts",
        ),
    ]
    return Pipeline(steps, namespace="ingest_parts", prefix_datasets_with_namespace=False)
