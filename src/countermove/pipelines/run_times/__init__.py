"""The run-times pipeline."""

from countermove.pipelines.run_times.pipeline import create_pipeline

__all__ = ["create_pipeline"]
