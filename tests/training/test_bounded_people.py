"""What bounded people reach does not depend on which rules were asked for before."""

import numpy as np
import pytest

from countermove.people import ActionSet, QuadraticCost, WeightedQuadraticCost
from countermove.response import BestResponse
from countermove.response.training_signal import reach_of
from countermove.training.bounded_people import BoundedPeople

D = 5
X = np.random.default_rng(0).normal(size=(900, D))
BOXES = {
    "values": ActionSet(min_value=X.min(axis=0), max_value=X.max(axis=0)),
    "one ceiling": ActionSet(max_value=[X[:, 0].max(), *[np.inf] * (D - 1)], immutable=[4]),
    "short moves": ActionSet(lower=[-0.3] * D, upper=[0.1] * D),
}
COSTS = [QuadraticCost(0.05), QuadraticCost(3.0), WeightedQuadraticCost([0.2, 1.0, 4.0, 0.5, 1.0])]


@pytest.mark.parametrize("cost", COSTS, ids=["cheap", "expensive", "weighted"])
@pytest.mark.parametrize("box", BOXES.values(), ids=BOXES)
def test_rule_after_rule_they_reach_what_the_response_says(box, cost):
    response, rng = BestResponse(cost, box), np.random.default_rng(1)
    people = BoundedPeople.of(response, X, reach_of(response, np.ones(D), X))
    for scale in (1.0, 1e-3, 50.0, 1.0):
        weight = scale * rng.normal(size=D) * (rng.random(D) < 0.8)
        found, wanted = people.reach(weight), reach_of(response, weight, X)
        np.testing.assert_allclose(found.reach, wanted.reach, rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(found.moved, wanted.moved, rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(found.multiplier, wanted.multiplier, rtol=1e-9)
