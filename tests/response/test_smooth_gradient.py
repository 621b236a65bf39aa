"""The smoothed response is differentiated as stated, through the score, people and cost."""

import numpy as np
import pytest
import torch

from countermove.people import QuadraticCost
from countermove.response import ScalarResponse
from countermove.scores import LinearScore, PartlyLinearScore

starts = pytest.mark.parametrize("start", ["global", "stay"])


def graph(case, **settings):
    """Return (function, inputs): places and scores as functions of all they depend on."""
    names = [
        n for n in ("scale", "weights", "matrix", "direction", "gamma") if hasattr(case.cost, n)
    ]
    given = [getattr(case.cost, name).detach().clone() for name in names]

    def function(w, b, X, *values):
        values = [0.5 * (v + v.T) if v.dim() == 2 else v for v in values]
        cost = type(case.cost)(**dict(zip(names, values, strict=True)))
        score = LinearScore(len(case.w))
        del score.weight, score.bias
        score.weight, score.bias = w, b
        response = ScalarResponse(cost, case.actions, 0.4, **settings)
        return response.respond(score, X).x_new, response.scores_after(score, X)

    inputs = [case.score.weight.detach().clone(), case.score.bias.detach().clone()]
    inputs += [torch.from_numpy(case.X * 0.7), *given]
    return function, tuple(tensor.requires_grad_() for tensor in inputs)


@starts
@pytest.mark.parametrize("normalised", [True, False])
def test_the_fixed_point_gradient_is_the_derivative(make_case, cost_name, boxed, start, normalised):
    case = make_case(cost_name, 6, boxed, n=6, d=4)
    function, inputs = graph(case, start=start, normalised=normalised)
    assert torch.autograd.gradcheck(function, inputs, atol=2e-5, rtol=1e-3)


@starts
@pytest.mark.parametrize("gradient", ["fixed_point", "last_proxy"])
@pytest.mark.parametrize("normalised", [True, False])
@pytest.mark.parametrize("name", ["quadratic", "weighted"])
def test_the_one_call_training_signal_equals_the_general_one(
    make_case, name, boxed, start, gradient, normalised
):
    case = make_case(name, 8, boxed, n=80)
    response = ScalarResponse(case.cost, case.actions, 0.4, start, normalised, gradient)
    found = []
    for wants_features in (False, True):
        case.score.zero_grad()
        X = torch.from_numpy(case.X.copy()).requires_grad_(wants_features)
        signal = response.scores_after(case.score, X)
        (signal * torch.linspace(-1.0, 2.0, 80).double()).sum().backward()
        found.append(
            (signal.detach(), case.score.weight.grad.clone(), case.score.bias.grad.clone())
        )
    for fast, general in zip(*found, strict=True):
        np.testing.assert_allclose(fast.numpy(), general.numpy(), rtol=1e-9, atol=1e-11)


def test_signal_places_and_decisions_agree(make_case, cost_name, boxed):
    case = make_case(cost_name, 9, boxed, n=200)
    response = ScalarResponse(case.cost, case.actions)
    places = response.respond(case.score, case.X).x_new @ case.w + case.b
    signal = response.scores_after(case.score, torch.from_numpy(case.X)).detach().numpy()
    np.testing.assert_allclose(signal, places, atol=1e-10)
    sure = np.abs(places) > 1e-9
    decided = response.decisions_after(case.score, case.X)
    np.testing.assert_array_equal(decided[sure], (places >= 0.0)[sure])


def test_unpolished_responses_train(make_case):
    case = make_case("quadratic", 11, True, n=40)
    response = ScalarResponse(
        case.cost, case.actions, 0.4, "stay", False, "last_proxy", polish=False
    )
    response.scores_after(case.score, torch.from_numpy(case.X)).sum().backward()
    assert torch.isfinite(case.score.weight.grad).all()


def test_network_scores_keep_their_gradients():
    score = PartlyLinearScore(4, [0, 1], hidden=(5,), generator=torch.Generator().manual_seed(0))
    X = torch.randn(6, 4, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    parameters = [p.detach().clone().requires_grad_() for p in score.parameters()]
    names = [name for name, _ in score.named_parameters()]
    for gradient in ("fixed_point",):
        response = ScalarResponse(QuadraticCost(0.7), None, 0.5, gradient=gradient)

        def signal(X, *values, response=response):
            values = dict(zip(names, values, strict=True))

            class Bound(PartlyLinearScore):
                def forward(self, X):
                    return torch.func.functional_call(score, values, (X,))

                def slope(self):
                    return (
                        values["weight"]
                        .new_zeros(4)
                        .index_put((torch.tensor([0, 1]),), values["weight"])
                    )

            return response.scores_after(Bound(4, [0, 1], hidden=(5,)), X)

        assert torch.autograd.gradcheck(
            signal, (X.clone().requires_grad_(), *parameters), atol=1e-5
        )
