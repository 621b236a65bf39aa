"""A report on tables as the pipelines keep them."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch

from countermove.data.cleaning import clean
from countermove.data.rows import fit_standardiser, standardised_table
from countermove.data.schema import load_schema
from countermove.data.synthetic import TINY_BIAS, TINY_WEIGHTS, fabricate
from countermove.errors import DataError
from countermove.people import QuadraticCost
from countermove.production.drift import DriftTerms, drift_of_tables
from countermove.response import BestResponse
from countermove.scores import LinearScore
from countermove.scores.storage import PublishedModel

SCHEMA = load_schema("tiny", Path(__file__).parents[3] / "conf" / "base" / "schemas")
TERMS = DriftTerms(permutations=199, bootstrap=50)


def tables(shift=0.0):
    """Two standardised tables of other people, and the rule behind their labels."""
    raw = [fabricate("tiny", 600, seed) for seed in (1, 2)]
    raw[1]["person"] = [f"q{number}" for number in range(600)]
    typed = [clean(table, SCHEMA) for table in raw]
    typed[1]["income"] += shift
    units = fit_standardiser(typed[0], SCHEMA, divide_by_root_d=False)
    score = LinearScore(len(units.names))
    weights = np.array([TINY_WEIGHTS.get(name, 0.0) for name in units.names]) * units.scale
    with torch.no_grad():
        score.weight.copy_(torch.from_numpy(weights))
        score.bias.fill_(TINY_BIAS + float(weights @ (units.mean / units.scale)) - 1.0)
    frames = [standardised_table(table, SCHEMA, units) for table in typed]
    return frames, PublishedModel(score, units, "")


def report(frames, model):
    from countermove.response import NoResponse

    return drift_of_tables(*frames, SCHEMA, model, NoResponse(), TERMS, 0)


def test_the_same_people_again_are_no_drift():
    frames, model = tables()
    assert report(frames, model).recommendation == "keep"


def test_incomes_that_grew_are_told_in_original_units():
    frames, model = tables(shift=4.0)
    found = report(frames, model)
    assert found.recommendation == "retrain"
    (income,) = (shift for shift in found.shifts if shift.name == "income")
    assert income.observed * income.per_spread == pytest.approx(4.0, abs=1.5)


def test_answers_of_a_table_are_no_alarm():
    frames, model = tables()
    response = BestResponse(QuadraticCost(1.0))
    names = list(SCHEMA.feature_names)
    moved = response.respond(model.score, frames[1][names].to_numpy(np.float64)).x_new
    frames[1][names] = moved
    found = drift_of_tables(*frames, SCHEMA, model, response, TERMS, 0)
    assert found.recommendation == "keep"
    assert found.findings.against_reference.moved


def test_labels_and_ids_may_be_absent():
    frames, model = tables()
    frames[1] = frames[1].drop(columns=["label", "row_id"])
    found = report(frames, model)
    assert found.findings.against_prediction.labels is None
    assert found.rows["shared"] == 0


def test_a_missing_column_is_named():
    frames, model = tables()
    with pytest.raises(DataError, match="observed table lacks the columns 'income'"):
        report([frames[0], pd.DataFrame(frames[1]).drop(columns="income")], model)
