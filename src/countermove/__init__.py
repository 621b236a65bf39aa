"""Countermove: classifiers that count on people's answer to a published rule.

Importing the package costs nothing; public names load on first use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from countermove.learning.classifier import StrategicClassifier

__all__ = ["StrategicClassifier", "__version__"]


def __getattr__(name: str) -> Any:
    """Load a public name on first use."""
    if name == "StrategicClassifier":
        from countermove.learning.classifier import StrategicClassifier

        return StrategicClassifier
    raise AttributeError(f"module 'countermove' has no attribute {name!r}")
