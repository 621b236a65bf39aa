"""What one stage writes about people, the next reads back."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from countermove.data.rows import fit_standardiser, rows_of, standardised_table
from countermove.data.schema import Schema


@pytest.mark.parametrize("columns", [("score",), ("score", "age")])
def test_rows_come_back_as_they_were_written(columns: tuple[str, ...]) -> None:
    schema = Schema.from_mapping(
        "shop",
        {
            "label": {"column": "repaid", "favourable": 1},
            "features": {column: {"kind": "numeric"} for column in columns},
            "sensitive": ["group"],
        },
    )
    table = pd.DataFrame(
        {
            "row_id": ["a", "b", "c"],
            **{column: [1.0, 2.0, 4.0] for column in columns},
            "group": ["x", "y", "x"],
            "label": [1, -1, 1],
        }
    )
    standardiser = fit_standardiser(table, schema, divide_by_root_d=False)
    rows = rows_of(standardised_table(table, schema, standardiser), schema)
    np.testing.assert_allclose(standardiser.inverse(rows.X)[:, 0], [1, 2, 4])
    assert rows.ids.tolist() == ["a", "b", "c"]
    assert rows.y.tolist() == [1, -1, 1]
    assert rows.groups["group"].tolist() == ["x", "y", "x"]
    # torch warns about arrays it may not write to.
    assert rows.X.flags.writeable
    assert rows.X.flags.c_contiguous
