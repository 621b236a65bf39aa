"""What a budget reaches costs that budget, and what no price can buy costs infinity."""

import numpy as np
import torch

from countermove.people import ActionSet, QuadraticCost
from countermove.response import BestResponse
from countermove.response.base import GAIN


def test_what_the_whole_gain_reaches_costs_the_whole_gain(make_case, make_score, cost_name, boxed):
    case = make_case(cost_name, 20, boxed, n=25)
    people = BestResponse(case.cost, case.actions)
    reached = people.scores_after(case.score, torch.from_numpy(case.X)).detach().numpy()
    paid = np.empty(len(case.X))
    for i, level in enumerate(reached):
        lowered = make_score(case.w, case.b - level + 1e-9 * (1.0 + abs(level)))
        paid[i] = people.crossing_cost(lowered, case.X[i : i + 1])[0]
    # Whoever stands at the end of their box reaches it for less than the whole gain.
    low, high = case.actions.box(case.X)
    top = case.X @ case.w + case.b + np.maximum(low * case.w, high * case.w).sum(axis=1)
    inside = reached < top - 1e-6
    assert inside.any() or boxed or cost_name == "linear"
    np.testing.assert_allclose(paid[inside], GAIN, atol=1e-5)
    assert (paid <= GAIN + 1e-6).all()


def test_what_no_price_can_buy_costs_infinity(make_score):
    people = BestResponse(QuadraticCost(1e-6), ActionSet(lower=[-1.0, 0.0], upper=[1.0, 2.0]))
    here = np.zeros((1, 2))
    assert people.crossing_cost(make_score([3.0, 1.0], -5.1), here) == np.inf
    assert people.crossing_cost(make_score([3.0, 1.0], -5.0 + 1e-9), here) < 1e-5
    reached = people.scores_after(make_score([3.0, 1.0], -5.1), torch.zeros(1, 2).double())
    np.testing.assert_allclose(reached.detach(), -0.1, atol=1e-12)
