"""The retrain pipeline."""

from countermove.pipelines.retrain.pipeline import create_pipeline

__all__ = ["create_pipeline"]
