"""The recipe of strategic training: start, train, settle the intercept, choose.

Training starts from a rule whose intercept already expects the response, so that gradients only
have to turn it. Hard decisions, which gradients cannot see, then settle the intercept and
whether the turned rule is kept: the blind direction with its best intercept is a floor.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from countermove.errors import ParameterError, UnknownNameError, nearest
from countermove.learning._choice import Choice, choose
from countermove.learning._intercept import Penalty, best_shift, shift_intercept
from countermove.learning._populations import Population
from countermove.learning.chosen_costs import (
    AnyCost,
    FlexibleCost,
    FlexibleRisk,
    UnknownCost,
    risk_of,
)
from countermove.learning.objectives import StrategicRisk
from countermove.learning.regularisers import Regulariser, looks_at_people
from countermove.people import Cost
from countermove.randomness import torch_generator
from countermove.response.base import NoResponse
from countermove.scores import LinearScore, Score
from countermove.training import History, Loss, Trainer, TrainingRows

STARTS = ("blind", "means", "random", "given")


@dataclass(frozen=True)
class FittedRule:
    """The rule kept, its strategic epochs, and what was chosen or learned on the way."""

    score: Score
    history: History
    choice: Choice | None  # None where there was nothing to choose
    cost: Cost | None = None  # where it was learned


@dataclass(frozen=True)
class TrainingRecipe:
    """How a score is fitted to a population."""

    trained_against: Population  # in the loss
    judged_by: Population  # on validation rows and for the intercept
    trainer: Trainer
    loss: Loss
    regulariser: Regulariser | None = None
    # "blind": train as if nobody moved, then settle the intercept (for several kinds of people, the
    # line between the class means if that is better); "means": that line; "random": as published;
    # "given": the score as handed over. None: random for published, means for none, else blind.
    start: str | None = None
    # Whether hard decisions settle the intercept after training; None: except for published.
    calibrate: bool | None = None
    # Flexible: learned with the score; unknown: its worst cost counts.
    cost: AnyCost | None = None

    def __post_init__(self) -> None:
        if self.start is not None and self.start not in STARTS:
            raise UnknownNameError(
                f"no start is called {self.start!r}: {nearest(self.start, STARTS)}"
            )

    def fit(
        self,
        score: Score | None,
        sample: TrainingRows,
        *,
        checkpoint: Path | None = None,
        progress: bool = False,
    ) -> FittedRule:
        """Return the fitted score (a copy), the strategic epochs and what was chosen."""
        start, blind = self.begin(score, sample)
        trained = copy.deepcopy(start)
        judges = () if self.judged_by is self.trained_against else self.judged_by.members
        risk = StrategicRisk(
            self.trained_against.members,
            self.loss,
            self.regulariser,
            judged_by=judges,
            weights=self.trained_against.weights,
            softness=self.trained_against.softness,
        )
        objective = risk_of(risk, self.cost)
        history = self._trainer.fit(
            trained, objective, sample, checkpoint=checkpoint, progress=progress
        )
        if isinstance(objective, FlexibleRisk):
            return self._at(objective.cost).finished(trained, None, history, sample)
        return self.finished(trained, blind, history, sample)

    def finished(
        self, trained: Score, blind: Score | None, history: History, sample: TrainingRows
    ) -> FittedRule:
        """Settle the intercept and keep the blind direction where training did not pay."""
        cost = self.cost if isinstance(self.cost, Cost) else None
        if not self._settles:
            return FittedRule(trained, history, None, cost)
        # Early stopping is over, so the validation rows count too.
        X = torch.cat([sample.X, sample.X_validation])
        y = torch.cat([sample.y, sample.y_validation])
        settled = self._settled(trained, X, y)[0]
        if blind is None or self._has_other_aims():
            return FittedRule(settled, history, None, cost)
        simple = self._settled(blind, X, y)[0]
        choice = choose(settled, simple, self.judged_by, X.numpy(), y.numpy())
        return FittedRule(settled if choice.kept == "trained" else simple, history, choice)

    def _at(self, cost: Cost) -> TrainingRecipe:
        """Return the recipe for people who respond at one cost."""
        return replace(self, judged_by=self.judged_by.with_cost(cost), cost=cost)

    def of_rows(self, rows: NDArray[np.intp]) -> TrainingRecipe:
        """Return the recipe whose per-person bounds follow ``rows``: training, then validation."""
        trained = self.trained_against.of_rows(rows)
        same = self.judged_by is self.trained_against
        judges = trained if same else self.judged_by.of_rows(rows)
        return replace(self, trained_against=trained, judged_by=judges)

    def begin(self, score: Score | None, sample: TrainingRows) -> tuple[Score, Score | None]:
        """Return the score strategic training starts from, and the blind one if it was made."""
        start = self.start or self._usual_start(score)
        if start == "given":
            if score is None:
                raise ParameterError("start='given' needs a score to start from")
            return score, None
        if start == "random":
            return score_or_random(score, sample.X.shape[1], self.trainer.seed), None
        means = class_means(sample) if score is None else score
        if start == "means":
            return means, None
        blind = copy.deepcopy(means)
        # Where nobody moves, measures of what moves do to people say nothing.
        plain = None if looks_at_people(self.regulariser) else self.regulariser
        nobody = StrategicRisk((NoResponse(),), self.loss, plain)
        self._trainer.fit(blind, nobody, sample)
        first, accuracy = self._settled(blind, sample.X, sample.y)
        if len(self.judged_by.members) > 1:
            # No one intercept suits several kinds of people: a direction that spreads them may do.
            spread, other = self._settled(means, sample.X, sample.y)
            first = spread if other > accuracy else first
        return first, blind

    @property
    def _settles(self) -> bool:
        return not self.judged_by.published if self.calibrate is None else self.calibrate

    @property
    def _trainer(self) -> Trainer:
        """The trainer; by loss where the intercept is settled later or accuracy is not all."""
        by_loss = self._settles or (self._has_other_aims() and looks_at_people(self.regulariser))
        waits = by_loss and self.trainer.stop_by == "accuracy"
        return replace(self.trainer, stop_by="loss") if waits else self.trainer

    def _has_other_aims(self) -> bool:
        return self.regulariser is not None and self.regulariser.strength != 0.0

    def _usual_start(self, score: Score | None) -> str:
        if self.trained_against.published:
            return "random"
        if [member.name for member in self.trained_against.members] == ["none"]:
            return "means" if score is None else "given"
        return "blind"

    def _settled(self, score: Score, X: Tensor, y: Tensor) -> tuple[Score, float]:
        """Return the score with the best intercept after response, and its accuracy."""
        # The sample lists the training rows first.
        people = self.judged_by.of_rows(range(len(y)))
        # The worst of several kinds turns on few people: judge a cut by its neighbours too, as far
        # as its rank among n people is known, about half of 1/sqrt(n).
        smoothing = 0.5 / len(y) ** 0.5 if len(people.members) > 1 else 0.0
        penalty = None
        # For social regularisers the intercept is where most of the trade-off lies: it is then the
        # best for accuracy minus strength times penalty.
        if self.regulariser is not None and looks_at_people(self.regulariser):
            penalty = _penalty_of(self.regulariser, people, score, X, y)
        cut = best_shift(
            score, people.members, X.numpy(), y.numpy(), people.weights, smoothing, penalty
        )
        return shift_intercept(score, cut.shift), cut.accuracy


def check_summable(recipe: TrainingRecipe, optimiser: str) -> None:
    """Refuse what cannot be learned part by part: bounds per person, risks that are no sums."""
    members = (*recipe.trained_against.members, *recipe.judged_by.members)
    if any(member.actions.n_people is not None for member in members):
        raise ParameterError(
            "bounds of shape (n, d) belong to rows held in memory; people in parts need bounds "
            "of shape (d,)"
        )
    robust = len(recipe.trained_against.members) > 1 and recipe.trained_against.weights is None
    if optimiser == "lbfgs" and (robust or isinstance(recipe.cost, FlexibleCost | UnknownCost)):
        raise ParameterError(
            "the worst of several responses and learned costs are no sums over parts, as "
            "optimiser='lbfgs' needs them; use optimiser='adam', or give the responses weights"
        )


def _penalty_of(
    regulariser: Regulariser, people: Population, score: Score, X: Tensor, y: Tensor
) -> Penalty | None:
    """Return what a shift of the intercept adds under each member; None if that is nothing."""
    if regulariser.strength == 0.0:
        return None

    def penalty(shift: float) -> NDArray[np.float64]:
        rule = shift_intercept(score, shift)
        with torch.no_grad():
            found = [float(regulariser.penalty(rule, X, y, m)) for m in people.members]
        return regulariser.strength * np.array(found)

    return penalty


def class_means(sample: TrainingRows) -> LinearScore:
    """Return the rule along the line between the class means, its scores standardised."""
    # Standard deviation one is the scale at which a hinge of width one bites. All zero where the
    # means coincide.
    X, y = sample.X, sample.y
    direction = X[y > 0].mean(dim=0) - X[y <= 0].mean(dim=0)
    spread = (X @ direction).std(correction=0)
    score = LinearScore(X.shape[1])
    if float(spread) > 0.0:
        with torch.no_grad():
            score.weight.copy_(direction / spread)
            score.bias.copy_(-(X @ score.weight).mean())
    return score


def score_or_random(score: Score | None, n_features: int, seed: int) -> Score:
    """Return a copy of the score, or a linear one with random weights."""
    if score is not None:
        return copy.deepcopy(score)
    return LinearScore(n_features, torch_generator(seed, "start"))
