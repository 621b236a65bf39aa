"""People are told what is not known of them, and what supplying it would do."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import torch

from countermove.data.cleaning import clean
from countermove.data.rows import fit_standardiser, rows_of, standardised_table
from countermove.data.schema import Schema
from countermove.people import ActionSet, QuadraticCost
from countermove.recourse.advise import decide_and_advise, with_approved
from countermove.recourse.pare import PromiseTerms
from countermove.response import BestResponse
from countermove.scores.linear import LinearScore
from countermove.scores.storage import PublishedModel


def mapping(supply):
    return {
        "label": {"column": "paid", "favourable": 1},
        "features": {
            "income": {
                "kind": "numeric", "change": "up", "unit": "EUR", "missing": "median", "min": 0,
                "max": 9000, "name": "monthly income",
            } | ({"supply": supply} if supply else {}),
            "savings": {"kind": "numeric", "change": "both"},
        },
    }  # fmt: skip


def office(supply):
    random = np.random.default_rng(1)
    raw = pd.DataFrame(
        {
            "income": random.normal(3000, 500, 200),
            "savings": random.normal(100, 20, 200),
            "paid": random.integers(0, 2, 200),
        }
    )
    raw.loc[:39, "income"] = np.nan
    schema = Schema.from_mapping("loans", mapping(supply))
    table = clean(raw, schema)
    unit = fit_standardiser(table, schema, divide_by_root_d=False)
    frame = standardised_table(table, schema, unit)
    score = LinearScore(3)
    with torch.no_grad():
        score.weight.copy_(torch.tensor([1.0, -0.5, 2.0]))
        score.bias.fill_(-0.2)
    actions = ActionSet.from_schema(schema, unit)
    people = BestResponse(actions.priced(QuadraticCost(1.0)), actions)
    model = with_approved(PublishedModel(score, unit, schema.digest(), {}), frame, schema)
    return model, rows_of(frame, schema), schema, people


TOO_DEAR = 100.0
"""Supplying at this price is nobody's cheapest advice: its words stand beside other advice."""


@pytest.mark.parametrize("supply", [False, TOO_DEAR])
def test_reasons_and_advice_say_what_is_not_known(supply):
    model, rows, schema, people = office(supply)
    table = decide_and_advise(model, rows, schema, people, PromiseTerms(), 0).table
    lacking = (np.arange(200) < 40) & (table["decision"] < 0).to_numpy()
    name = "We do not have your monthly income"
    assert table.loc[lacking, "words"].str.contains(name).all()
    assert not table.loc[~lacking, "words"].str.contains(name).any()
    reason = "we do not have your monthly income"
    named = [("income" in codes) for codes in table["reason_codes"]]
    assert table.loc[lacking & named, "reasons"].str.contains(reason).all()
    assert ("supply" in table) == bool(supply)


def test_the_value_that_would_be_enough_is_enough_and_what_is_below_is_not():
    model, rows, schema, people = office(TOO_DEAR)
    table = decide_and_advise(model, rows, schema, people, PromiseTerms(), 0).table
    lacking = np.flatnonzero((np.arange(200) < 40) & (table["decision"] < 0))
    told = table["words"].iloc[lacking].str.extract(r"at least ([\d,.]+) EUR would be approved")[0]
    assert told.notna().any()
    unit = model.standardiser
    for row, text in zip(lacking, told, strict=True):
        if isinstance(text, str):
            value = float(text.replace(",", ""))
            for amount, approved in ((value, True), (0.98 * value, False)):
                x = unit.inverse(rows.X[[row]])
                x[0, :2] = amount, 0.0
                after = replace(rows, X=unit.transform(x), ids=rows.ids[[row]])
                after = replace(after, y=rows.y[[row]], groups=pd.DataFrame(index=[0]))
                found = decide_and_advise(model, after, schema, people, PromiseTerms(), 0).table
                assert (found["decision"].iloc[0] > 0) == approved
