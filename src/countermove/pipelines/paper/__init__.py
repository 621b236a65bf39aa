"""The paper pipeline."""

from countermove.pipelines.paper.pipeline import create_pipeline

__all__ = ["create_pipeline"]
