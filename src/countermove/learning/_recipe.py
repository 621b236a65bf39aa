"""The recipe of strategic training: start, train, settle the intercept, choose.

Training starts from a rule whose intercept already expects the response, so that gradients only
have to turn it. Hard decisions, which gradients cannot see, then settle the intercept and
whether the turned rule is kept: the blind direction with its best intercept is a floor.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from countermove._types import Floats
from countermove.errors import ParameterError, UnknownNameError, nearest
from countermove.learning._annealing import annealed
from countermove.learning._populations import JudgedMembers
from countermove.learning.chosen_costs import (
    AnyCost,
    ChosenRisk,
    FlexibleCost,
    FlexibleRisk,
    UnknownCost,
    risk_of,
)
from countermove.learning.intercept import Penalty, best_shift, shift_intercept, shift_spread
from countermove.learning.least_regret import RegretSelection
from countermove.learning.objectives import StrategicRisk
from countermove.learning.regularisers import Regulariser, looks_at_people
from countermove.learning.selection import (
    Choice,
    choose,
    correctness,
    enough_to_compare,
    first_by_hash,
    row_hashes,
)
from countermove.learning.simple_rules import Rules, class_means, linear_score, simple_rules
from countermove.people import Cost
from countermove.randomness import torch_generator
from countermove.response import RepresentationResponse
from countermove.response.base import NoResponse
from countermove.scores import LinearScore, Score
from countermove.scores.covariance import RuleCovariance, covariance_of
from countermove.training import History, Loss, Trainer, TrainingRows
from countermove.training._descent import to_the_optimum
from countermove.training._labels import counted
from countermove.training.rows import SecondOrderObjective

if TYPE_CHECKING:
    import pandas as pd

STARTS = ("blind", "means", "random", "given")
SELECTIONS = ("guarded", "least_regret", "none")
DRAWS = 40
"""Refits drawn for the variance of the intercept: its standard error is then known to 11 %."""
MARGINAL = 0.9
"""Quantile of what movers pay from which on they count as the last to be approved."""
JUDGED_AT = 1e-4
"""Largest entry of the gradient at which a fold's rule is judged: nearer to its optimum, where a
kink of the response may be in the way, hardly anybody's decision changes."""
HELD_OUT = 0.2
"""Share of a fold's rows that stops epochs early, as the estimator sets aside by default."""


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

    trained_against: JudgedMembers  # in the loss
    judged_by: JudgedMembers  # on validation rows and for the intercept
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
    # "guarded": the better of trained and simple rules in cross-validation is kept;
    # "least_regret": the rule that loses least by not knowing people.
    selection: str | RegretSelection = "guarded"
    allow_no_recourse: bool = False
    # Decimals of the rows that decide about folds; None: all.
    decimals: int | None = None
    # Whose rows belong together, row by row: folds keep clusters whole.
    clusters: NDArray[Any] | None = None

    def __post_init__(self) -> None:
        if self.start is not None and self.start not in STARTS:
            raise UnknownNameError(
                f"no start is called {self.start!r}: {nearest(self.start, STARTS)}"
            )
        if not isinstance(self.selection, RegretSelection) and self.selection not in SELECTIONS:
            hint = nearest(str(self.selection), SELECTIONS)
            raise UnknownNameError(f"no selection is called {self.selection!r}: {hint}")

    def fit(
        self,
        score: Score | None,
        sample: TrainingRows,
        *,
        checkpoint: Path | None = None,
        progress: bool = False,
    ) -> FittedRule:
        """Return the fitted score (a copy), the strategic epochs and what was chosen."""
        blind = self.blind(score, sample)
        trained = copy.deepcopy(self.begin(score, sample, blind))
        objective = self._objective()
        history = self._trainer.fit(
            trained, objective, sample, checkpoint=checkpoint, progress=progress
        )
        if isinstance(objective, FlexibleRisk):
            return self._at(objective.cost).finished(trained, history, sample, score, blind)
        return self.finished(trained, history, sample, score, blind)

    def uses_newton(self, score: Score | None, n_features: int) -> bool:
        """Return whether the strategic rule is trained to the optimum, without epochs to choose."""
        start = LinearScore(n_features) if score is None else score
        return self._trainer.method_for(start, self._objective()) == "newton"

    def repeats_folds(self, score: Score | None, n_features: int) -> bool:
        """Return whether rules are so quickly trained that folds are drawn more than once."""
        return self.uses_newton(score, n_features)

    def _objective(self) -> ChosenRisk:
        judges = () if self.judged_by is self.trained_against else self.judged_by.members
        risk = StrategicRisk(
            self.trained_against.members,
            self.loss,
            self.regulariser,
            judged_by=judges,
            weights=self.trained_against.weights,
            softness=self.trained_against.softness,
        )
        return risk_of(risk, self.cost)

    def finished(
        self,
        trained: Score,
        history: History,
        sample: TrainingRows,
        given: Score | None,
        blind: Score | None,
    ) -> FittedRule:
        """Settle the intercept, and keep a simple rule where training does not pay."""
        cost = self.cost if isinstance(self.cost, Cost) else None
        if not self._settles:
            return FittedRule(trained, history, None, cost)
        # Early stopping is over, so the validation rows count too.
        X, y = (part.numpy() for part in sample.known())
        settled = self.settled(trained, X, y)[0]
        if not (self.guards and enough_to_compare(y, self.clusters)):
            return FittedRule(settled, history, None, cost)
        rules = {"trained": settled} | self._turned(settled, X, y)
        floor = self._of_its_kind(given, blind, X, y)
        choice = choose(self, rules, given, X, y, len(sample.y), floor)
        if self.selection != "guarded":
            regrets = RegretSelection() if isinstance(self.selection, str) else self.selection
            stated = self.judged_by.of_rows(range(len(y))).members[0]
            choice = regrets.settle(choice, stated, X, y, len(sample.y))
        return FittedRule(choice.scores[choice.kept], history, choice, cost)

    def simple_rules(self, X: Floats, y: Floats, n_train: int | None = None) -> Rules:
        """Return the simple rules, each with its best threshold on these rows."""
        return simple_rules(self, X, y, n_train)

    def trained_rules(
        self, X: Floats, y: Floats, blind: Score, given: Score | None, turned: bool = True
    ) -> Rules:
        """Return the trained rules of these rows, each with its best threshold.

        ``blind`` is logistic regression on them, the start of linear rules; another kind of score
        starts from its own blind one, which is returned too. The annealed one only if ``turned``.
        """
        recipe, rows = self._split_by_hash(given, X, y)
        # A linear score handed over has seen all rows.
        own = None if _is_linear(given) else recipe.blind(given, rows)
        start = blind if _is_linear(given) else recipe.begin(given, rows, own)
        score = copy.deepcopy(start)
        objective = recipe._objective()
        if recipe._trainer.method_for(score, objective) == "newton":
            to_the_optimum(score, cast(SecondOrderObjective, objective), rows, JUDGED_AT)
        else:
            recipe._trainer.fit(score, objective, rows)
        settled = self.settled(score, X, y)[0]
        floor = self._of_its_kind(given, own, X, y)
        also = self._turned(settled, X, y) if turned else {}
        return floor | {"trained": settled} | also

    def rounded(self, X: Floats) -> Floats:
        """Return the rows as those that decide which people are looked at see them."""
        return X if self.decimals is None else np.round(X, self.decimals) + 0.0

    def some_people(self, X: Floats, y: Floats, most: int) -> tuple[TrainingRecipe, Floats, Floats]:
        """Return the recipe for at most ``most`` of the people, and these."""
        chosen = first_by_hash(self.rounded(X), y, most)
        return self.of_rows(chosen), X[chosen], y[chosen]

    def _split_by_hash(
        self, given: Score | None, X: Floats, y: Floats
    ) -> tuple[TrainingRecipe, TrainingRows]:
        """Return rows to learn from and, for epochs, rows to stop by, with their recipe."""
        if self.uses_newton(given, X.shape[1]):
            return self, TrainingRows(*2 * (torch.from_numpy(X), torch.from_numpy(y)))
        order = np.argsort(row_hashes(X, y, "epochs"), kind="stable")
        n = len(y) - int(HELD_OUT * len(y))
        parts = (X[order[:n]], y[order[:n]], X[order[n:]], y[order[n:]])
        return self.of_rows(order), TrainingRows(*map(torch.from_numpy, parts))

    def _of_its_kind(self, given: Score | None, blind: Score | None, X: Floats, y: Floats) -> Rules:
        """Return the blind score of the same kind with its best threshold; none if linear."""
        # Logistic regression is the blind linear score.
        if blind is None or _is_linear(given):
            return {}
        return {"blind": self.settled(blind, X, y)[0]}

    def objective_per_person(
        self, rule: Score, people: JudgedMembers, X: Floats, y: Floats
    ) -> Floats:
        """Return what training aims at, person by person: right decisions, less the penalty."""
        right = correctness(rule, people, X, y)
        if self.regulariser is None or not self.charges_for_people:
            return right
        rows = torch.from_numpy(X), torch.from_numpy(y)
        penalty = _penalty_of(self.regulariser, people, rule, *rows)
        return right if penalty is None else right - _joined(penalty(0.0), people.weights)

    def _turned(self, rule: Score, X: Floats, y: Floats) -> Rules:
        """Return the annealed rule where there is one."""
        if type(rule) is not LinearScore or self._has_other_aims():
            return {}
        found = annealed(rule, self.trained_against.of_rows(range(len(y))), X, y)
        return {} if found is None else {"annealed": self.settled(found, X, y)[0]}

    @property
    def charges_for_people(self) -> bool:
        """Whether the objective is not accuracy alone but also what moves do to people."""
        return looks_at_people(self.regulariser)

    @property
    def guards(self) -> bool:
        """Whether simple rules are compared with."""
        # Not where nobody moves, where costs are learned, or where people move in a representation,
        # which a linear rule of the features does not have.
        members = self.judged_by.members
        nobody = all(isinstance(member, NoResponse) for member in members)
        inside = any(isinstance(member, RepresentationResponse) for member in members)
        fixed = not isinstance(self.cost, FlexibleCost)
        return self.selection != "none" and fixed and not (nobody or inside)

    def _at(self, cost: Cost) -> TrainingRecipe:
        """Return the recipe for people who respond at one cost."""
        return replace(self, judged_by=self.judged_by.with_cost(cost), cost=cost)

    def of_rows(self, rows: NDArray[np.intp]) -> TrainingRecipe:
        """Return the recipe whose per-person bounds follow ``rows``: training, then validation."""
        trained = self.trained_against.of_rows(rows)
        same = self.judged_by is self.trained_against
        judges = trained if same else self.judged_by.of_rows(rows)
        clusters = None if self.clusters is None else self.clusters[rows]
        return replace(self, trained_against=trained, judged_by=judges, clusters=clusters)

    def with_windows(self, X: Floats, windows: pd.DataFrame | None) -> TrainingRecipe:
        """Return the recipe for people whose histories are known: training, then validation."""
        trained = self.trained_against.with_windows(X, windows)
        same = self.judged_by is self.trained_against
        judges = trained if same else self.judged_by.with_windows(X, windows)
        return replace(self, trained_against=trained, judged_by=judges)

    def blind(self, score: Score | None, sample: TrainingRows) -> Score | None:
        """Return the score trained as if nobody moved, if training starts or is judged by it."""
        compared = self.guards and not _is_linear(score)
        if self._start_for(score) != "blind" and not compared:
            return None
        X, y = sample.X.numpy(), sample.y.numpy()
        blind = class_means(X, y) if score is None else copy.deepcopy(score)
        # Where nobody moves, measures of what moves do to people say nothing.
        plain = None if looks_at_people(self.regulariser) else self.regulariser
        self._trainer.fit(blind, StrategicRisk((NoResponse(),), self.loss, plain), sample)
        return blind

    def begin(self, score: Score | None, sample: TrainingRows, blind: Score | None) -> Score:
        """Return the score strategic training starts from."""
        start = self._start_for(score)
        if start == "given":
            if score is None:
                raise ParameterError("start='given' needs a score to start from")
            return score
        if start == "random":
            return score_or_random(score, sample.X.shape[1], self.trainer.seed)
        X, y = sample.X.numpy(), sample.y.numpy()
        means = class_means(X, y) if score is None else score
        if start == "means" or blind is None:
            return means
        first, value = self.settled(blind, X, y)
        if len(self.judged_by.members) > 1:
            # No one intercept suits several kinds of people: a direction that spreads them may do.
            spread, other = self.settled(means, X, y)
            first = spread if other > value else first
        return first

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

    def _start_for(self, score: Score | None) -> str:
        if self.start is not None:
            return self.start
        if self.trained_against.published:
            return "random"
        if [member.name for member in self.trained_against.members] == ["none"]:
            return "means" if score is None else "given"
        return "blind"

    def covariance(self, score: Score, sample: TrainingRows) -> RuleCovariance | None:
        """Return how far a fit to as many other rows would move a fitted rule; None if unknown."""
        # A learned cost moves with the rule, which the loss at fixed people does not show.
        if isinstance(self.cost, FlexibleCost | UnknownCost):
            return None
        if type(score) is not LinearScore or not self._settles:
            return covariance_of(
                score, sample.X.numpy(), sample.y.numpy(), None, round(sample.counted)
            )
        X, y = (part.numpy() for part in sample.known())
        people = self.judged_by.of_rows(range(len(y)))
        reach = _last_approved(people, score, X)
        found = covariance_of(
            score, sample.X.numpy(), sample.y.numpy(), reach, round(sample.counted)
        )
        if found is None:
            return None
        given = (X, y, people.weights, _smoothing(people, counted(y)))
        point = np.append(score.weight.detach().numpy(), score.bias.detach().numpy())
        rules = [linear_score(drawn) for drawn in found.draws(point, DRAWS)]
        mean, variance = shift_spread(score, rules, people.members, *given)
        return replace(found, cut_variance=variance, cut_bias=max(-mean, 0.0))

    def settled(self, score: Score, X: Floats, y: Floats) -> tuple[Score, float]:
        """Return the score with the best threshold after response, and its objective."""
        # The sample lists the training rows first.
        people = self.judged_by.of_rows(range(len(y)))
        smoothing = _smoothing(people, counted(y))
        penalty = None
        # For social regularisers the intercept is where most of the trade-off lies: it is then the
        # best for accuracy minus strength times penalty.
        if self.regulariser is not None and self.charges_for_people:
            rows = torch.from_numpy(X), torch.from_numpy(y)
            penalty = _penalty_of(self.regulariser, people, score, *rows)
        cut = best_shift(score, people.members, X, y, people.weights, smoothing, penalty)
        charged = 0.0 if penalty is None else _joined(penalty(cut.shift), people.weights)
        return shift_intercept(score, cut.shift), cut.accuracy - charged


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
    regulariser: Regulariser, people: JudgedMembers, score: Score, X: Tensor, y: Tensor
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


def _joined(penalties: Floats, weights: Sequence[float] | None) -> float:
    """Return the worst member's, or the weighted, penalty."""
    return float(penalties.max() if weights is None else np.dot(weights, penalties))


def _last_approved(people: JudgedMembers, score: Score, X: Floats) -> Floats:
    """Return the mean move of those who are only just worth approval to themselves."""
    moves = []
    for member in people.members:
        answer = member.respond(score, X)
        paid = answer.cost[answer.moved]
        if not paid.size:
            continue
        last = np.flatnonzero(answer.moved)[paid >= np.quantile(paid, MARGINAL)]
        moves.append((answer.x_new - X)[last].mean(axis=0))
    return np.mean(moves, axis=0) if moves else np.zeros(X.shape[1])


def _smoothing(people: JudgedMembers, n: float) -> float:
    """Return the share of all cuts over which the accuracy of one is averaged."""
    # The worst of several kinds turns on few people: judge a cut by its neighbours too, as far
    # as its rank among n people is known, about half of 1/sqrt(n).
    return 0.5 / n**0.5 if len(people.members) > 1 else 0.0


def _is_linear(score: Score | None) -> bool:
    return score is None or type(score) is LinearScore


def score_or_random(score: Score | None, n_features: int, seed: int) -> Score:
    """Return a copy of the score, or a linear one with random weights."""
    if score is not None:
        return copy.deepcopy(score)
    return LinearScore(n_features, torch_generator(seed, "start"))
