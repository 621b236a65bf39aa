"""The ingest pipeline."""

from countermove.pipelines.ingest.pipeline import create_pipeline

__all__ = ["create_pipeline"]
