"""What the columns mean: schemas, sources, cleaning, splits and standardisation.

A raw table (`read_raw`) becomes a typed one (`clean`), is divided (`split_table`),
standardised (`fit_standardiser`, `standardised_table`) and read as arrays (`rows_of`).
"""

from __future__ import annotations

from countermove._lazy import lazy

_HOMES = {
    "clean": "cleaning",
    "Partitions": "partitions",
    "raw_partitions": "partitions",
    "numeric_relations": "relations",
    "observed_ranges": "relations",
    "path_states": "relations",
    "Rows": "rows",
    "design_matrix": "rows",
    "fit_standardiser": "rows",
    "rows_of": "rows",
    "standardised_table": "rows",
    "Feature": "schema",
    "Label": "schema",
    "ModelFeature": "schema",
    "Schema": "schema",
    "Series": "schema",
    "load_schema": "schema",
    "stacked_histories": "series",
    "read_embedded": "sources",
    "read_file": "sources",
    "read_raw": "sources",
    "split_table": "splits",
    "Standardiser": "standardise",
    "GaussianPopulation": "synthetic",
    "fabricate": "synthetic",
}

__all__ = sorted(_HOMES)

__getattr__ = lazy(__name__, _HOMES)
__dir__ = __all__.copy
