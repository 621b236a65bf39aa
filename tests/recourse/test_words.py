"""Advice in original units and words."""

from __future__ import annotations

from io import BytesIO, StringIO

import numpy as np
import pandas as pd
import pytest

from countermove.data.schema import Schema
from countermove.data.standardise import Standardiser
from countermove.errors import DataError
from countermove.people import ActionSet
from countermove.recourse import CausalModel, advice_table, best_reachable, recommend, sentences

from .conftest import linear

SCHEMA = Schema.from_mapping(
    "bank",
    {
        "label": {"column": "outcome", "favourable": 1},
        "features": {
            "hours": {"kind": "integer", "unit": "hours", "change": "up", "min": 0, "max": 60},
            "amount": {"kind": "numeric", "unit": "EUR", "change": "down", "min": 0},
            "savings": {"kind": "ordered", "change": "up", "categories": ["none", "some", "much"]},
            "age": {"kind": "integer", "change": "immutable"},
            "home": {"kind": "onehot", "change": "both", "categories": ["rented", "owned"]},
        },
    },
)
UNITS = Standardiser(
    np.array([38.0, 900.0, 0.7, 40.0, 0.6, 0.4]),
    np.array([8.0, 300.0, 0.8, 12.0, 0.49, 0.49]),
    SCHEMA.feature_names,
)
PEOPLE = UNITS.transform(
    np.array(
        [
            [40.0, 1000.0, 0, 30, 1, 0],  # refused, has a way
            [60.0, 0.0, 2, 30, 0, 1],  # approved
            [60.0, 9000.0, 2, 90, 0, 1],  # refused, can only lower the amount
        ]
    )
)
RULE = linear([0.5, -0.2, 0.4, -3.0, -0.3, 0.3], -1.0)


@pytest.fixture
def advice():
    limits = np.array([1.0, 0.5, 1.3, 0.0, 9.0, 9.0])
    actions = ActionSet.from_schema(SCHEMA, UNITS)._copy(lower=-limits, upper=limits)
    return recommend(RULE, PEOPLE, "integer_program", 0.5, actions)


def test_sentences_say_what_to_do(advice):
    said = sentences(advice, PEOPLE, SCHEMA, UNITS)
    assert advice.status.tolist()[1:] == ["NOT_NEEDED", "PROVEN_NONE"]
    assert said[1] == "Approved: nothing to do."
    assert said[2] == "No allowed change leads to approval."


def test_words_are_in_original_units():
    rule = linear([0.5, -0.2, 0.4, 0.0, -0.3, 0.3], -3.2)
    limits = np.array([1.0, 0.5, 1.3, 0.0, 9.0, 9.0])
    actions = ActionSet.from_schema(SCHEMA, UNITS)._copy(lower=-limits, upper=limits)
    person = PEOPLE[[0]]
    most = best_reachable(rule, person, actions=actions).score[0]
    threshold = 1.0 / (1.0 + np.exp(0.05 - most))  # within reach, but only by doing it all
    found = recommend(rule, person, "integer_program", threshold, actions)
    (said,) = sentences(found, person, SCHEMA, UNITS)
    after = UNITS.inverse(found.x_new(person))[0]
    assert found.status.tolist() == ["FOUND"]
    assert f"aise hours from 40 to {after[0]:.0f} hours" in said
    assert "switch home from “rented” to “owned”" in said
    assert "lower amount from 1,000 to" in said
    assert "age" not in said
    table = advice_table(found, person, SCHEMA, UNITS, ["anna"])
    assert table["change:hours"].tolist() == [after[0] - 40.0]
    assert table["change:home=owned"].tolist() == [1.0]
    assert table.loc[0, "words"] == said


def test_table_survives_parquet_and_csv(advice):
    table = advice_table(advice, PEOPLE, SCHEMA, UNITS, ["a", "b", "c"])
    first = ["row_id", "decision", "probability", "status", "probability_after", "cost"]
    assert list(table.columns)[:6] == first
    assert table.columns[-1] == "words"
    assert "change:age" not in table
    assert table["decision"].tolist() == np.where(advice.status == "NOT_NEEDED", 1, -1).tolist()
    assert table.loc[2, "change:amount"] != table.loc[2, "change:amount"]  # none known, not zero
    stored = BytesIO()
    table.to_parquet(stored)
    again = pd.read_parquet(stored)
    assert again["words"].tolist() == table["words"].tolist()
    assert len(pd.read_csv(StringIO(table.to_csv(index=False)))) == 3
    with pytest.raises(DataError, match="2 ids"):
        advice_table(advice, PEOPLE, SCHEMA, UNITS, ["a", "b"])


def test_consequences_are_mentioned():
    model = CausalModel.from_mapping(
        {"amount": {"causes": {"hours": 10.0}}}, SCHEMA.feature_names, UNITS
    )
    actions = ActionSet.from_schema(SCHEMA, UNITS)
    rule = linear([1.0, 0.0, 0.0, 0.0, 0.0, 0.0], -0.7)
    found = recommend(rule, PEOPLE[[0]], "causal", 0.5, actions, causal=model)
    (said,) = sentences(found, PEOPLE[[0]], SCHEMA, UNITS)
    assert said == "Raise hours from 40 to 44 hours (with what follows: amount 1,000 → 1,040)."
