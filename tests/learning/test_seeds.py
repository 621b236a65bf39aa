"""The seed decides nothing: ten of them publish one rule."""

import numpy as np
import pytest

from countermove import StrategicClassifier
from countermove.people import ActionSet, QuadraticCost
from countermove.response import BestResponse, Population, ScalarResponse

RNG = np.random.default_rng(11)
Y = np.where(RNG.random(240) < 0.5, 1.0, -1.0)
X = RNG.normal(size=(240, 4)) + Y[:, None] * [0.8, 0.4, -0.3, 0.1]
BOX = ActionSet(min_value=X.min(axis=0), max_value=X.max(axis=0))
SOME = ActionSet(immutable=[0, 2], only_increase=[1])
CHEAP, EXPENSIVE = QuadraticCost(0.5), QuadraticCost(3.0)
POPULATIONS = {
    "alike": BestResponse(),
    "value bounds": BestResponse(actions=BOX),
    "kinds": Population([BestResponse(CHEAP), BestResponse(EXPENSIVE)], [0.6, 0.4], never=0.3),
    "half immutable": Population([BestResponse(c, SOME) for c in (CHEAP, EXPENSIVE)], [0.6, 0.4]),
    "log-normal": Population(BestResponse(QuadraticCost(2.0)), never=0.2, log_sd=0.5),
    "smooth": ScalarResponse(temperature=0.5),
}


@pytest.mark.parametrize("selection", ["none", pytest.param("guarded", marks=pytest.mark.slow)])
@pytest.mark.parametrize("people", POPULATIONS.values(), ids=POPULATIONS)
def test_ten_seeds_publish_one_rule(people, selection):
    rules = [
        StrategicClassifier(response=people, selection=selection, random_state=seed).fit(X, Y)
        for seed in range(10)
    ]
    units = np.array([rule.coef_[0] / np.linalg.norm(rule.coef_) for rule in rules])
    assert (units @ units[0]).min() >= 0.9999
    for rule in rules[1:]:
        np.testing.assert_array_equal(rule.predict(X), rules[0].predict(X))
