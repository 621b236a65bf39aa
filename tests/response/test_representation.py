"""Movement in a learned representation: the response to the head, gradients into the network."""

import numpy as np
import pytest
import torch

from countermove.errors import ParameterError
from countermove.people import ActionSet, MahalanobisCost, MixtureCost, QuadraticCost
from countermove.response import (
    BestResponse,
    NoResponse,
    RepresentationResponse,
    ScalarResponse,
    named_response,
)
from countermove.scores import LinearScore, RepresentationScore

BOX = ActionSet(lower=[-0.4, -0.4], upper=[0.4, 0.4], max_value=[0.9, 0.9], only_increase=[0])
INNER = {
    "best": BestResponse(),
    "best, boxed": BestResponse(actions=BOX),
    "best, mixture": BestResponse(MixtureCost([1.0, 0.5], 0.3)),
    "smooth": ScalarResponse(),
    "smooth, boxed": ScalarResponse(QuadraticCost(2.0), BOX),
    "smooth, matrix": ScalarResponse(MahalanobisCost([[1.0, 0.2], [0.2, 2.0]])),
    "published": named_response("published", temperature=0.5),
    "none": NoResponse(),
}


def score() -> RepresentationScore:
    made = RepresentationScore(3, (6, 2), generator=torch.Generator().manual_seed(3))
    with torch.no_grad():
        made.weight.mul_(2.0)
        made.bias.fill_(-0.6)
    return made


def people(n: int = 12) -> torch.Tensor:
    return torch.randn(n, 3, generator=torch.Generator().manual_seed(4), dtype=torch.float64)


@pytest.mark.parametrize("name", [name for name in INNER if name != "published"])
def test_gradients_reach_features_and_network(name):
    response, rule = RepresentationResponse(INNER[name]), score()
    X = people().requires_grad_()
    layer = rule.weights[0].detach().clone().requires_grad_()

    def scores(rows: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
        # The same score with another first layer, differentiable in that layer.
        changed = score()
        del changed.weights
        changed.weights = [weight, rule.weights[1].detach()]
        return response.scores_after(changed, rows)

    assert torch.autograd.gradcheck(scores, (X, layer), eps=1e-6, atol=1e-6, rtol=1e-5)


def test_the_published_gradient_differentiates_the_last_proxy_only():
    """No derivative of the response (factors of 0.44 to 1.26), but it reaches the network."""
    rule = score()
    RepresentationResponse(INNER["published"]).scores_after(rule, people()).sum().backward()
    assert all(weight.grad.abs().max() > 0.0 for weight in rule.weights)


@pytest.mark.parametrize("name", INNER)
def test_people_respond_to_the_head_from_where_they_are_represented(name):
    response, rule, X = RepresentationResponse(INNER[name]), score(), people()
    head = LinearScore(2)
    head.load_state_dict({"weight": rule.weight.data, "bias": rule.bias.data})
    z = rule.represent(X).detach().numpy()
    answer, wanted = response.respond(rule, X.numpy()), INNER[name].respond(head, z)
    assert np.array_equal(answer.x_new, wanted.x_new)
    assert np.array_equal(answer.cost, wanted.cost)
    decided = response.decisions_after(rule, X.numpy())
    assert np.array_equal(decided, INNER[name].decisions_after(head, z))
    assert response.name == INNER[name].name
    assert response.describe()["space"] == "representation"


def test_other_scores_have_no_representation():
    with pytest.raises(ParameterError, match="no representation"):
        RepresentationResponse().respond(LinearScore(3), people().numpy())


def test_bounds_of_each_person_follow_them():
    inner = BestResponse(actions=ActionSet(upper=np.arange(24.0).reshape(12, 2)))
    some = RepresentationResponse(inner).of_rows([3, 5])
    assert some.actions.upper.tolist() == [[6.0, 7.0], [10.0, 11.0]]
    free = RepresentationResponse()
    assert free.of_rows([0]) is free
