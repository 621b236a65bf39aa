"""What a person looks at: lines, figures, pages."""

from __future__ import annotations

from typing import TYPE_CHECKING

from countermove._lazy import lazy

if TYPE_CHECKING:
    from countermove.reporting.rendering import figure_data, render

__all__ = ["figure_data", "render"]

_HOMES = {"figure_data": "rendering", "render": "rendering"}
__getattr__ = lazy(__name__, _HOMES)
