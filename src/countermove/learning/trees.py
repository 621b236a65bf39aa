r"""Boosted trees for people who respond: how they are trained, and the simple rules beside them.

Of a monotone index, :math:`u = w\cdot x_{movable}` with the weights of logistic regression,
people reach the largest value they can afford, whatever the trees are that never fall in it:

.. math:: \min_T \sum_i \ell\bigl(y_i, T(u^*(x_i), x_{i,fixed})\bigr), \qquad
          u^*(x) = \max\{w\cdot x' : c(x, x') < 2\}

There is no loop, and the response is exact.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import torch

from countermove._types import Floats, Index, Mask
from countermove.errors import ParameterError
from countermove.learning._populations import JudgedMembers
from countermove.learning._recipe import FittedRule, TrainingRecipe
from countermove.learning.chosen_costs import FlexibleCost, UnknownCost
from countermove.learning.intercept import Kinds, best_cut, best_shift, shift_intercept
from countermove.learning.selection import choose, enough_to_compare, row_hashes
from countermove.learning.simple_rules import Rules, linear_score, logistic_regression, simple_rules
from countermove.learning.whole_steps import WholeStepResponse
from countermove.response import BestResponse, NoResponse, Response
from countermove.response.response_set import discretised
from countermove.scores import Score
from countermove.scores.adopted import boosted_ensemble
from countermove.scores.covariance import RuleCovariance
from countermove.scores.index_trees import IndexTreesScore
from countermove.scores.trees import TreeScore
from countermove.training import History, TrainingRows
from countermove.training._labels import is_weighted, mean_over
from countermove.training.history import EpochRecord

JUDGED = 4_000
"""Rows, the first by their hashes, on which thresholds are settled: to 1 % of the people."""
PARTS = 3
"""Threshold rows are scored by trees fitted to the other parts."""


@dataclass(frozen=True)
class TreeTraining:
    """How trees are boosted for people who respond: ``StrategicClassifier(score=...)``.

    They read the largest index of the movable columns that people can afford, and everything
    immutable.

    Parameters
    ----------
    n_trees, leaves, learning_rate, min_leaf
        Of scikit-learn's histogram gradient boosting: trees, leaves of each, the share of a tree
        that is added, and rows per leaf at least.
    """

    n_trees: int = 60
    leaves: int = 8
    learning_rate: float = 0.1
    min_leaf: int = 20
    kind: ClassVar[str] = "strategic_trees"

    def __post_init__(self) -> None:
        if min(self.n_trees, self.leaves - 1, self.min_leaf) < 1 or self.learning_rate <= 0.0:
            raise ParameterError(
                "boosting needs at least one tree, two leaves, one row per leaf and a positive "
                f"learning rate, got {asdict(self)}"
            )

    def describe(self) -> dict[str, Any]:
        """Return the settings."""
        return asdict(self)

    def fitted(
        self, X: Floats, y: Floats, monotone: Floats | None = None, share: Floats | None = None
    ) -> Any:
        """Return boosted trees of labels in {-1, +1}; every row counts by its share."""
        from sklearn.ensemble import HistGradientBoostingClassifier

        settings = self._settings(monotone)
        made = HistGradientBoostingClassifier(**settings, max_iter=self.n_trees)
        # Weighted rows are put into bins far more slowly.
        if is_weighted(y):
            share = np.abs(y) if share is None else share * np.abs(y)
        return made.fit(X, y > 0, share)

    def _settings(self, monotone: Floats | None) -> dict[str, Any]:
        return {
            "learning_rate": self.learning_rate,
            "max_leaf_nodes": self.leaves,
            "min_samples_leaf": self.min_leaf,
            "early_stopping": False,
            "monotonic_cst": None if monotone is None else monotone.astype(int),
            "random_state": 0,
        }


@dataclass(frozen=True)
class BoostedRule:
    """Trees with their best threshold, and how they did on rows they were not fitted to."""

    score: Score
    accuracy: float  # after response
    loss: float  # logistic, after response, before the threshold

    @classmethod
    def at_best_cut(cls, score: Score, kinds: Kinds, y: Floats) -> BoostedRule:
        """Return a score with its intercept shifted to where most people are decided rightly."""
        cut = best_cut([kinds], y)
        return cls(shift_intercept(score, cut.shift), cut.accuracy, _log_loss(kinds, y))

    def history(self, began: float) -> History:
        """Return the one record there is of boosting that ``began`` then."""
        seconds = time.perf_counter() - began
        record = EpochRecord(0, self.loss, self.loss, self.accuracy, seconds)
        return History((record,), 0, False, "boosting", None, "all trees were added")


def _log_loss(kinds: Kinds, y: Floats) -> float:
    """Return the mean logistic loss of people who are accepted from a shift on, -score."""
    return sum(
        share * mean_over(np.logaddexp(0.0, np.sign(y) * shift), y) for share, shift in kinds
    )


def people_in_whole_steps(people: JudgedMembers) -> JudgedMembers:
    """Return best responders as kinds with shares that move as exactly as before trees."""
    if len(people.members) > 1 and people.weights is None:
        raise ParameterError(
            "trees are trained for one population, and of several responses the worst is known "
            "only once the trees are: give the responses weights, or choose one"
        )
    weights = (1.0,) if people.weights is None else people.weights
    kinds = [
        (weight * share, _best_as(WholeStepResponse, kind))
        for weight, member in zip(weights, people.members, strict=True)
        for share, kind in discretised(member)
    ]
    shares = None if len(kinds) == 1 else tuple(share for share, _ in kinds)
    return JudgedMembers(tuple(kind for _, kind in kinds), shares)


def _best_as(made: type[BestResponse], kind: Response) -> Response:
    """Return the same best responders, in whole steps or relaxed; whoever stays, stays."""
    if isinstance(kind, NoResponse):
        return kind
    if type(kind) not in (BestResponse, WholeStepResponse):
        raise ParameterError(
            "trees are trained for best responders, whose reach does not depend on the trees; "
            f"people of kind {kind.name!r} respond to a slope. Use response='best' (or a "
            "population of such people), or a linear score"
        )
    other = object.__new__(made)
    other.__dict__.update(kind.__dict__)
    return other


@dataclass(frozen=True)
class TreeRecipe(TrainingRecipe):
    """How trees are fitted to a population, and kept if they beat the simple rules."""

    trees: TreeTraining = TreeTraining()

    @classmethod
    def of(cls, plain: TrainingRecipe, trees: TreeTraining) -> TreeRecipe:
        """Return the recipe of trees for the people of another one; refuse what has no meaning."""
        if plain.loss.name != "logistic":
            raise ParameterError("trees are boosted by the logistic loss: loss='logistic'")
        if plain.regulariser is not None:
            raise ParameterError("trees are trained for accuracy alone: regulariser=None")
        if plain.start is not None or plain.calibrate is not None:
            raise ParameterError("start and calibrate say nothing about trees; leave them out")
        if isinstance(plain.cost, FlexibleCost | UnknownCost):
            raise ParameterError("trees are trained at one known cost; see cost")
        people = people_in_whole_steps(plain.judged_by)
        known = {name: getattr(plain, name) for name in plain.__dataclass_fields__}
        return cls(**known | {"trained_against": people, "judged_by": people}, trees=trees)

    def fit(
        self,
        score: Score | None,
        sample: TrainingRows,
        *,
        checkpoint: Path | None = None,
        progress: bool = False,
    ) -> FittedRule:
        """Return the rule that is kept; all rows known are learned from."""
        began = time.perf_counter()
        X, y = (part.numpy() for part in sample.known())
        if not self._moves:
            blind = self._blind(X, y)
            return FittedRule(blind.score, blind.history(began), None)
        self.check_columns(X.shape[1])
        trained = self._trained(X, y)
        history = trained.history(began)
        if not (self.guards and enough_to_compare(y, self.clusters)):
            return FittedRule(trained.score, history, None)
        floor = {"blind": self._blind(X, y).score}
        choice = choose(self, {"trained": trained.score}, None, X, y, len(y), floor)
        return FittedRule(choice.scores[choice.kept], history, choice)

    def check_columns(self, n_features: int) -> None:
        """Refuse tables and costs that leave no choice to trees."""
        moving = self._movable(n_features)
        if not moving.any():
            raise ParameterError(
                "no column can move, so nobody responds and there is nothing strategic to train: "
                "fit trees as usual and adopt them (countermove.adopt), or allow a column to move"
            )
        if moving.all():
            raise ParameterError(
                "every column can move, so trees of the index have no other column to read and "
                "the rule is a threshold on the index: that is the linear rule. Train it with "
                "score=None, or list what people cannot change as immutable"
            )
        for kind in self._moves:
            shape = kind.cost.canonical(n_features)
            if shape is None or shape.weights is None:
                raise ParameterError(
                    f"trees are trained where a move costs a sum over columns; "
                    f"{type(kind.cost).__name__} is none. Use QuadraticCost, "
                    "WeightedQuadraticCost or MixtureCost"
                )

    def uses_newton(self, score: Score | None, n_features: int) -> bool:
        """Return True: there are no epochs to choose from."""
        return True

    def repeats_folds(self, score: Score | None, n_features: int) -> bool:
        """Return False: responses in whole steps are searched for."""
        return False

    def simple_rules(self, X: Floats, y: Floats, n_train: int | None = None) -> Rules:
        """Return the linear rules; directions are chosen by relaxed moves, thresholds by exact."""
        members = tuple(_best_as(BestResponse, kind) for kind in self.judged_by.members)
        eased = replace(self.judged_by, members=members)
        plain = {
            name: getattr(self, name)
            for name in TrainingRecipe.__dataclass_fields__
            if name not in ("trained_against", "judged_by")
        }
        found = simple_rules(TrainingRecipe(eased, eased, **plain), X, y, n_train)
        return {
            name: rule if name == "majority" else self.settled(rule, X, y)[0]
            for name, rule in found.items()
        }

    def trained_rules(
        self, X: Floats, y: Floats, blind: Score, given: Score | None, turned: bool = True
    ) -> Rules:
        """Return blind and strategic trees of these rows, each with its best threshold."""
        return {"blind": self._blind(X, y).score, "trained": self._trained(X, y).score}

    def covariance(self, score: Score, sample: TrainingRows) -> RuleCovariance | None:
        """Return None: how far other rows would move trees is not known."""
        return None

    def settled(self, score: Score, X: Floats, y: Floats) -> tuple[Score, float]:
        """Return the score with the best threshold after exact moves, and its accuracy."""
        who = _first(X, y, JUDGED)
        people = self.judged_by.of_rows(who)
        cut = best_shift(score, people.members, X[who], y[who], people.weights)
        return shift_intercept(score, cut.shift), cut.accuracy

    @property
    def _moves(self) -> tuple[Response, ...]:
        return tuple(kind for kind in self.judged_by.members if not isinstance(kind, NoResponse))

    def _movable(self, n_features: int) -> Mask:
        masks = [kind.actions.movable_among(n_features) for kind in self._moves]
        moving: Mask = np.any(masks, axis=0)
        return moving

    def _shares(self) -> tuple[float, ...]:
        return (1.0,) if self.judged_by.weights is None else self.judged_by.weights

    def _blind(self, X: Floats, y: Floats) -> BoostedRule:
        """Return trees of people who stay, with the best threshold for those who do not."""
        thresholds = [np.empty(len(y)) for _ in self.judged_by.members]
        judged = _first(X, y, JUDGED)
        for learn, held in _parts(X, y, judged):
            trees = _tree_score([self.trees.fitted(X[learn], y[learn])], X)
            people = self.judged_by.of_rows(held)
            for kind, found in zip(people.members, thresholds, strict=True):
                with torch.no_grad():
                    found[held] = -kind.scores_after(trees, torch.from_numpy(X[held])).numpy()
        kinds = [(s, t[judged]) for s, t in zip(self._shares(), thresholds, strict=True)]
        whole = _tree_score([self.trees.fitted(X, y)], X)
        return BoostedRule.at_best_cut(whole, kinds, y[judged])

    def _trained(self, X: Floats, y: Floats) -> BoostedRule:
        """Return trees of the largest index that people can afford and of what stays."""
        moving = self._movable(X.shape[1])
        weight = np.where(moving, logistic_regression(X, y).weight.detach().numpy(), 0.0)
        index = linear_score(np.append(weight, 0.0))
        people = self.judged_by.of_rows(range(len(y)))
        with torch.no_grad():
            reached = [kind.scores_after(index, torch.from_numpy(X)) for kind in people.members]
        rows = [np.column_stack([u.numpy(), X[:, ~moving]]) for u in reached]
        rising = np.append(1, np.zeros(int((~moving).sum())))
        said = [np.empty(len(y)) for _ in rows]
        for learn, held in _parts(X, y, np.arange(len(y))):
            trees = self._boosted(rows, y, learn, rising)
            for part, odds in zip(rows, said, strict=True):
                odds[held] = trees.decision_function(part[held])
        kinds: Kinds = [(s, -odds) for s, odds in zip(self._shares(), said, strict=True)]
        cut = best_cut([kinds], y)
        trees = boosted_ensemble([self._boosted(rows, y, np.arange(len(y)), rising)], len(rising))
        seen = min(float(u.min()) for u in reached), max(float(u.max()) for u in reached)
        columns = np.flatnonzero(moving).tolist()
        score = IndexTreesScore(X.shape[1], columns, weight[moving], trees, -cut.shift, seen)
        return BoostedRule(score, cut.accuracy, _log_loss(kinds, y))

    def _boosted(self, rows: Sequence[Floats], y: Floats, who: Index, rising: Floats) -> Any:
        """Return the trees of some people, each as all the kinds that they may be."""
        stacked = np.vstack([part[who] for part in rows])
        return self.trees.fitted(stacked, np.tile(y[who], len(rows)), rising, self._share(len(who)))

    def _share(self, n: int) -> Floats | None:
        """Return what each person counts as each kind, kinds stacked; None where there is one."""
        shares = self.judged_by.weights
        return None if shares is None else np.repeat(shares, n)


def _tree_score(models: Sequence[Any], X: Floats) -> TreeScore:
    return TreeScore(boosted_ensemble(models, X.shape[1]))


def _first(X: Floats, y: Floats, most: int) -> Index:
    """Return the positions of at most so many rows, by what they hold and not by order."""
    order = np.argsort(row_hashes(X, y, "judged"), kind="stable")
    return np.sort(order[:most])


def _parts(X: Floats, y: Floats, judged: Index) -> Iterator[tuple[Index, Index]]:
    """Yield all rows but a part of those judged, and that part; classes in equal shares."""
    hashes, place = row_hashes(X, y, "parts"), np.full(len(y), -1)
    for sign in (-1.0, 1.0):
        members = judged[sign * y[judged] > 0.0]
        place[members[np.argsort(hashes[members], kind="stable")]] = np.arange(len(members)) % PARTS
    for part in range(PARTS):
        yield np.flatnonzero(place != part), np.flatnonzero(place == part)
