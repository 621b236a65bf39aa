"""The reporting pipeline."""

from countermove.pipelines.reporting.pipeline import create_pipeline

__all__ = ["create_pipeline"]
