"""The evaluation pipeline."""

from countermove.pipelines.evaluation.pipeline import create_pipeline

__all__ = ["create_pipeline"]
