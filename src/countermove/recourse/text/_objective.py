r"""Training for recourse where people change words, not numbers.

.. math:: \min_s \frac1n \sum_i \ell\bigl(s(x_i), y_i\bigr)
          + \lambda \min_{x' \in \{x_i\} \cup \Delta_i} \ell\bigl(s(x'), 1\bigr)

One more objective of the one trainer; :math:`\Delta_i` is a short list.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Self

import torch
from torch import Tensor, nn

from countermove.errors import ParameterError
from countermove.randomness import torch_generator
from countermove.recourse.performance import best_f1
from countermove.recourse.text._replacements import Options
from countermove.scores import LinearScore, MLPScore, Score, deciding
from countermove.training import History, Loss, Trainer, TrainingRows, Verdict


@dataclass(frozen=True)
class ReplacementRisk:
    r"""Mean loss plus ``recourse_weight`` times the mean loss after the best replacement.

    The list is short, so the minimum is exact: a loss of the favourable label falls in
    the score, and the best alternative is that of the highest score (dropout off). No
    gradient passes through the choice. Epochs are judged by the best F1 over all thresholds.

    Parameters
    ----------
    alternatives
        What each sentence of the sample may become, itself included, shape (n, k, d).
    recourse_weight
        :math:`\lambda \ge 0`; 0 is plain training.
    rows
        Which sentences a batch holds; None: all, in order.
    """

    alternatives: Tensor
    recourse_weight: float = 0.25
    loss_function: Loss = field(default_factory=lambda: Loss("logistic"))
    rows: Tensor | None = None

    def __post_init__(self) -> None:
        if not (self.recourse_weight >= 0.0 and math.isfinite(self.recourse_weight)):
            raise ParameterError(
                f"recourse_weight is a finite number ≥ 0, got {self.recourse_weight!r}; "
                "0 is training without recourse"
            )

    def loss(self, score: Score, X: Tensor, y: Tensor) -> Tensor:
        """Return the objective of a batch."""
        return self._parts(score, X, y)[1]

    def judge(self, score: Score, X: Tensor, y: Tensor) -> Verdict:
        """Return accuracy, the objective, and the best F1 over thresholds."""
        scores, loss = self._parts(score, X, y)
        favourable = y > 0
        accuracy = float(((scores >= 0.0) == favourable).double().mean())
        merit = best_f1(scores.detach().numpy(), favourable.numpy())[1]
        return Verdict(accuracy, float(loss.detach()), merit)

    def for_epoch(self, epoch: int) -> Self:
        """Return the risk itself: epochs are alike."""
        return self

    def of_rows(self, rows: Tensor) -> Self:
        """Return the risk of some sentences of the sample."""
        return replace(self, rows=rows)

    def parameters(self) -> Iterable[nn.Parameter]:
        """Return nothing: only the score is learned."""
        return ()

    def settle(self) -> None:
        """Leave everything as it is: only the score is learned."""

    def best(self, score: Score) -> Tensor:
        """Return the alternative of the highest score for each sentence, shape (n, d)."""
        held = self.alternatives if self.rows is None else self.alternatives[self.rows]
        n, k, d = held.shape
        within = held.double()
        with deciding(score), torch.no_grad():
            choice = score(within.view(n * k, d)).view(n, k).argmax(dim=1)
        return within[torch.arange(n), choice]

    def _parts(self, score: Score, X: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        scores = score(X)
        loss = self.loss_function(scores, y)
        if self.recourse_weight == 0.0:
            return scores, loss
        reached = score(self.best(score))
        recourse = Loss(self.loss_function.name)(reached, torch.ones_like(reached))
        return scores, loss + self.recourse_weight * recourse


def train_text_score(
    train: Options,
    selection: Options,
    *,
    recourse_weight: float = 0.25,
    candidates: int = 10,
    hidden: tuple[int, ...] = (),
    dropout: float = 0.3,
    trainer: Trainer | None = None,
) -> tuple[Score, History]:
    """Learn a score of sentence vectors that leaves authors a word to change.

    Parameters
    ----------
    train, selection
        Sentences to learn from, and to choose the epoch by.
    recourse_weight
        λ; 0 is plain training.
    candidates
        How many replacements per sentence training considers, the first in word order.
    hidden, dropout
        Of a network on the vectors; no hidden layer is a linear score.
    trainer
        Learning rate, epochs, seed; None: 0.02, 40 epochs at most, patience 10.

    Returns
    -------
    tuple
        The score, whose sigmoid is a probability, and its training.
    """
    loop = Trainer(learning_rate=0.02, max_epochs=40, patience=10) if trainer is None else trainer
    draws = torch_generator(loop.seed, "start")
    d = train.vectors.shape[1]
    score: Score = (
        MLPScore(d, hidden, dropout=dropout, generator=draws) if hidden else LinearScore(d, draws)
    )
    parts = (train, selection)
    alternatives = torch.cat([torch.from_numpy(part.first(candidates)) for part in parts])
    X, X_selection = (torch.from_numpy(part.vectors).double() for part in parts)
    y, y_selection = (_signs(part) for part in parts)
    risk = ReplacementRisk(alternatives, recourse_weight)
    return score, loop.fit(score, risk, TrainingRows(X, y, X_selection, y_selection))


def _signs(part: Options) -> Tensor:
    return torch.from_numpy(part.texts.favourable).double() * 2.0 - 1.0
