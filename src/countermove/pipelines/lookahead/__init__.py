"""The look-ahead pipeline."""

from countermove.pipelines.lookahead.pipeline import create_pipeline

__all__ = ["create_pipeline"]
