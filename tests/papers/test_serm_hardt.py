"""SERM, Figure 1 left: Hardt et al.'s own algorithm on the spam table (reference: 0, item 4)."""

from __future__ import annotations

import numpy as np
import pytest

from countermove.learning import accuracy_after, hardt_threshold
from countermove.people import LinearCost, MixtureCost
from countermove.response import BestResponse

from .parity import splits

pytestmark = pytest.mark.paper

SCALE = 0.5
DIRECTION = np.array([-1, -1, -1, -1, -1, -1, -1, 1, 1, 0.1, 1, 0.1, 0.1, 1, 0.1])
REFERENCE = {0.0: 0.669, 0.02: 0.665, 0.1: 0.645, 0.2: 0.625, 0.4: 0.580, 0.6: 0.540, 1.0: 0.519}


@pytest.mark.parametrize(("gamma", "reference"), REFERENCE.items())
def test_the_exact_rule_decays_slowly_as_the_cost_leaves_its_assumption(gamma, reference):
    split = splits("spam")[0]
    separable = LinearCost(SCALE * DIRECTION)
    rule = hardt_threshold(separable, *split.known)
    cost = MixtureCost(DIRECTION, gamma, SCALE) if gamma else separable
    found = accuracy_after(rule, *split.test, BestResponse(cost)).accuracy
    assert found == pytest.approx(reference, abs=0.0006)
