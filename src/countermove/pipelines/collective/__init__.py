"""The collective pipeline."""

from countermove.pipelines.collective.pipeline import create_pipeline

__all__ = ["create_pipeline"]
