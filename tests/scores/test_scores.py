"""A rule is a score: what folding a threshold into it must keep true."""

import math

import pytest
import torch

from countermove.errors import ParameterError
from countermove.scores import (
    LinearScore,
    MLPScore,
    PartlyLinearScore,
    RecurrentScore,
    RepresentationScore,
)


def people(n: int = 50, d: int = 4) -> torch.Tensor:
    return torch.randn(n, d, generator=torch.Generator().manual_seed(1), dtype=torch.float64)


@pytest.fixture(params=["linear", "partly_linear", "mlp", "recurrent", "representation"])
def score(request):
    draws = torch.Generator().manual_seed(0)
    return {
        "linear": lambda: LinearScore(4, draws),
        "partly_linear": lambda: PartlyLinearScore(4, [0, 2], hidden=(8,), generator=draws),
        "mlp": lambda: MLPScore(4, hidden=(8, 8), generator=draws),
        "recurrent": lambda: RecurrentScore([[1, 3], [0, 2]], generator=draws),
        "representation": lambda: RepresentationScore(4, (8, 3), generator=draws),
    }[request.param]()


@pytest.mark.parametrize("threshold", [0.1, 0.5, 0.8])
def test_threshold_is_folded_into_the_intercept(score, threshold):
    X = people()
    wanted = torch.sigmoid(score(X)) >= threshold
    assert torch.equal(score.at_threshold(threshold)(X) >= 0, wanted)


def test_folding_leaves_the_original_alone(score):
    before = score(people())
    score.at_threshold(0.9)
    assert torch.equal(score(people()), before)


@pytest.mark.parametrize("threshold", [0.0, 1.0, -0.2, math.nan])
def test_threshold_outside_the_unit_interval_is_refused(score, threshold):
    with pytest.raises(ParameterError, match="between 0 and 1"):
        score.at_threshold(threshold)


def test_slope_is_the_gradient_over_movable_features(score):
    X = people().requires_grad_()
    (gradient,) = torch.autograd.grad(score(X).sum(), X)
    if score.kind in ("mlp", "representation"):
        # No direction serves everybody, so there is no slope to give.
        assert score.slope() is None
        assert not torch.allclose(gradient[0], gradient[1])
        return
    movable = [j for j in range(4) if j not in score.fixed]
    expected = gradient[:, movable]
    assert torch.allclose(score.slope()[movable].expand_as(expected), expected)


def test_the_gradient_is_autograds_with_training_noise_off(score):
    X = people().requires_grad_()
    (wanted,) = torch.autograd.grad(score(X).sum(), X)
    score.train()
    with torch.no_grad():
        found = score.gradient(X.detach())
    assert torch.allclose(found, wanted, rtol=1e-12, atol=1e-14)
    assert not found.requires_grad
    assert score.training


def test_fixed_features_have_no_slope():
    score = PartlyLinearScore(4, movable=[0, 2], generator=torch.Generator().manual_seed(0))
    assert torch.equal(score.slope()[[1, 3]], torch.zeros(2, dtype=torch.float64))


def test_partly_linear_needs_something_fixed():
    with pytest.raises(ParameterError, match="LinearScore"):
        PartlyLinearScore(2, movable=[0, 1])


def test_start_depends_on_the_generator_only():
    first = LinearScore(3, torch.Generator().manual_seed(5))
    again = LinearScore(3, torch.Generator().manual_seed(5))
    assert torch.equal(first.weight, again.weight)
    assert first.weight.abs().max() <= 1 / math.sqrt(3)
