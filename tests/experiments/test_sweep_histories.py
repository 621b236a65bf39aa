"""The length of a history is one more axis of a sweep."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from countermove.data.cleaning import clean
from countermove.data.schema import Schema, load_schema
from countermove.data.series import with_steps
from countermove.errors import ParameterError
from countermove.experiments import Measured, Sources
from countermove.params import SweepParameters

ROOT = Path(__file__).parents[2]


def firms(name, steps=None):
    """A table of firms over years, with as many of them as asked for."""
    rng = np.random.default_rng(0)
    lengths = rng.integers(1, 5, size=120)
    raw = pd.DataFrame(
        {
            "firm": np.repeat([f"f{i}" for i in range(120)], lengths),
            "year": np.concatenate([np.arange(length) for length in lengths]),
            "debt": rng.normal(size=lengths.sum()),
        }
    )
    raw["ok"] = (raw["debt"] < 0.3).astype(int)
    mapping = {
        "label": {"column": "ok", "favourable": 1},
        "features": {"debt": {"kind": "numeric", "change": "both"}},
        "series": {"entity": "firm", "time": "year"},
    }
    schema = Schema.from_mapping(name, mapping)
    schema = schema if steps is None else with_steps(schema, steps)
    return clean(raw, schema), schema


def test_histories_are_an_axis():
    said = {
        "axis": "steps",
        "datasets": ["firms"],
        "steps": [1, 3],
        "splits": 1,
        "score": {"kind": "recurrent", "width": 3},
        "training": {"optimiser": "adam", "selection": "none", "max_epochs": 2},
        "blind_training": {"optimiser": "adam", "selection": "none", "max_epochs": 1},
    }
    sweep = SweepParameters.model_validate(said).build()
    cells = sweep.cells(Sources(firms), seed=0)
    assert cells["steps"].tolist() == [1, 3]
    assert cells["strategic"].between(0.0, 1.0).all()
    figure = sweep.figure(Measured(cells), cells, "histories")
    assert figure.layout.xaxis.title.text == "steps of history"


def test_a_table_without_a_series_has_no_history():
    schema = load_schema("tiny", ROOT / "conf" / "base" / "schemas")
    with pytest.raises(ParameterError, match="no series"):
        with_steps(schema, 2)
