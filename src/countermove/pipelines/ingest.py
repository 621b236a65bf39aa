"""Ingest: raw table → typed table → splits → standardised splits."""

from __future__ import annotations

from typing import Any

import pandas as pd
from kedro.pipeline import Node, Pipeline

from countermove.data.cleaning import clean_rows
from countermove.data.doubts import equal_rows, feature_hashes
from countermove.data.files import RawTable
from countermove.data.quarantine import intake
from countermove.data.rows import fit_standardiser as fit
from countermove.data.rows import standardised_table
from countermove.data.schema import LABEL, Schema
from countermove.data.splits import split_table
from countermove.data.standardise import Standardiser
from countermove.params import IngestParameters

SPLITS = ("train", "validation", "calibration", "test")


def clean_table(raw: RawTable, schema: Schema) -> tuple[pd.DataFrame, pd.DataFrame, dict[str, Any]]:
    """Type every column as the schema says, the label as +1 and -1; set wrong rows aside."""
    read = clean_rows(raw, schema)
    n_lines = len(raw.frame) + len(raw.broken)
    alike, split = equal_rows(
        feature_hashes(read.table, schema), (read.table[LABEL] == 1).to_numpy()
    )
    facts = intake(
        read.quarantine, n_lines, schema.quarantine, read.labels,
        same_features=alike, differing_outcomes=split, dated_after=dict(read.late),
    )  # fmt: skip
    return read.table, read.quarantine, facts


def split(
    typed: pd.DataFrame, schema: Schema, ingest: IngestParameters, seed: int
) -> tuple[pd.DataFrame, ...]:
    """Divide the rows by id, group or time, as the schema says; by id, stratified by label."""
    shares, seed = ingest.split.build(), ingest.split_seed(seed)
    parts = split_table(typed, schema, shares, seed, ingest.balance, ingest.max_rows)
    return tuple(parts[name] for name in SPLITS)


def fit_standardiser(train: pd.DataFrame, schema: Schema, ingest: IngestParameters) -> Standardiser:
    """Learn means and scales from the training rows only."""
    return fit(train, schema, ingest.divide_by_root_d)


def standardise(table: pd.DataFrame, schema: Schema, standardiser: Standardiser) -> pd.DataFrame:
    """Express one split in standardised units, ids, labels and groups beside it."""
    return standardised_table(table, schema, standardiser)


def create_pipeline(**_: object) -> Pipeline:
    """Return the ingest pipeline."""
    steps = [
        Node(
            clean_table,
            ["raw", "schema"],
            ["typed", "quarantine", "intake"],
            name="clean_table",
        ),
        Node(
            split,
            ["typed", "schema", "params:ingest", "params:seed"],
            [f"{part}_table" for part in SPLITS],
            name="split",
        ),
        Node(
            fit_standardiser,
            ["train_table", "schema", "params:ingest"],
            "standardiser",
            name="fit_standardiser",
        ),
    ]
    steps += [
        Node(
            standardise,
            [f"{part}_table", "schema", "standardiser"],
            f"{part}_rows",
            name=f"standardise_{part}",
        )
        for part in SPLITS
    ]
    return Pipeline(steps, namespace="ingest", prefix_datasets_with_namespace=False)
