"""The mean of the steps: closer to the minimum than any single epoch, and none is chosen."""

from __future__ import annotations

import dataclasses

import torch

from countermove.training import Loss, Trainer

from .conftest import BlindRisk
from .test_trainer import start, weights

NOISY = Trainer(learning_rate=0.3, batch_size=10, max_epochs=8, patience=1, stop_by="average")


def trained(sample, trainer, **changes):
    score = start()
    history = dataclasses.replace(trainer, **changes).fit(
        score, BlindRisk(Loss("logistic")), sample
    )
    return weights(score), history


@dataclasses.dataclass
class WatchedRisk(BlindRisk):
    """Keeps the weights that every step starts from."""

    seen: list[torch.Tensor] = dataclasses.field(default_factory=list)

    def loss(self, score, X, y):
        if torch.is_grad_enabled():
            self.seen.append(weights(score).clone())
        return super().loss(score, X, y)


def test_steps_weigh_as_the_recursion_says(sample):
    """Shares 1, 4/5, 4/6: weights 1/15, 4/15 and 10/15 of three steps."""
    whole = dataclasses.replace(NOISY, batch_size=len(sample.X), max_epochs=3)
    kept, _ = trained(sample, whole)
    watched = WatchedRisk(Loss("logistic"))
    dataclasses.replace(whole, max_epochs=4).fit(start(), watched, sample)
    first, second, third = watched.seen[1:4]
    torch.testing.assert_close(kept, (first + 4.0 * second + 10.0 * third) / 15.0)


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
