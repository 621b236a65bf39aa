"""Kedro datasets: how tables, schemas, models and figures lie on disk.

A catalog entry names one as ``type: countermove.catalog.<class>``.
"""

from __future__ import annotations

from countermove._lazy import lazy

_HOMES = {
    "AtomicCSVDataset": "_files",
    "AtomicJSONDataset": "_files",
    "AtomicParquetDataset": "_files",
    "AtomicPlotlyDataset": "_files",
    "AtomicTextDataset": "_files",
    "OptionalCSVDataset": "_files",
    "OptionalJSONDataset": "_files",
    "StandardiserDataset": "_files",
    "ApplicantBatchesDataset": "_folders",
    "FolderDataset": "_folders",
    "PartsDataset": "_folders",
    "RawPartsDataset": "_folders",
    "HistoryDataset": "_production",
    "LabelledBatchesDataset": "_production",
    "ModelDataset": "_production",
    "RegistryDataset": "_production",
    "DeploymentTableDataset": "_tables",
    "MatchesSchema": "_tables",
    "RawTableDataset": "_tables",
    "SchemaDataset": "_tables",
    "TablesByNameDataset": "_tables",
    "TextsByNameDataset": "_tables",
}

__all__ = sorted(_HOMES)

__getattr__ = lazy(__name__, _HOMES)
