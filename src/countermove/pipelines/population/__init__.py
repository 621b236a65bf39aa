"""The population pipeline."""

from countermove.pipelines.population.pipeline import create_pipeline

__all__ = ["create_pipeline"]
