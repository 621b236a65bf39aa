"""A stored rule knows the range of the rows it was trained on, in parts as in one piece."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from countermove.data.cleaning import clean
from countermove.data.partitions import Partitions
from countermove.data.rows import fit_standardiser, rows_of, standardised_table
from countermove.data.schema import Schema, load_schema
from countermove.data.sources import read_embedded
from countermove.data.standardise import Standardiser
from countermove.learning.classifier import StrategicClassifier
from countermove.learning.rule_training import train_parts, train_published
from countermove.people import ActionSet
from countermove.response import BestResponse, NoResponse
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


@pytest.mark.slow
def test_months_of_histories_count_in_training_in_parts_as_in_one_piece(tmp_path):
    schema = load_schema("credit", "conf/base/schemas")
    table = clean(read_embedded("credit"), schema).iloc[:1600]
    units = fit_standardiser(table, schema, divide_by_root_d=False)
    rows = standardised_table(table, schema, units)
    splits = {"train": rows.iloc[:1200], "validation": rows.iloc[1200:].reset_index(drop=True)}
    actions = ActionSet.from_schema(schema, units).obeyed_in_responses()
    people, training = BestResponse(actions=actions), {"selection": "none", "loss": "logistic"}
    whole = train_published(*splits.values(), schema, units, people, training, 0).model.score
    parts = {}
    for name, split in splits.items():
        split.to_parquet(tmp_path / f"{name}.parquet", row_group_size=500)
        parts[name] = Partitions((tmp_path / f"{name}.parquet",), 500)
    pieces = train_parts(parts, schema, units, people, training, 0).score
    weight = whole.weight.detach().numpy()
    np.testing.assert_allclose(pieces.weight.detach().numpy(), weight, atol=1e-6)
    # The months matter: people known by features alone have fewer states to move to.
    known, X = rows_of(splits["train"], schema), rows_of(splits["train"], schema).X
    by_months = people.with_windows(X, known.windows).decisions_after(whole, X)
    assert (by_months & ~people.decisions_after(whole, X)).any()
    assert not (people.decisions_after(whole, X) & ~by_months).any()


def test_training_knows_whose_rows_belong_together(monkeypatch):
    schema = Schema.from_mapping("two", SCHEMA.to_mapping() | {"group_by": "house"})
    train, validation = (
        rows(n, seed).assign(**{"cluster:house": [f"{seed}.{i // 5}" for i in range(n)]})
        for n, seed in ((60, 0), (20, 1))
    )
    units, seen = Standardiser(np.zeros(2), np.ones(2), ("a", "b")), []

    def fit(classifier, X, y, **more):
        seen.extend(more["clusters"])
        return fitted(classifier, X, y, **more)

    fitted = StrategicClassifier.fit
    monkeypatch.setattr(StrategicClassifier, "fit", fit)
    train_published(train, validation, schema, units, BestResponse(), {}, 0)
    assert seen == [*train["cluster:house"], *validation["cluster:house"]]
