"""The trade-off pipeline."""

from countermove.pipelines.tradeoff.pipeline import create_pipeline

__all__ = ["create_pipeline"]
