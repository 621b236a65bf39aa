"""What kedro-viz shows of a dataset: its first rows, its facts, its picture.

kedro-viz calls a dataset's ``preview`` and reads the kind from the annotation of what is
returned. Before a run there is nothing to show, and ``None`` says so without a warning.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, TypeAlias

import pandas as pd

TablePreview: TypeAlias = dict[str, Any] | None
JSONPreview: TypeAlias = str | None
PlotlyPreview: TypeAlias = dict[str, Any] | None
"""Names by which kedro-viz tells a table, facts and a picture apart."""

ROWS = 5
DIGITS = 4


def table_preview(table: pd.DataFrame, rows: int = ROWS) -> TablePreview:
    """Return the first rows as kedro-viz draws them; what is missing is ``null``."""
    text = table.head(rows).to_json(orient="split", double_precision=DIGITS, date_format="iso")
    found: dict[str, Any] = json.loads(text)
    return found


def first_rows(path: Path, rows: int = ROWS) -> TablePreview:
    """Return the first rows of a parquet file, reading no more of it than they need."""
    from pyarrow.parquet import ParquetFile

    if not path.is_file():
        return None
    with ParquetFile(path) as file:
        batch = next(file.iter_batches(batch_size=rows), None)
        table = file.schema_arrow.empty_table() if batch is None else batch
        return table_preview(table.to_pandas(), rows)
