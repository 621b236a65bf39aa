"""The one-call signal of scores with a slope is the general one, value and gradient."""

import numpy as np
import pytest
import torch

from countermove.people import ActionSet, QuadraticCost, WeightedQuadraticCost
from countermove.response import ScalarResponse
from countermove.response.training_signal import AffineSignal, training_signal
from countermove.scores import PartlyLinearScore, RecurrentScore

ACTIONS = {
    "free": None,
    "boxed": ActionSet(
        lower=[-9.0, -9.0, -0.2, -0.3], upper=[9.0, 9.0, 0.3, 0.2],
        max_value=[np.inf, np.inf, 1.0, 1.0], only_increase=[2],
    ),
}  # fmt: skip


def scores():
    draws = torch.Generator().manual_seed(0)
    recurrent = RecurrentScore([[1, 0], [2, 3]], 5, draws)
    with torch.no_grad():
        recurrent.weight.mul_(4.0)
    return {"recurrent": recurrent, "partly": PartlyLinearScore(4, [2, 3], (5,), draws)}


@pytest.mark.parametrize("kind", ["recurrent", "partly"])
@pytest.mark.parametrize("actions", ACTIONS)
@pytest.mark.parametrize("published", [False, True])
@pytest.mark.parametrize("cost", [QuadraticCost(0.7), WeightedQuadraticCost([1, 1, 0.5, 2])])
def test_one_call_gives_what_the_general_way_gives(kind, actions, published, cost):
    score = scores()[kind]
    X = torch.randn(30, 4, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    X = X.clamp(max=1.0)
    settings = {"start": "stay", "normalised": False, "gradient": "last_proxy"} if published else {}
    response = ScalarResponse(cost, ACTIONS[actions], 0.4, **settings)
    assert isinstance(training_signal(response, score, X), AffineSignal)
    quick = response.scores_after(score, X)
    # Rows that want a gradient of their own take the general way.
    general = response.scores_after(score, X.clone().requires_grad_())
    assert torch.allclose(quick, general, rtol=1e-9, atol=1e-11)
    weights = torch.linspace(-1.0, 1.0, 30, dtype=torch.float64)
    for parameter in filter(lambda p: p.requires_grad, score.parameters()):
        found, wanted = (
            torch.autograd.grad((way * weights).sum(), parameter, retain_graph=True)[0]
            for way in (quick, general)
        )
        assert torch.allclose(found, wanted, rtol=1e-7, atol=1e-9)


def test_bounds_on_the_history_take_the_general_way():
    """Somebody may be outside them: everything has to be looked at."""
    score = scores()["recurrent"]
    X = torch.zeros(3, 4, dtype=torch.float64)
    bounded = ScalarResponse(actions=ActionSet(min_value=[-1.0, -1.0, -5.0, -5.0]))
    assert training_signal(bounded, score, X) is None
