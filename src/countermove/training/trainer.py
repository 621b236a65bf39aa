"""The only training loop.

It knows a score, an objective and rows; how people respond is part of the
objective, so blind, strategic and robust training are the same loop. Shuffles
depend on seed and epoch only, so a resumed run repeats the uninterrupted one bit for bit.
"""

from __future__ import annotations

import hashlib
import json
import math
import time
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch

from countermove.errors import (
    ModelFileError,
    NotConvergedError,
    ParameterError,
    UnknownNameError,
    nearest,
)
from countermove.scores import Score
from countermove.training._averaging import Average
from countermove.training._checkpoints import Checkpoint
from countermove.training._descent import (
    MOST_POLISHES,
    MOST_STEPS,
    Descent,
    LineSearches,
    MiniBatches,
    NewtonSteps,
    of_training,
)
from countermove.training.history import EpochRecord, History, epoch_bar
from countermove.training.rows import Objective, SecondOrderObjective, TrainingRows, Verdict

OPTIMISERS = ("auto", "newton", "adam", "lbfgs")
CRITERIA = ("accuracy", "loss", "merit", "average")


@dataclass(frozen=True)
class Trainer:
    """Minimise an objective and keep the epoch that is best on validation rows.

    Parameters
    ----------
    optimiser
        ``"newton"``: steps on all rows at once, to the optimum; for scores that are linear in
        their parameters and losses with a curvature. No epoch is chosen: the optimum is kept.
        ``"adam"``: mini-batches. ``"lbfgs"``: up to 20 full-batch steps with a
        line search per epoch; learning rate and batch size are not used.
        ``"auto"``: Newton's method where it applies, else Adam. On rows in parts Adam's rule is
        then polished by L-BFGS on gradients summed over all rows, where the loss is smooth.
    learning_rate, batch_size
        Of Adam; the last, shorter batch of an epoch is used too.
    max_epochs
        Upper bound on epochs of Adam and L-BFGS; 0 only judges the start.
    patience
        Stop after so many epochs without a better one on validation (higher
        accuracy after response, or whatever merit the objective has, or the same at
        a lower loss).
    seed
        Decides every shuffle and the noise of the score (dropout; L-BFGS has none).
    stop_by
        What makes an epoch better on validation: ``"accuracy"`` (or the objective's merit;
        then the loss), or the ``"loss"`` alone, for rules whose intercept is settled
        afterwards, whose accuracy until then says little about their direction; or the
        ``"merit"`` (accuracy) alone, ties to the earlier epoch, as the SERM experiments have it.
        ``"average"`` chooses none: all epochs are run and the mean of the steps is kept
        (`Average`), for runs started from a rule that was chosen on the same validation rows.
    """

    optimiser: str = "adam"
    learning_rate: float = 0.05
    batch_size: int = 64
    max_epochs: int = 50
    patience: int = 7
    seed: int = 0
    stop_by: str = "accuracy"

    def __post_init__(self) -> None:
        if self.stop_by not in CRITERIA:
            hint = nearest(str(self.stop_by), CRITERIA)
            raise UnknownNameError(f"training cannot stop by {self.stop_by!r}: {hint}")
        if self.optimiser not in OPTIMISERS:
            hint = nearest(str(self.optimiser), OPTIMISERS)
            raise UnknownNameError(f"no optimiser is called {self.optimiser!r}: {hint}")
        if not (self.learning_rate > 0.0 and math.isfinite(self.learning_rate)):
            raise ParameterError(f"the learning rate must be positive, got {self.learning_rate!r}")
        for name, least in (("batch_size", 1), ("max_epochs", 0), ("patience", 1)):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int) or value < least:
                raise ParameterError(
                    f"{name} must be an integer of at least {least}, got {value!r}"
                )

    def fit(
        self,
        score: Score,
        objective: Objective,
        sample: TrainingRows,
        *,
        checkpoint: Path | None = None,
        progress: bool = False,
    ) -> History:
        """Train ``score`` in place and leave it at its best epoch.

        Parameters
        ----------
        score
            The start; holds the best epoch's weights afterwards.
        objective
            Loss of a batch and judgement of the validation rows.
        sample
            Rows to train on and rows to stop by.
        checkpoint
            File written after every epoch; if it exists, the run resumes from
            it. A file left by other settings, another start or other rows is refused.
        progress
            Show a progress bar.

        Raises
        ------
        NotConvergedError
            When a loss is not finite.
        ModelFileError
            When the checkpoint is damaged or belongs to another run.
        """
        run = _TrainingRun(self, score, objective, sample)
        if checkpoint is not None:
            run.fingerprint = run.digest()
            if checkpoint.exists():
                run.restore(Checkpoint.load(checkpoint), checkpoint)
        bar: AbstractContextManager[Any] = (
            epoch_bar(run.most, done=run.epoch) if progress else nullcontext()
        )
        with bar as advance:
            if not run.records:
                run.judge(train_loss=None, started=time.perf_counter())
            while run.goes_on():
                run.advance()
                # A run continued beyond its epochs goes on from Adam's state; a polish is repeated.
                if checkpoint is not None and run.polished_from is None:
                    run.checkpoint().save(checkpoint)
                if advance is not None:
                    advance(run.records[-1])
        return run.finish()

    def method_for(self, score: Score, objective: Objective) -> str:
        """Return the optimiser that is used for a score and an objective."""
        if self.optimiser not in ("auto", "newton"):
            return self.optimiser
        reason = self._refuses_newton(score, objective)
        if reason is None:
            return "newton"
        if self.optimiser == "newton":
            raise ParameterError(f"optimiser='newton' does not apply: {reason}; use 'auto'")
        return "adam"

    def _refuses_newton(self, score: Score, objective: Objective) -> str | None:
        if not isinstance(objective, SecondOrderObjective):
            return "this objective has no second derivatives"
        if self.stop_by == "average":
            return "stop_by='average' wants the mean of many steps"
        if score.linear_columns() is None:
            return f"a {score.kind} score is not linear in its parameters"
        return objective.refuses_newton(score)


class _TrainingRun:
    """State of one training run between epochs."""

    def __init__(self, trainer: Trainer, score: Score, objective: Objective, sample: TrainingRows):
        self.trainer, self.score, self.objective, self.sample = trainer, score, objective, sample
        self.parameters = [*score.parameters(), *objective.parameters()]
        self.method = trainer.method_for(score, objective)
        self.descent = self._descent()
        self.records: list[EpochRecord] = []
        self.best = 0
        self.polished_from: int | None = None  # the epoch after which Adam's rule is polished
        self.before_polish, self.stopped_early = "", False  # why Adam ended
        self.kept = [parameter.detach().clone() for parameter in self.parameters]
        self.average = Average(self.parameters) if trainer.stop_by == "average" else None
        self.fingerprint = ""

    def _descent(self) -> Descent:
        trainer, parts = self.trainer, (self.score, self.parameters, self.sample, self._settle)
        if self.method == "newton":
            assert isinstance(self.objective, SecondOrderObjective)
            return NewtonSteps(self.score, self.objective, self.sample, self.most)
        if self.method == "lbfgs":
            return LineSearches(*parts, trainer.max_epochs)
        return MiniBatches(
            *parts, trainer.learning_rate, trainer.batch_size, trainer.max_epochs, trainer.seed
        )

    @property
    def most(self) -> int:
        """The most epochs there may be; none where none are wanted."""
        asked = self.trainer.max_epochs
        return MOST_STEPS if self.method == "newton" and asked else asked

    def digest(self) -> str:
        """Digest what decides the result: settings, start, rows and the objective at the start."""
        # The limits on epochs are left out: a run may be continued beyond them.
        free = ("max_epochs", "patience")
        settings = {k: v for k, v in asdict(self.trainer).items() if k not in free}
        X, y, sample = self.sample.X, self.sample.y, self.sample
        with torch.no_grad():
            whole = of_training(self.objective, sample)
            settings["at_start"] = float(whole.loss(self.score, X, y)).hex()
        settings["rows"] = sample.facts()
        digest = hashlib.sha256(json.dumps(settings, sort_keys=True).encode())
        for tensor in (*self.parameters, X, y, sample.X_validation, sample.y_validation):
            digest.update(str(tuple(tensor.shape)).encode())
            digest.update(tensor.detach().contiguous().numpy().tobytes())
        return digest.hexdigest()

    @property
    def epoch(self) -> int:
        """Number of epochs done."""
        return max(len(self.records) - 1, 0)

    @property
    def out_of_patience(self) -> bool:
        """Whether validation has not improved for ``patience`` epochs; no optimum asks it."""
        asked = self.method != "newton" and self.polished_from is None
        return asked and self.epoch - self.best >= self.trainer.patience

    @property
    def ended(self) -> str:
        """Why training is over; empty while it is not."""
        if self.out_of_patience:
            return f"no better epoch on the validation rows for {self.trainer.patience} epochs"
        return self.descent.ended(self.epoch - (self.polished_from or 0))

    def goes_on(self) -> bool:
        """Return whether an epoch should follow; on parts, full gradients polish Adam's rule."""
        if self.ended and self._may_be_polished():
            self.before_polish, self.stopped_early = self.ended, self.out_of_patience
            self._put_back()
            self.polished_from = self.epoch
            parts = (self.score, self.parameters, self.sample, self._settle)
            self.descent = LineSearches(*parts, MOST_POLISHES)
        return not self.ended

    def _may_be_polished(self) -> bool:
        # Where Newton's method is used, or nothing was to be trained, nothing is left to do.
        trained = self.method == "adam" and self.trainer.max_epochs > 0
        fresh = self.polished_from is None and self.average is None
        if not (trained and fresh and self.sample.in_parts):
            return False
        objective = self.objective
        return isinstance(objective, SecondOrderObjective) and objective.refuses_polish() is None

    def advance(self) -> None:
        """Do one epoch and judge it."""
        started = time.perf_counter()
        self.objective = self.objective.for_epoch(self.epoch)
        self.judge(self.descent.epoch(self.objective, self.epoch), started)

    def _settle(self) -> None:
        """End a step: everything learned is where it may be, and counted if steps are averaged."""
        self.objective.settle()
        if self.average is not None:
            self.average.take()

    def judge(self, train_loss: float | None, started: float) -> None:
        """Record the epoch, or the mean of the steps so far, and keep what validation prefers."""
        with nullcontext() if self.average is None else self.average.in_place():
            self._judge(train_loss, started)

    def _judge(self, train_loss: float | None, started: float) -> None:
        sample = self.sample
        held = torch.arange(len(sample.y), len(sample.y) + len(sample.y_validation))
        with torch.no_grad():
            verdict = self.objective.of_rows(held).judge(
                self.score, sample.X_validation, sample.y_validation
            )
            accuracy, loss, merit = Verdict(*verdict)
            if train_loss is None:
                whole = of_training(self.objective, sample)
                train_loss = float(whole.loss(self.score, sample.X, sample.y))
        if not (math.isfinite(train_loss) and math.isfinite(loss)):
            raise NotConvergedError(
                f"the loss became {train_loss} (validation {loss}) in epoch {len(self.records)}; "
                f"lower the learning rate ({self.trainer.learning_rate}) or check the features"
            )
        seconds = time.perf_counter() - started
        record = EpochRecord(len(self.records), train_loss, loss, accuracy, seconds, merit)
        self.records.append(record)
        if self._at_optimum or record.better_than(self.records[self.best], self.trainer.stop_by):
            self.best = record.epoch
            for kept, parameter in zip(self.kept, self.parameters, strict=True):
                kept.copy_(parameter.detach())

    @property
    def _at_optimum(self) -> bool:
        """Whether every epoch is nearer to the one optimum, so that none is chosen."""
        polished = self.polished_from is not None and self.score.linear_columns() is not None
        return self.method == "newton" or polished

    def _put_back(self) -> None:
        with torch.no_grad():
            for kept, parameter in zip(self.kept, self.parameters, strict=True):
                parameter.copy_(kept)
                parameter.grad = None

    def finish(self) -> History:
        """Put the best weights back and return the history."""
        self._put_back()
        stopped_early = self.out_of_patience and self.epoch < self.trainer.max_epochs
        ended = self.ended
        if self.polished_from is not None:
            ended = f"{self.before_polish}; polished on full gradients: {ended}"
        optima = self.descent.optima if isinstance(self.descent, NewtonSteps) else ()
        outcome = (self.method, self.descent.converged, ended, optima)
        early = self.stopped_early or stopped_early
        return History(tuple(self.records), self.best, early, *outcome)

    def checkpoint(self) -> Checkpoint:
        """Return the whole state."""
        history = History(tuple(self.records), self.best, stopped_early=False)
        state = {
            "history": json.dumps(history.to_json()),
            "parameters": list(self.parameters),
            "kept": self.kept,
            "optimiser": self.descent.state(),
            "averaged": 0 if self.average is None else self.average.steps,
        }
        return Checkpoint(self.fingerprint, state)

    def restore(self, checkpoint: Checkpoint, path: Path) -> None:
        """Go back to a stored state of the same run."""
        if checkpoint.fingerprint != self.fingerprint:
            raise ModelFileError(
                f"{path} was left by another run (other settings, start or rows); "
                "delete it or give another file"
            )
        history = History.from_json(json.loads(checkpoint.state["history"]))
        self.records, self.best = list(history.records), history.best_epoch
        with torch.no_grad():
            for name, targets in (("parameters", self.parameters), ("kept", self.kept)):
                for target, stored in zip(targets, checkpoint.state[name], strict=True):
                    target.copy_(stored)
        self.descent.restore(checkpoint.state["optimiser"])
        if self.average is not None:
            # What was kept is the mean as it stood.
            self.average.steps = checkpoint.state["averaged"]
            self.average.values = [kept.clone() for kept in self.kept]
