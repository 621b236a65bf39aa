"""Social measures are hard ones: worked out by hand on a line."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import torch

from countermove.data.rows import Rows
from countermove.learning.measures import social_measures
from countermove.people import ActionSet, QuadraticCost
from countermove.response import BestResponse
from countermove.scores import LinearScore


def line(scale: float = 1.0, bias: float = 0.0) -> LinearScore:
    score = LinearScore(1)
    with torch.no_grad():
        score.weight.fill_(scale)
        score.bias.fill_(scale * bias)
    return score


def people(x, y) -> Rows:
    X = np.array(x, dtype=np.float64)[:, None]
    return Rows(np.array([str(v) for v in x]), X, np.array(y, dtype=np.float64), pd.DataFrame())


# Crossing from -1 costs 1 and is worth it; from -2 it costs 4 and is not; -0.5 costs 0.25.
CROWD = people([-2.0, -1.0, -0.5, 3.0], [1, 1, -1, 1])
FREE = BestResponse(QuadraticCost(1.0))


def test_measures_by_hand():
    found = social_measures(line(), CROWD, FREE)
    assert found["utility"] == pytest.approx((-1 + (1 - 1.0) + (1 - 0.25) + 1) / 4, abs=1e-9)
    assert found["burden"] == pytest.approx((4 + 1 + 0) / 3, abs=1e-9)
    assert found["recourse"] == pytest.approx(2 / 3)


@pytest.mark.parametrize("scale", [0.01, 7.0, 1000.0])
def test_measures_do_not_depend_on_the_scale_of_the_score(scale):
    assert social_measures(line(scale), CROWD, FREE) == pytest.approx(
        social_measures(line(), CROWD, FREE), abs=1e-6
    )


def test_people_who_cannot_get_there_are_counted_apart():
    """Nobody may move by more than 1: the person at -2 has no price, not a price of infinity."""
    narrow = BestResponse(QuadraticCost(1.0), ActionSet(lower=[-1.2], upper=[1.2]))
    found = social_measures(line(), CROWD, narrow)
    assert found["burden"] == pytest.approx((1 + 0) / 2, abs=1e-9)
    assert found["recourse"] == pytest.approx(2 / 3)


def test_nobody_refused_has_no_recourse_figure():
    assert social_measures(line(bias=10.0), CROWD, FREE)["recourse"] is None
