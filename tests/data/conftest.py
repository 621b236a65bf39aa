"""A small table of every kind of column, and the schemas of the project."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from pathlib import Path
from typing import Any

import numpy as np
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


def fabricated_distress(companies: int, seed: int) -> pd.DataFrame:
    """The layout of the public table: companies of 1 to 14 years, unsorted, x80 a code."""
    rng = np.random.default_rng(seed)
    rows = []
    for company in range(1, companies + 1):
        for time in range(1, 1 + int(rng.integers(1, 15))):
            figures = rng.normal(size=83).round(4)
            rows.append([company, time, round(float(rng.normal(-0.5)), 4), *figures])
    names = ["Company", "Time", "Financial Distress", *(f"x{j}" for j in range(1, 84))]
    table = pd.DataFrame(rows, columns=names).astype({"Company": int, "Time": int})
    return table.assign(x80=rng.integers(1, 38, len(table))).sample(frac=1, random_state=seed)


@pytest.fixture
def distress() -> Callable[[int, int], pd.DataFrame]:
    """Return a maker of tables in the layout of the public distress table."""
    return fabricated_distress
