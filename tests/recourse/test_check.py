"""A sensitive column that would be a reason for refusals fails the check, by name."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from countermove.data.cleaning import clean
from countermove.data.schema import Schema
from countermove.recourse.check import few_clusters, lost_to_ranges, sensitive_reasons

FRACTIONS = {"train": 0.5, "validation": 0.15, "calibration": 0.15, "test": 0.2}


def table(effect):
    """Return people whose outcome depends on income, and on their group by ``effect``."""
    rng = np.random.default_rng(0)
    income, member = rng.normal(3000, 800, 800), rng.integers(0, 2, 800)
    odds = (income - 3000) / 400 + effect * (member - 0.5)
    repaid = rng.uniform(size=800) < 1 / (1 + np.exp(-odds))
    return pd.DataFrame({"income": income.round(), "member": member, "repaid": repaid.astype(int)})


def schema_with(*sensitive):
    said = {
        "label": {"column": "repaid", "favourable": 1},
        "features": {
            "income": {"kind": "numeric", "change": "up"},
            "member": {"kind": "binary", "change": "immutable"},
        },
    }
    return Schema.from_mapping("club", said | ({"sensitive": [*sensitive]} if sensitive else {}))


def test_a_sensitive_feature_among_the_reasons_is_named():
    schema = schema_with("member")
    (error,) = sensitive_reasons(clean(table(3.0), schema), schema, FRACTIONS, 0)
    assert error.startswith("column 'member' is declared sensitive and is a main reason for ")
    assert "take it out of `features:`" in error


@pytest.mark.parametrize("sensitive", [(), ("other",)])
def test_columns_that_are_no_feature_or_not_sensitive_pass(sensitive):
    raw, schema = table(3.0).assign(**dict.fromkeys(sensitive, "a")), schema_with(*sensitive)
    assert sensitive_reasons(clean(raw, schema), schema, FRACTIONS, 0) == []


def test_recourse_lost_to_usual_ranges_is_counted():
    """Who could be approved only with more than anybody earns loses recourse."""
    schema = schema_with()
    said = lost_to_ranges(clean(table(6.0), schema), schema)
    assert said.startswith("recourse within usual ranges: ")
    within, beyond = (float(share.split("%")[0]) for share in said.split(": ")[1].split(", "))
    assert within <= beyond == 100.0


@pytest.mark.parametrize(("per_cluster", "said"), [(100, True), (1, False)])
def test_calibration_counts_clusters_where_rows_belong_together(per_cluster, said):
    """Thousands of rows of sixty households are not thousands of draws."""
    mapping = {
        "label": {"column": "y", "favourable": 1},
        "features": {"income": {"kind": "numeric", "change": "up"}},
        "group_by": "household",
    }
    schema = Schema.from_mapping("households", mapping)
    draws = np.random.default_rng(0)
    raw = pd.DataFrame(
        {
            "income": draws.normal(size=6000),
            "y": draws.integers(0, 2, 6000),
            "household": [f"h{i // per_cluster}" for i in range(6000)],
        }
    )
    fractions = {"train": 0.5, "validation": 0.1, "calibration": 0.3, "test": 0.1}
    found = few_clusters(clean(raw, schema), schema, fractions, 0, 0.05, 0.05)
    assert (found is not None) is said
    if said:
        assert "calibration by 'household'" in found
        assert "clusters of 5 rows are needed" in found
