"""The score pipeline."""

from countermove.pipelines.score.pipeline import create_pipeline

__all__ = ["create_pipeline"]
