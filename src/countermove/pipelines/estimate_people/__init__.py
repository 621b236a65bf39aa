"""The estimate-people pipeline."""

from countermove.pipelines.estimate_people.pipeline import create_pipeline

__all__ = ["create_pipeline"]
