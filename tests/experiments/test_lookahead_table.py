"""The look-ahead paper's people: who is kept, in which units, under which names."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from countermove.data.cleaning import clean
from countermove.data.schema import load_schema
from countermove.data.synthetic import fabricate
from countermove.errors import DataError, NotEnoughRowsError, ParameterError
from countermove.experiments.lookahead import people as module
from countermove.experiments.lookahead.people import (
    FEATURES,
    LABEL,
    PAPER_TABLE,
    lookahead_table,
    paper_table,
    prepared_table,
)

SCHEMAS = Path(__file__).parents[2] / "conf" / "base" / "schemas"


def raw_people(n=40, seed=0):
    """A raw table as fetched: every cell a text, some of them empty."""
    rng = np.random.default_rng(seed)
    cells = pd.DataFrame(rng.normal(3.0, 2.0, (n, len(FEATURES))), columns=list(FEATURES))
    cells.insert(0, LABEL, (np.arange(n) % 4 == 0).astype(int))
    cells.insert(0, "Id", np.arange(n))
    cells = cells.astype(str)
    cells.loc[[1, 4], "MonthlyIncome"] = ["NA", ""]
    return cells


def test_rows_are_standardised_before_they_are_balanced(monkeypatch):
    monkeypatch.setattr(module, "OTHERS", 5)
    raw = raw_people()
    table = paper_table(raw)
    full = raw.drop(index=[1, 4])
    defaulted = full[LABEL] == "1"
    kept = pd.concat([full[defaulted], full[~defaulted].head(5)]).sort_index()
    assert table.crowd.n == len(kept) == defaulted.sum() + 5
    ages = full["age"].astype(float)
    expected = (kept["age"].astype(float) - ages.mean()) / ages.std(ddof=0)
    assert np.allclose(table.crowd.X[:, table.columns(["age"])[0]], expected)
    assert np.array_equal(table.crowd.y, (kept[LABEL] == "0").to_numpy(float))


def test_any_table_of_the_chain_can_take_its_place():
    schema = load_schema("tiny", SCHEMAS)
    typed = clean(fabricate("tiny"), schema)
    table = lookahead_table(lambda name: (typed, schema), raw_of_nothing, "tiny")
    assert table.names == tuple(schema.feature_names)
    assert np.allclose(table.crowd.X.mean(axis=0), 0.0, atol=1e-12)
    assert table.crowd.y.sum() == (typed["label"] == 1).sum()
    assert np.array_equal(prepared_table(typed, schema).crowd.X, table.crowd.X)
    with pytest.raises(ParameterError, match=f"prepares {PAPER_TABLE} only, got 'tiny'"):
        lookahead_table(lambda name: (typed, schema), raw_of_nothing, "tiny", "paper")


def raw_of_nothing(name):
    raise AssertionError("the raw table is not asked for")


def test_only_the_named_columns_may_change():
    table = paper_table(raw_people())
    allowed = table.only(["age", "DebtRatio"])
    assert set(allowed.immutable) == set(range(10)) - {1, 3}
    assert table.of_rows(np.arange(3)).crowd.n == 3


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (["agee"], "no column 'agee'; did you mean 'age'"),
        (["constant"], "'constant' is the learner's constant, which nobody can change"),
        ([], "at least one column"),
        (["age", "age"], "each once"),
    ],
)
def test_columns_nobody_can_change_are_refused(names, message):
    with pytest.raises(ParameterError, match=message):
        paper_table(raw_people()).columns(names)


def test_tables_that_are_another_are_refused():
    with pytest.raises(DataError, match="missing columns: 'age'"):
        paper_table(raw_people().drop(columns="age"))
    broken = raw_people()
    broken.loc[7, "age"] = "forty"
    with pytest.raises(DataError, match=r"'age': not a number, in 1 row\(s\): 7") as caught:
        paper_table(broken)
    assert caught.value.rows == (7,)
    with pytest.raises(NotEnoughRowsError, match="both outcomes"):
        paper_table(raw_people().assign(**{LABEL: "0"}))
