"""A small table of every kind of column, and the schemas of the project."""

from __future__ import annotations

from copy import deepcopy
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from countermove.data.schema import Schema

SCHEMAS = Path(__file__).parents[2] / "conf" / "base" / "schemas"

SHOP: dict[str, Any] = {
    "id": "customer",
    "label": {"column": "outcome", "favourable": "accepted"},
    "features": {
        "income": {"kind": "numeric", "unit": "EUR", "change": "up", "min": 0, "max": 1000},
        "loans": {"kind": "integer", "change": "down", "min": 0, "max": 9, "step": 1},
        "owner": {"kind": "binary", "change": "both"},
        "level": {"kind": "ordered", "change": "up", "categories": ["low", "middle", "high"]},
        "region": {"kind": "onehot", "categories": ["north", "south"]},
    },
    "sensitive": ["sex"],
    "ignore": ["note"],
}


@pytest.fixture
def schemas() -> Path:
    return SCHEMAS


@pytest.fixture
def mapping() -> dict[str, Any]:
    """A schema file's content that each test may spoil."""
    return deepcopy(SHOP)


@pytest.fixture
def schema() -> Schema:
    return Schema.from_mapping("shop", SHOP)


@pytest.fixture
def raw() -> pd.DataFrame:
    """Twelve customers as a CSV file would give them: every cell a text."""
    n = 12
    return pd.DataFrame(
        {
            "customer": [f"c{row}" for row in range(n)],
            "income": [str(100.5 + row) for row in range(n)],
            "loans": [str(row % 4) for row in range(n)],
            "owner": [str(row % 2) for row in range(n)],
            "level": [["low", "middle", "high"][row % 3] for row in range(n)],
            "region": [["north", "south"][row % 2] for row in range(n)],
            "sex": [["f", "m"][row % 2] for row in range(n)],
            "outcome": [["accepted", "refused"][row // 6] for row in range(n)],
        },
        dtype="str",
    )
