"""A stored rule knows the range of the rows it was trained on, in parts as in one piece."""

from __future__ import annotations

import numpy as np
import pandas as pd

from countermove.data.partitions import Partitions
from countermove.data.schema import Schema
from countermove.data.standardise import Standardiser
from countermove.learning.rule_training import train_published
from countermove.response import NoResponse
from countermove.training.streamed import PartRows

SCHEMA = Schema.from_mapping(
    "two",
    {
        "label": {"column": "y", "favourable": 1},
        "features": {"a": {"kind": "numeric"}, "b": {"kind": "numeric"}},
    },
)


def rows(n: int, seed: int) -> pd.DataFrame:
    X = np.random.default_rng(seed).normal(size=(n, 2))
    label = np.where(X.sum(axis=1) > 0.0, 1.0, -1.0)
    return pd.DataFrame(
        {"row_id": [f"r{i}" for i in range(n)], "label": label, "a": X[:, 0], "b": X[:, 1]}
    )


def test_the_range_is_that_of_the_training_rows(tmp_path):
    train = rows(60, 0)
    units = Standardiser(np.array([3.0, 4.0]), np.array([2.0, 5.0]), ("a", "b"))
    training = {"selection": "none"}
    trained = train_published(train, rows(20, 1), SCHEMA, units, NoResponse(), training, 0)
    low, high = train[["a", "b"]].min().tolist(), train[["a", "b"]].max().tolist()
    assert trained.model.about["training_range"] == {"low": low, "high": high}
    train.to_parquet(tmp_path / "train.parquet", row_group_size=7)
    parts = PartRows(Partitions((tmp_path / "train.parquet",), 7), ("a", "b"))
    assert [end.tolist() for end in parts.span()] == [low, high]
