"""The recourse-experiments pipeline."""

from countermove.pipelines.recourse_experiments.pipeline import create_pipeline

__all__ = ["create_pipeline"]
