"""The recourse-text pipeline."""

from countermove.pipelines.recourse_text.pipeline import create_pipeline

__all__ = ["create_pipeline"]
