"""Retrain: a challenger is trained on new batches and promoted only if it passes every gate."""

from __future__ import annotations

from typing import TYPE_CHECKING

from countermove._lazy import lazy

if TYPE_CHECKING:
    from countermove.pipelines.retrain.pipeline import create_pipeline

__all__ = ["create_pipeline"]

# Hooks live here too, which every command imports.
__getattr__ = lazy(__name__, {"create_pipeline": "pipeline"})
__dir__ = __all__.copy
