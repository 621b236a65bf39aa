"""A run goes on from its checkpoint as if it had never stopped."""

from __future__ import annotations

import dataclasses

import pytest
import torch

from countermove.errors import ModelFileError
from countermove.scores import LinearScore
from countermove.training import Loss, Trainer

from .conftest import BlindRisk
from .test_trainer import start, weights


class PowerCutError(Exception):
    """The power went out."""


class BreaksDown(BlindRisk):
    """An objective that fails after so many batches."""

    survives: int = 7

    def loss(self, score, X, y):
        if torch.is_grad_enabled() and len(self.batches) >= self.survives:
            raise PowerCutError
        return super().loss(score, X, y)


def comparable(history):
    return [dataclasses.replace(record, seconds=0.0) for record in history.records]


@pytest.mark.parametrize("optimiser", ["adam", "lbfgs"])
def test_a_resumed_run_equals_an_uninterrupted_one_bit_for_bit(sample, tmp_path, optimiser):
    path = tmp_path / "run.safetensors"
    whole, resumed = start(), start()
    trainer = Trainer(optimiser, batch_size=50, max_epochs=9, patience=9)
    uninterrupted = trainer.fit(whole, BlindRisk(Loss("logistic")), sample)
    dataclasses.replace(trainer, max_epochs=4).fit(
        resumed, BlindRisk(Loss("logistic")), sample, checkpoint=path
    )
    again = start()
    history = trainer.fit(again, BlindRisk(Loss("logistic")), sample, checkpoint=path)
    assert torch.equal(weights(again), weights(whole))
    assert comparable(history) == comparable(uninterrupted)
    assert history.best_epoch == uninterrupted.best_epoch


@pytest.mark.fault
def test_a_run_that_dies_within_an_epoch_resumes_exactly(sample, tmp_path):
    path = tmp_path / "run.safetensors"
    trainer = Trainer(batch_size=50, max_epochs=6, patience=6)
    whole, resumed = start(), start()
    trainer.fit(whole, BlindRisk(), sample)
    with pytest.raises(PowerCutError):
        trainer.fit(start(), BreaksDown(), sample, checkpoint=path)
    history = trainer.fit(resumed, BlindRisk(), sample, checkpoint=path)
    assert len(history) == 7
    assert torch.equal(weights(resumed), weights(whole))


def test_a_finished_run_is_not_trained_again(sample, tmp_path, risk):
    path = tmp_path / "run.safetensors"
    trainer = Trainer(max_epochs=3, patience=3)
    trainer.fit(start(), risk, sample, checkpoint=path)
    risk.batches.clear()
    trainer.fit(start(), risk, sample, checkpoint=path)
    assert not risk.batches


@pytest.mark.parametrize("change", ["seed", "start", "rows", "objective"])
def test_a_checkpoint_of_another_run_is_refused(sample, tmp_path, risk, change):
    path = tmp_path / "run.safetensors"
    Trainer(max_epochs=2).fit(start(), risk, sample, checkpoint=path)
    trainer = Trainer(max_epochs=2, seed=1 if change == "seed" else 0)
    score = start(1) if change == "start" else start()
    rows = dataclasses.replace(sample, X=sample.X + 1e-9) if change == "rows" else sample
    objective = BlindRisk(Loss("logistic")) if change == "objective" else risk
    with pytest.raises(ModelFileError, match="another run"):
        trainer.fit(score, objective, rows, checkpoint=path)


@pytest.mark.fault
@pytest.mark.parametrize("damage", ["truncated", "text", "empty"])
def test_a_damaged_checkpoint_is_refused_with_what_to_do(sample, tmp_path, risk, damage):
    path = tmp_path / "run.safetensors"
    Trainer(max_epochs=1).fit(start(), risk, sample, checkpoint=path)
    content = {"truncated": path.read_bytes()[:-9], "text": b"not a model" * 20, "empty": b""}
    path.write_bytes(content[damage])
    with pytest.raises(ModelFileError, match="delete it"):
        Trainer(max_epochs=1).fit(start(), risk, sample, checkpoint=path)


def test_a_safetensors_file_that_is_no_checkpoint_is_refused(sample, tmp_path, risk):
    from safetensors.torch import save_file

    path = tmp_path / "other.safetensors"
    save_file({"weight": torch.ones(2)}, path)
    with pytest.raises(ModelFileError, match="format"):
        Trainer(max_epochs=1).fit(start(), risk, sample, checkpoint=path)


def test_no_file_is_written_unless_asked_for(sample, tmp_path, risk, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Trainer(max_epochs=1).fit(LinearScore(3), risk, sample)
    assert not list(tmp_path.iterdir())
