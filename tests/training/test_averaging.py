"""The mean of the steps: closer to the minimum than any single epoch, and none is chosen."""

from __future__ import annotations

import dataclasses

import pytest
import torch

from countermove.training import Loss, Trainer
from countermove.training._averaging import Average

from .conftest import BlindRisk
from .test_trainer import start, weights

NOISY = Trainer(learning_rate=0.3, batch_size=10, max_epochs=8, patience=1, stop_by="average")


def trained(sample, trainer, **changes):
    score = start()
    history = dataclasses.replace(trainer, **changes).fit(
        score, BlindRisk(Loss("logistic")), sample
    )
    return weights(score), history


def test_steps_weigh_as_the_recursion_says():
    parameter = torch.nn.Parameter(torch.tensor([9.0], dtype=torch.float64))
    average = Average([parameter])
    assert float(average.values[0]) == 9.0
    # Shares 1, 4/5, 4/6: weights 1/15, 4/15 and 10/15 of the three steps.
    for value in (1.0, 2.0, 6.0):
        with torch.no_grad():
            parameter.fill_(value)
        average.take()
    assert float(average.values[0]) == pytest.approx((1 * 1 + 4 * 2 + 10 * 6) / 15)
    with average.in_place():
        assert float(parameter.detach()) == pytest.approx(4.6)
    assert float(parameter.detach()) == 6.0


def test_all_epochs_are_run_and_the_last_record_is_of_what_is_kept(sample):
    kept, history = trained(sample, NOISY)
    assert len(history) == 9
    assert history.best_epoch == 8
    assert not history.stopped_early
    score = start()
    with torch.no_grad():
        score.weight.copy_(kept[:-1])
        score.bias.copy_(kept[-1])
    found = BlindRisk(Loss("logistic")).judge(score, sample.X_validation, sample.y_validation)
    assert found == (history.best.validation_accuracy, history.best.validation_loss)


def test_the_mean_is_closer_to_the_minimum_than_single_epochs(sample):
    exact, _ = trained(sample, Trainer("lbfgs", max_epochs=20, patience=20, stop_by="loss"), seed=0)
    for seed in range(3):
        mean, _ = trained(sample, NOISY, seed=seed)
        single, _ = trained(sample, NOISY, seed=seed, stop_by="loss", patience=8)
        assert (mean - exact).norm() < 0.5 * (single - exact).norm()


def test_a_resumed_average_equals_an_uninterrupted_one_bit_for_bit(sample, tmp_path):
    path, risk = tmp_path / "run.safetensors", BlindRisk(Loss("logistic"))
    whole, part, resumed = start(), start(), start()
    NOISY.fit(whole, risk, sample)
    dataclasses.replace(NOISY, max_epochs=3).fit(part, risk, sample, checkpoint=path)
    NOISY.fit(resumed, risk, sample, checkpoint=path)
    assert not torch.equal(weights(part), weights(whole))
    assert torch.equal(weights(resumed), weights(whole))
