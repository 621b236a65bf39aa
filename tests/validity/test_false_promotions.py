"""A challenger that is no better than the champion is promoted no more often than stated."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import torch
from scipy.stats import binom

from countermove.people import QuadraticCost
from countermove.production.gates import Case, Improvement
from countermove.production.retraining.holdout import holdout_decisions
from countermove.response import BestResponse
from countermove.scores import LinearScore

PEOPLE = {"best": BestResponse(QuadraticCost(1.0))}


def rule(angle: float) -> LinearScore:
    """A rule of unit norm; people cannot reach further than sqrt(2), so the bar stands there."""
    score = LinearScore(2)
    with torch.no_grad():
        score.weight.copy_(torch.tensor([np.cos(angle), np.sin(angle)]))
        score.bias.fill_(-(2.0**0.5))
    return score


def gates_open(challenger: float, champion: float, n: int, draws: np.random.Generator) -> bool:
    """ScoringRule two rules on fresh people, whose classes are mirrored in the first axis."""
    y = np.where(draws.random(n) < 0.5, 1.0, -1.0)
    X = draws.normal(size=(n, 2)) + np.outer(y, [0.8, 0.0])
    case = Case(
        challenger=holdout_decisions(rule(challenger), X, y, PEOPLE),
        champion=holdout_decisions(rule(champion), X, y, PEOPLE),
        stated=["best"],
        groups=pd.DataFrame(index=range(n)),
        certificate={},
        champion_certificate=None,
        without_recourse=(0, 0),
        bounds=[],
    )
    return bool(Improvement().check(case).passed)


@pytest.mark.validity
@pytest.mark.parametrize(
    ("angle", "repetitions"),
    [(0.05, 2000), (0.4, 2000), pytest.param(0.4, 150, marks=pytest.mark.quick_validity)],
)
def test_equal_rules_are_promoted_at_most_as_often_as_stated(angle, repetitions):
    """Turned by the same angle to either side, two rules are equally good and often differ."""
    draws = np.random.default_rng(0)
    promoted = sum(gates_open(angle, -angle, 1000, draws) for _ in range(repetitions))
    assert promoted <= binom.ppf(0.999, repetitions, 0.05)
    # The test must be able to fail: it is no gate that never opens.
    assert angle < 0.1 or promoted > 0


@pytest.mark.validity
@pytest.mark.quick_validity
def test_a_better_rule_is_promoted_and_a_worse_one_is_not():
    draws = np.random.default_rng(1)
    better = sum(gates_open(0.0, 0.8, 2000, draws) for _ in range(50))
    worse = sum(gates_open(0.8, 0.0, 2000, draws) for _ in range(50))
    assert better >= 45
    assert worse == 0
