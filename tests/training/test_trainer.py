"""The loop minimises, stops, keeps the best epoch and repeats itself exactly."""

from __future__ import annotations

import dataclasses

import pytest
import torch

from countermove.errors import (
    NotConvergedError,
    NotEnoughRowsError,
    ParameterError,
    UnknownNameError,
)
from countermove.randomness import torch_generator
from countermove.scores import LinearScore, MLPScore
from countermove.training import Loss, Trainer, TrainingRows, Verdict

from .conftest import BlindRisk


def start(seed: int = 0) -> LinearScore:
    return LinearScore(3, torch_generator(seed, "start"))


def weights(score: LinearScore) -> torch.Tensor:
    return torch.cat([score.weight.detach(), score.bias.detach()[None]])


@pytest.mark.parametrize("optimiser", ["adam", "lbfgs"])
@pytest.mark.parametrize("loss", ["hinge", "logistic"])
def test_training_lowers_the_loss_and_learns_the_clouds(sample, optimiser, loss):
    score, objective = start(), BlindRisk(Loss(loss))
    history = Trainer(optimiser, max_epochs=15).fit(score, objective, sample)
    assert history.best.train_loss < history.records[0].train_loss
    assert history.best.validation_accuracy >= 0.75


def test_lbfgs_reaches_the_minimum_of_the_logistic_loss(sample):
    everything = TrainingRows(sample.X, sample.y, sample.X, sample.y)
    score = start()
    trainer = Trainer("lbfgs", max_epochs=20, patience=20)
    trainer.fit(score, objective := BlindRisk(Loss("logistic")), everything)
    objective.loss(score, sample.X, sample.y).backward()
    assert score.weight.grad.abs().max() < 1e-2


def test_the_score_is_left_at_its_best_validation_epoch(sample, risk):
    score = start()
    history = Trainer(learning_rate=1.0, max_epochs=12, patience=12).fit(score, risk, sample)
    accuracy, loss = risk.judge(score, sample.X_validation, sample.y_validation)
    assert (accuracy, loss) == (history.best.validation_accuracy, history.best.validation_loss)
    assert not any(record.better_than(history.best) for record in history.records)


class PrefersRefusing(BlindRisk):
    """An objective that chooses epochs by how few people are approved."""

    def judge(self, score, X, y):
        accuracy, loss = super().judge(score, X, y)
        return Verdict(accuracy, loss, -float((score(X) >= 0).sum()))


def test_an_objective_may_choose_epochs_by_a_merit_of_its_own(sample):
    score = start()
    history = Trainer(learning_rate=1.0, max_epochs=12).fit(score, PrefersRefusing(), sample)
    merits = [record.validation_merit for record in history.records]
    assert history.best.validation_merit == max(merits)
    assert len(set(merits)) > 1
    assert history.to_frame()["validation_merit"].tolist() == merits


class SeesNoise(BlindRisk):
    """An objective that notes whether the score's noise is on."""

    def loss(self, score, X, y):
        seen = "steps" if torch.is_grad_enabled() else "judgements"
        self.seen.setdefault(seen, set()).add(score.training)
        return super().loss(score, X, y)

    def judge(self, score, X, y):
        self.seen.setdefault("judgements", set()).add(score.training)
        return super().judge(score, X, y)


@pytest.mark.parametrize(("optimiser", "noisy"), [("adam", True), ("lbfgs", False)])
def test_noise_is_on_while_adam_steps_and_off_otherwise(sample, optimiser, noisy):
    score, objective = MLPScore(3, (4,)), SeesNoise()
    objective.seen = {}
    Trainer(optimiser, max_epochs=2).fit(score, objective, sample)
    assert objective.seen == {"steps": {noisy}, "judgements": {False}}
    assert not score.training


def test_epoch_zero_is_the_start_itself(sample, risk):
    score = start()
    before = weights(score)
    history = Trainer(max_epochs=0).fit(score, risk, sample)
    assert [record.epoch for record in history.records] == [0]
    assert torch.equal(weights(score), before)


def test_patience_stops_training(sample, risk):
    trainer = Trainer(learning_rate=0.5, max_epochs=200, patience=3)
    history = trainer.fit(start(), risk, sample)
    assert history.stopped_early
    assert len(history) - 1 - history.best_epoch == 3


def test_every_person_is_met_once_per_epoch_in_a_new_order(sample, risk):
    Trainer(batch_size=40, max_epochs=2, patience=5).fit(start(), risk, sample)
    first, second = torch.cat(risk.batches[:4]), torch.cat(risk.batches[4:])
    assert [len(batch) for batch in risk.batches[:4]] == [40, 40, 40, 30]
    assert torch.equal(first.sort().values, sample.X[:, -1].sort().values)
    assert torch.equal(first.sort().values, second.sort().values)
    assert not torch.equal(first, second)


@pytest.mark.parametrize("optimiser", ["adam", "lbfgs"])
def test_same_seed_same_bits(sample, optimiser):
    scores = [start(), start()]
    for score in scores:
        Trainer(optimiser, max_epochs=5).fit(score, BlindRisk(), sample)
    assert torch.equal(weights(scores[0]), weights(scores[1]))


def test_another_seed_shuffles_otherwise(sample):
    scores = [start(), start()]
    for seed, score in enumerate(scores):
        Trainer(max_epochs=3, seed=seed).fit(score, BlindRisk(), sample)
    assert not torch.equal(weights(scores[0]), weights(scores[1]))


def test_the_global_generator_is_neither_read_nor_moved(sample, risk):
    state = torch.get_rng_state()
    Trainer(max_epochs=2).fit(start(), risk, sample)
    assert torch.equal(torch.get_rng_state(), state)


def test_parameters_of_the_objective_are_learned_too(sample):
    class Shifted(BlindRisk):
        offset = torch.nn.Parameter(torch.zeros((), dtype=torch.float64))

        def loss(self, score, X, y):
            return self.loss_function(score(X) + self.offset, y)

        def parameters(self):
            return [self.offset]

    objective = Shifted()
    Trainer(max_epochs=3).fit(start(), objective, sample)
    assert float(objective.offset.detach()) != 0.0


def test_a_loss_that_is_not_finite_is_reported(sample, risk):
    broken = dataclasses.replace(sample, X=sample.X * float("inf"))
    with pytest.raises(NotConvergedError, match="lower the learning rate"):
        Trainer(max_epochs=2).fit(start(), risk, broken)


@pytest.mark.parametrize(("job", "shown"), [("", True), ("true", False)])
def test_a_progress_bar_shows_the_epochs_where_somebody_watches(
    job, shown, sample, risk, capsys, monkeypatch
):
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("CI", job)
    Trainer(max_epochs=3, patience=3).fit(start(), risk, sample, progress=True)
    assert ("3/3" in capsys.readouterr().err) is shown


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"learning_rate": 0.0}, "learning rate"),
        ({"learning_rate": float("nan")}, "learning rate"),
        ({"batch_size": 0}, "batch_size"),
        ({"batch_size": 2.5}, "batch_size"),
        ({"max_epochs": -1}, "max_epochs"),
        ({"patience": 0}, "patience"),
    ],
)
def test_settings_that_make_no_sense_are_refused(settings, message):
    with pytest.raises(ParameterError, match=message):
        Trainer(**settings)


def test_an_unknown_optimiser_is_refused_with_the_nearest():
    with pytest.raises(UnknownNameError, match="did you mean 'adam'"):
        Trainer("adm")


def test_rows_and_labels_must_fit_together(sample):
    with pytest.raises(ParameterError, match="training rows"):
        TrainingRows(sample.X, sample.y[:-1], sample.X_validation, sample.y_validation)


def test_no_rows_are_refused(sample):
    with pytest.raises(NotEnoughRowsError, match="no validation rows"):
        TrainingRows(sample.X, sample.y, sample.X[:0], sample.y[:0])
