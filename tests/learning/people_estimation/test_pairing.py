"""Tables that must not be compared, and why."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import torch

from countermove.data.cleaning import clean
from countermove.data.rows import fit_standardiser
from countermove.data.schema import Schema
from countermove.errors import DataError, NotEnoughRowsError, ParameterError
from countermove.learning.people_estimation import estimate_people
from countermove.learning.people_estimation.estimation import estimate_from_tables
from countermove.people import ActionSet
from countermove.scores import LinearScore
from countermove.scores.storage import PublishedModel

from .deployments import best, deployed, rule

N = 60


@pytest.fixture
def tables():
    """Return a rule and two DataFrames with a key."""
    score, X, after = deployed(best(), n=N)
    frames = [pd.DataFrame(table, columns=list("abcde")) for table in (X, after)]
    for frame in frames:
        frame.insert(0, "who", [f"p{row}" for row in range(N)])
    return score, *frames


def refusal(score, before, after, **settings) -> DataError:
    with pytest.raises((DataError, ParameterError)) as caught:
        estimate_people(score, before, after, **settings)
    return caught.value


def test_keys_that_do_not_match_are_named(tables):
    score, before, after = tables
    after.loc[3, "who"] = "stranger"
    error = refusal(score, before, after, key="who")
    assert "1 only before: 'p3'; 1 only after: 'stranger'" in str(error)
    assert "key=None" in str(error)
    assert error.rows == (3,)


def test_keys_that_repeat_are_named(tables):
    score, before, after = tables
    before.loc[4, "who"] = "p5"
    error = refusal(score, before, after, key="who")
    assert "before" in str(error)
    assert "'p5'" in str(error)
    assert error.rows == (4, 5)


def test_a_missing_key_column_or_key(tables):
    score, before, after = tables
    assert "lacks the key column" in str(refusal(score, before, after[list("abcde")], key="who"))
    after.loc[2, "who"] = None
    error = refusal(score, before, after, key="who")
    assert "without a key" in str(error)
    assert error.rows == (2,)


def test_missing_columns_and_values(tables):
    score, before, after = tables
    assert "'d'" in str(refusal(score, before, after.drop(columns="d"), key="who"))
    after.loc[[1, 9], "c"] = np.nan
    error = refusal(score, before, after, key="who")
    assert "'c'" in str(error)
    assert error.rows == (1, 9)
    text = before.astype({"a": object})
    text.loc[0, "a"] = "many"
    assert "no numbers" in str(refusal(score, text, before, key="who"))


def test_tables_of_two_kinds_or_widths(tables):
    score, before, _ = tables
    features = before[list("abcde")].to_numpy()
    assert "two of a kind" in str(refusal(score, before, features, key="who"))
    pair = (np.arange(N), np.arange(N))
    assert "5 features but the tables hold 4" in str(
        refusal(score, features[:, :4], features[:, :4], key=pair)
    )
    assert "names a column" in str(refusal(score, features, features, key="who"))
    assert "but 3 keys" in str(refusal(score, features, features, key=(np.arange(3), pair[1])))


def test_too_few_people_says_how_many(tables):
    score, before, after = tables
    with pytest.raises(NotEnoughRowsError, match="at least 30 matched people, got 29"):
        estimate_people(score, before[:29], after[:29], key="who")
    with pytest.raises(NotEnoughRowsError, match="at least 200"):
        estimate_people(score, before.drop(columns="who"), after.drop(columns="who"))


def test_a_rule_that_gives_nobody_a_reason(tables):
    _, before, after = tables
    assert "zero slope" in str(refusal(LinearScore(5), before, after, key="who"))
    fixed = ActionSet(immutable=range(5))
    assert "zero slope" in str(refusal(rule(), before, after, key="who", actions=fixed))


@pytest.mark.parametrize("setting", [{"cost": "cubic"}, {"level": 1.0}, {"key": 7}])
def test_settings_that_make_no_sense(tables, setting):
    with pytest.raises(ParameterError, match=next(iter(setting))):
        estimate_people(*tables, **{"key": "who", **setting})


@pytest.mark.parametrize(
    ("matched", "supply"), [(True, True), pytest.param(False, False, marks=pytest.mark.slow)]
)
def test_whoever_lacks_a_cell_is_left_out_of_an_estimate(matched, supply, caplog):
    """The others are judged as if those had never been in the tables."""
    score, X, after = deployed(best(), n=400)
    names = list("abcde")
    features = {name: {"kind": "numeric", "change": "both"} for name in names}
    features["b"] |= {"missing": "median", "supply": supply}
    label = {"column": "paid", "favourable": 1}
    schema = Schema.from_mapping("t", {"id": "who", "label": label, "features": features})
    before, later = (pd.DataFrame(table, columns=names) for table in (X, after))
    for frame in (before, later):
        frame.insert(0, "who", [f"p{row}" for row in range(400)])
    raw = before.assign(paid=np.arange(400) % 2)
    raw.loc[::7, "b"] = np.nan
    unit = fit_standardiser(clean(raw, schema), schema, divide_by_root_d=False)
    wider = LinearScore(6)
    with torch.no_grad():
        weights = torch.cat([score.weight[:2], torch.zeros(1), score.weight[2:]])
        wider.weight.copy_(weights * torch.tensor(unit.scale))
        wider.bias.copy_(score.bias + weights.double() @ torch.tensor(unit.mean))
    model = PublishedModel(wider, unit, schema.digest(), {})
    actions = ActionSet.from_schema(schema, unit, possible=False)
    gone = [before.copy(), later.copy()]
    gone[0].loc[:9, "b"] = np.nan
    gone[1].loc[5:14, "b"] = np.nan
    away = [before.drop(index=range(15 if matched else 10)),
            later.drop(index=range(15) if matched else range(5, 15))]  # fmt: skip
    found, expected = (
        estimate_from_tables(model, *tables, schema, actions, matched).to_json()
        for tables in (gone, away)
    )
    assert found == expected
    assert f"{15 if matched else 10} of 400 people before" in caplog.text
