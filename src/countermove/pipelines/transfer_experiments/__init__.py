"""The transfer-experiments pipeline."""

from countermove.pipelines.transfer_experiments.pipeline import create_pipeline

__all__ = ["create_pipeline"]
