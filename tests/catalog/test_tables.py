"""Tables by name, cleaned or as they came."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest
from kedro.io import DatasetError

from countermove.catalog import TablesByNameDataset
from countermove.data.cleaning import clean

SCHEMAS = Path(__file__).parents[2] / "conf" / "base" / "schemas"


def test_a_table_comes_cleaned_or_raw(tmp_path):
    where = {"folder": {"path": str(tmp_path)}, "schemas": {"path": str(SCHEMAS)}}
    raw, schema = TablesByNameDataset(**where, cleaned=False).load()("tiny")
    typed, same = TablesByNameDataset(**where).load()("tiny")
    assert same == schema
    assert "label" not in raw
    pd.testing.assert_frame_equal(clean(raw, schema), typed)
    with pytest.raises(DatasetError, match="read-only"):
        TablesByNameDataset(**where).save(typed)
