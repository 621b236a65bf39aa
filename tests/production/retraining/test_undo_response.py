from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import torch

from countermove.data.schema import Schema
from countermove.errors import NotEnoughRowsError
from countermove.people import QuadraticCost
from countermove.production.retraining.challenger import UndoResponse
from countermove.response import BestResponse, NoResponse, ScalarResponse
from countermove.scores import LinearScore

SCHEMA = Schema.from_mapping(
    "plane",
    {
        "label": {"column": "y", "favourable": 1},
        "features": {"a": {"kind": "numeric"}, "b": {"kind": "numeric"}},
    },
)


def people(n: int, seed: int) -> pd.DataFrame:
    draws = np.random.default_rng(seed)
    y = np.where(draws.random(n) < 0.5, 1.0, -1.0)
    X = draws.normal(size=(n, 2)) + 0.7 * y[:, None]
    ids = [f"{seed}:{place}" for place in range(n)]
    return pd.DataFrame({"row_id": ids, "label": y, "a": X[:, 0], "b": X[:, 1]})


def rule() -> LinearScore:
    score = LinearScore(2)
    with torch.no_grad():
        score.weight.copy_(torch.tensor([1.0, 0.5]))
        score.bias.fill_(-0.5)
    return score


def answered(table: pd.DataFrame, response: BestResponse | ScalarResponse) -> pd.DataFrame:
    there = response.respond(rule(), table[["a", "b"]].to_numpy()).x_new
    return table.assign(a=there[:, 0], b=there[:, 1])


def scores(table: pd.DataFrame) -> np.ndarray:
    return table["a"].to_numpy() + 0.5 * table["b"].to_numpy() - 0.5


@pytest.mark.parametrize("response", [BestResponse(QuadraticCost(1.0)), ScalarResponse()])
def test_scores_with_the_response_undone_are_distributed_as_before(response):
    from scipy.stats import ks_2samp

    before = people(3000, 1)
    after = answered(before, response)
    back = UndoResponse(people(6000, 2), SCHEMA, rule(), response)(after)
    assert ks_2samp(scores(after), scores(before), method="asymp").pvalue < 1e-6
    for label in (1.0, -1.0):
        who = before["label"] == label
        assert ks_2samp(scores(back[who]), scores(before[who]), method="asymp").pvalue > 0.001


def test_people_who_had_no_reason_to_move_stay():
    response = BestResponse(QuadraticCost(1.0))
    before = people(2000, 1)
    after = answered(before, response)
    back = UndoResponse(people(4000, 2), SCHEMA, rule(), response)(after)
    far = np.abs(scores(before)) > 2.0
    assert far.sum() > 100
    same = np.isclose(back.loc[far, ["a", "b"]], before.loc[far, ["a", "b"]]).all(axis=1)
    assert same.mean() > 0.99


def test_ids_and_labels_are_untouched():
    before = people(200, 1)
    response = BestResponse(QuadraticCost(1.0))
    back = UndoResponse(people(400, 2), SCHEMA, rule(), response)(answered(before, response))
    assert back["row_id"].tolist() == before["row_id"].tolist()
    assert back["label"].tolist() == before["label"].tolist()


def test_nobody_is_moved_back_where_nobody_responds():
    before = people(200, 1)
    back = UndoResponse(people(400, 2), SCHEMA, rule(), NoResponse())(before)
    pd.testing.assert_frame_equal(back, before)


def test_a_label_without_reference_is_refused():
    reference = people(400, 2)
    with pytest.raises(NotEnoughRowsError, match="label -1"):
        UndoResponse(reference[reference["label"] > 0], SCHEMA, rule(), NoResponse())(people(50, 1))
