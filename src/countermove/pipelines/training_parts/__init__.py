"""The training pipeline for tables in parts."""

from countermove.pipelines.training_parts.pipeline import create_pipeline

__all__ = ["create_pipeline"]
