"""Relations are proposed where no row breaks them and chance would not explain it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import yaml

from countermove.data.cleaning import clean
from countermove.data.drafting import draft_schema
from countermove.data.drafting._mining import mine_relations
from countermove.data.schema import Feature, Schema, load_schema
from countermove.data.sources import read_embedded


@pytest.fixture(scope="module")
def loans() -> pd.DataFrame:
    """1,000 people whose limits hold by construction, and one column that has no part in it."""
    rng = np.random.default_rng(8)
    n = 1000
    limit = rng.integers(1, 50, n) * 100
    used = np.minimum(rng.integers(0, 60, n) * 100, limit)
    late = rng.integers(0, 4, n)
    return pd.DataFrame(
        {
            "credit_limit": limit,
            "credit_used": used,
            "late_months": late,
            "late_ever": (late > 0).astype(int),
            "late_worst": np.where(late > 0, rng.integers(1, 9, n), 0),
            "income": rng.integers(10, 99, n),
            "repaid": rng.choice(["yes", "no"], n),
        }
    )


def texts(table: pd.DataFrame, schema: Schema) -> list[str]:
    return [mined.rule.text for mined in mine_relations(table, schema.observed)]


def test_what_holds_by_construction_is_found_and_nothing_else(loans: pd.DataFrame) -> None:
    found = texts(loans, draft_schema(loans, "loans").schema)
    assert found[0] == "credit_used <= credit_limit"
    assert any(text.startswith("if late_") for text in found)
    assert not [text for text in found if "income" in text]
    # Whoever satisfies them all: never late, or late in every respect.
    schema = draft_schema(loans, "loans").schema
    broken = loans.assign(late_worst=np.where(loans["late_months"] > 0, 0, loans["late_worst"]))
    rules = [mined.rule for mined in mine_relations(loans, schema.observed)]
    held = np.all([rule.holds(broken) for rule in rules], axis=0)
    np.testing.assert_array_equal(held, loans["late_months"] == 0)


@pytest.mark.parametrize("seed", range(5))
def test_columns_that_were_permuted_have_no_relation(loans: pd.DataFrame, seed: int) -> None:
    rng = np.random.default_rng(seed)
    shuffled = loans.apply(lambda column: rng.permutation(column.to_numpy()))
    assert texts(shuffled, draft_schema(loans, "loans").schema) == []


def test_one_exception_is_enough(loans: pd.DataFrame) -> None:
    schema = draft_schema(loans, "loans").schema
    loans = loans.copy()
    loans.loc[17, "credit_used"] = loans.loc[17, "credit_limit"] + 1
    assert "credit_used <= credit_limit" not in texts(loans, schema)


def test_units_that_differ_are_not_compared(loans: pd.DataFrame) -> None:
    units = {"credit_limit": "EUR", "credit_used": "USD"}
    features = [Feature(name, "integer", unit=unit) for name, unit in units.items()]
    assert mine_relations(loans, features) == []
    features = [Feature(name, "integer", unit="EUR") for name in units]
    assert [mined.rule.text for mined in mine_relations(loans, features)] == [
        "credit_used <= credit_limit"
    ]


def test_proposals_are_comments_until_a_person_confirms_them(loans: pd.DataFrame) -> None:
    draft = draft_schema(loans, "loans")
    assert draft.schema.relations == ()
    lines = draft.text.splitlines()
    start = lines.index("# relations:")
    assert all(line.startswith("#") for line in lines[start:])
    assert "100.0% of the rows speak for it and it excludes none of them" in lines[start + 1]
    confirmed = "\n".join([*lines[:start], *(line.removeprefix("# ") for line in lines[start:])])
    schema = Schema.from_mapping("loans", yaml.safe_load(confirmed))
    assert len(schema.relations) == len(lines) - start - 1
    assert all(relation.holds(clean(loans, schema)).all() for relation in schema.relations)


def test_the_definitions_of_credit_are_found_in_its_table(schemas: Path) -> None:
    schema = load_schema("credit", schemas)
    table = clean(read_embedded("credit"), schema)
    found = texts(table, schema)
    declared = [relation.text for relation in schema.relations]
    # Order and sums as declared; the overdue columns in words that say the same.
    assert found[:3] == declared[:3]
    assert set(declared[6:8]) <= set(found)
