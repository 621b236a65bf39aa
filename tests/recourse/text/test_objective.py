"""The recourse term of a short list is its exact minimum."""

from __future__ import annotations

import pytest
import torch
from torch.nn.functional import softplus

from countermove.errors import ParameterError
from countermove.recourse.text import Options, ReplacementRisk, train_text_score
from countermove.scores import LinearScore, MLPScore
from countermove.training import Trainer


@pytest.fixture(params=["linear", "mlp"])
def score(request):
    draws = torch.Generator().manual_seed(3)
    if request.param == "linear":
        return LinearScore(2048, draws)
    return MLPScore(2048, (8,), dropout=0.0, generator=draws)


def batch(options: Options):
    X = torch.from_numpy(options.vectors).double()
    y = torch.from_numpy(options.texts.favourable).double() * 2 - 1
    return X, y, torch.from_numpy(options.first(3))


def test_the_objective_is_the_sum_written_out(options: Options, score) -> None:
    X, y, alternatives = batch(options)
    per_option = softplus(-score(alternatives.double().flatten(0, 1))).view(len(X), -1)
    expected = softplus(-y * score(X)).mean() + 0.7 * per_option.min(dim=1).values.mean()
    risk = ReplacementRisk(alternatives, 0.7)
    assert risk.loss(score, X, y).item() == pytest.approx(expected.item(), abs=1e-12)


def test_the_gradient_is_that_of_the_minimum(options: Options, score) -> None:
    """No two alternatives tie at the best, so the minimum is differentiable there."""
    X, y, alternatives = batch(options)
    risk, small = ReplacementRisk(alternatives, 0.7), 1e-6
    loss = risk.loss(score, X, y)
    (slope,) = torch.autograd.grad(loss, score.weight)
    direction = torch.randn(slope.shape, generator=torch.Generator().manual_seed(0)).double()
    values = []
    for sign in (1, -1):
        with torch.no_grad():
            score.weight.add_(direction, alpha=sign * small)
            values.append(risk.loss(score, X, y).item())
            score.weight.add_(direction, alpha=-sign * small)
    difference = (values[0] - values[1]) / (2 * small)
    assert difference == pytest.approx((slope @ direction).item(), rel=1e-4, abs=1e-8)


def test_a_batch_sees_its_own_alternatives(options: Options, score) -> None:
    X, y, alternatives = batch(options)
    rows = torch.tensor([5, 190, 44])
    part = ReplacementRisk(alternatives[rows], 0.7).loss(score, X[rows], y[rows])
    whole = ReplacementRisk(alternatives, 0.7).of_rows(rows).loss(score, X[rows], y[rows])
    assert whole.item() == part.item()


def test_without_weight_it_is_plain_training(options: Options, score) -> None:
    X, y, alternatives = batch(options)
    plain = softplus(-y * score(X)).mean()
    assert ReplacementRisk(alternatives, 0.0).loss(score, X, y).item() == plain.item()


@pytest.mark.parametrize("weight", [-0.1, float("nan"), float("inf")])
def test_weights_are_finite_and_not_negative(weight: float) -> None:
    with pytest.raises(ParameterError, match="recourse_weight is a finite number ≥ 0"):
        ReplacementRisk(torch.zeros(1, 1, 2), weight)


def test_training_lowers_the_objective_it_is_given(halves) -> None:
    """Nothing trained without the term does better by the objective with it."""
    train, test = halves
    loop = Trainer(learning_rate=0.05, max_epochs=10, patience=10)
    X, y, alternatives = batch(train)
    risk, found = ReplacementRisk(alternatives, 2.0), {}
    for weight in (0.0, 2.0):
        score, history = train_text_score(train, test, recourse_weight=weight, trainer=loop)
        assert history.records[history.best_epoch].merit > 0.9
        found[weight] = risk.loss(score, X, y).item()
    assert found[2.0] < found[0.0]


def test_training_repeats_itself(halves) -> None:
    loop = Trainer(max_epochs=2)
    once, again = (train_text_score(*halves, hidden=(4,), trainer=loop)[0] for _ in range(2))
    assert torch.equal(once.weight, again.weight)
