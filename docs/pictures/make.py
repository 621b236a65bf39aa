"""Measure and draw the pictures of these pages again: ``python docs/pictures/make.py [name …]``.

Each is measured (``<name>.json``, the numbers) and then drawn (``<name>.svg``).
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import drawn
import measured

FOLDER = Path(__file__).parent
NAMES = ("move_map", "cost", "responses", "promise", "looking_ahead", "together")


def measure(name: str) -> dict[str, Any]:
    """Run the library."""
    numbers: dict[str, Any] = getattr(measured, name)()
    return numbers


def draw(name: str, numbers: dict[str, Any]) -> str:
    """Return the picture of these numbers."""
    svg: str = getattr(drawn, name)(numbers)
    return svg


if __name__ == "__main__":
    for wanted in sys.argv[1:] or NAMES:
        numbers = measure(wanted)
        (FOLDER / f"{wanted}.json").write_text(json.dumps(numbers) + "\n", "utf-8")
        (FOLDER / f"{wanted}.svg").write_text(draw(wanted, numbers), "utf-8")
