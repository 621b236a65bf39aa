"""The stylised pipeline."""

from countermove.pipelines.stylised.pipeline import create_pipeline

__all__ = ["create_pipeline"]
