"""The recourse pipeline."""

from countermove.pipelines.recourse.pipeline import create_pipeline

__all__ = ["create_pipeline"]
