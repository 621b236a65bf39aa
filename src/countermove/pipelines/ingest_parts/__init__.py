"""The ingest pipeline for tables in parts."""

from countermove.pipelines.ingest_parts.pipeline import create_pipeline

__all__ = ["create_pipeline"]
