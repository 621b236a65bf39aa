"""Retrain: a challenger is trained on new batches and promoted only if it passes every gate."""

from countermove.pipelines.retrain.pipeline import create_pipeline

__all__ = ["create_pipeline"]
