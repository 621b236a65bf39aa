"""A network that is the same every time and noisy only while it is trained."""

from __future__ import annotations

import copy

import pytest
import torch

from countermove.errors import ParameterError, UnknownNameError
from countermove.scores import MLPScore
from countermove.scores.mlp import ACTIVATIONS


def people(n: int = 200, d: int = 4) -> torch.Tensor:
    return torch.randn(n, d, generator=torch.Generator().manual_seed(1), dtype=torch.float64)


def test_a_new_network_decides_without_dropout():
    score, X = MLPScore(4), people()
    assert not score.training
    assert torch.equal(score(X), score(X))


def test_the_formula():
    score, X = MLPScore(4, hidden=(6, 5), activation="relu"), people()
    h = torch.relu(X @ score.weights[0].T + score.offsets[0])
    h = torch.relu(h @ score.weights[1].T + score.offsets[1])
    torch.testing.assert_close(score(X), h @ score.weight + score.bias)


def test_dropout_keeps_the_mean_of_the_last_layer_and_its_share_of_units():
    score = MLPScore(4, hidden=(50,), dropout=0.3)
    X = people(1).expand(20_000, 4)
    score.train()
    score.noise_from(torch.Generator().manual_seed(0))
    masks = score._masks(2_000)[0]
    assert float((masks == 0).double().mean()) == pytest.approx(0.3, abs=0.01)
    noisy = score(X).detach()
    score.eval()
    assert float(noisy.mean()) == pytest.approx(float(score(X[:1]).detach()), abs=0.01)
    assert float(noisy.std()) > 0.01


def test_noise_comes_from_the_given_generator_only():
    score, X = MLPScore(4).train(), people()
    torch.manual_seed(1)
    score.noise_from(torch.Generator().manual_seed(0))
    first = score(X)
    torch.manual_seed(2)
    score.noise_from(torch.Generator().manual_seed(0))
    assert torch.equal(score(X), first)


def test_the_start_is_decided_by_the_generator_and_never_by_torchs_own():
    torch.manual_seed(1)
    first, drawn = MLPScore(3), MLPScore(3, generator=torch.Generator().manual_seed(5))
    torch.manual_seed(2)
    assert torch.equal(MLPScore(3)(people(9, 3)), first(people(9, 3)))
    again = MLPScore(3, generator=torch.Generator().manual_seed(5))
    assert torch.equal(again(people(9, 3)), drawn(people(9, 3)))
    assert not torch.equal(first(people(9, 3)), drawn(people(9, 3)))


@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_gradients_of_every_activation(activation):
    score = MLPScore(3, hidden=(5, 4), activation=activation)
    X = people(3, 3).requires_grad_()
    assert torch.autograd.gradcheck(score, X)
    (wanted,) = torch.autograd.grad(score(X).sum(), X)
    torch.testing.assert_close(score.gradient(X.detach()), wanted, rtol=1e-12, atol=1e-14)
    value, gradient = score.value_and_gradient(X.detach())
    torch.testing.assert_close(value, score(X).detach(), rtol=1e-12, atol=1e-14)
    torch.testing.assert_close(gradient, wanted, rtol=1e-12, atol=1e-14)


def test_everything_is_in_double_precision_and_copies_are_whole():
    score = MLPScore(3)
    assert {p.dtype for p in score.parameters()} == {torch.float64}
    score.train()
    score.noise_from(torch.Generator().manual_seed(0))
    copied = copy.deepcopy(score).eval()
    assert torch.equal(copied(people(5, 3)), score.eval()(people(5, 3)))


@pytest.mark.parametrize("hidden", [(), (5, 0), (-3,), (2.5,), 7, (True,)])
def test_widths_that_are_none_are_refused(hidden):
    with pytest.raises(ParameterError, match="hidden"):
        MLPScore(3, hidden=hidden)


def test_other_settings_that_make_no_sense_are_refused():
    with pytest.raises(UnknownNameError, match="did you mean 'tanh'"):
        MLPScore(3, activation="tan")
    with pytest.raises(ParameterError, match="dropout"):
        MLPScore(3, dropout=1.0)
