"""One recourse search: the model's score and actions, the people, the score to reach, the methods.

Every method reads a `SearchProblem` and proposes actions; what a proposal is worth is
decided here, on the true model, and nowhere else.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from importlib import import_module
from typing import Any, NamedTuple, Self

import numpy as np
import torch
from torch import Tensor

from countermove._types import Floats, Index, Mask
from countermove.errors import DataError, ParameterError, UnknownNameError, nearest, shown
from countermove.execution import phase
from countermove.people import ActionSet, Cost
from countermove.people.feasible import (
    LARGEST_MOVE,
    FeasibleActions,
    absent,
    feasible_actions,
)
from countermove.recourse.mixed_integer import starting_actions
from countermove.response.base import checked_rows
from countermove.scores import Score, deciding
from countermove.scores.base import SLICE, probability, values
from countermove.scores.trees import TreeScore

MARGIN = 1e-9
"""Searches aim this share beyond the threshold, so that rounding cannot take it back."""


def known_actions(model: Any, actions: ActionSet | None) -> ActionSet | None:
    """Return the actions given, else those the model was made with; None if it knows none."""
    candidates = (actions, getattr(model, "actions_", None), getattr(model, "actions", None))
    return next((each for each in candidates if isinstance(each, ActionSet)), None)


def actions_of_model(model: Any, actions: ActionSet | None) -> ActionSet:
    """Return the actions given, else those the model was made with; refuse to guess them."""
    allowed = known_actions(model, actions)
    if allowed is not None:
        return allowed
    raise ParameterError(
        f"what may people change? {type(model).__name__} knows no actions; pass "
        "actions=ActionSet(...) or ActionSet.from_schema(schema, standardiser)"
    )


def checked_people(X: Any, score: Score) -> Floats:
    """Return the rows as float64 after checking their shape and that every value is finite.

    Trees know where to go with a missing number; other scores do not.
    """
    rows = checked_rows(X, score)
    known = np.isfinite(rows)
    if isinstance(score, TreeScore):
        known |= np.isnan(rows)
    broken = np.flatnonzero(~known.all(axis=1))
    if broken.size:
        raise DataError(
            f"rows {shown(broken)} hold NaN or infinity; recourse needs every feature of a person",
            rows=broken,
        )
    return rows


def affine_slope(score: Score, movable: Mask) -> Floats | None:
    """Return the slope where the score is affine in everything that can move, else None."""
    slope = score.slope()
    if slope is None:
        return None
    if movable[list(score.fixed)].any():
        return None
    weights: Floats = slope.detach().numpy().astype(np.float64)
    return weights


def probability_slope(model: Any) -> float:
    """Return the factor between a model's score and its log-odds; 1 unless it says otherwise."""
    stored = getattr(model, "probability_slope", 1.0)
    return float(getattr(model, "probability_slope_", stored))


@dataclass(frozen=True)
class ApprovalThreshold:
    r"""Who is approved: :math:`\sigma(a\,s(x)) \ge p`."""

    threshold: float
    slope: float = 1.0

    def __post_init__(self) -> None:
        number = isinstance(self.threshold, int | float | np.number)
        if not (number and 0.0 < self.threshold < 1.0):
            raise ParameterError(
                "a probability threshold is a number strictly between 0 and 1, got "
                f"{self.threshold!r}"
            )

    @property
    def aim(self) -> float:
        """The score the threshold asks for."""
        return float(np.log(self.threshold) - np.log1p(-self.threshold)) / self.slope

    @property
    def slack(self) -> float:
        """How far beyond the aim a search goes, and short of it a proof stays."""
        return MARGIN * (1.0 + abs(self.aim))

    def probability(self, scores: Floats) -> Floats:
        """Return the probabilities of scores."""
        return probability(scores, self.slope)

    def approved(self, scores: Floats) -> Mask:
        """Return who reaches the threshold, on the score's scale or (to the last digit) on p's."""
        mask: Mask = (scores >= self.aim) | (self.probability(scores) >= self.threshold)
        return mask


Consequences = Callable[[Tensor, Tensor], Tensor]
"""``consequences(X, action)`` returns the people after an action, shape (n, d)."""


@dataclass(frozen=True)
class SearchProblem:
    r"""Find allowed actions with :math:`s(x \oplus \delta) \ge target`, the cheaper the better."""

    score: Score
    X: Floats  # people, (n, d), standardised units
    feasible: FeasibleActions
    home: Floats  # the allowed action nearest to doing nothing, (n, d)
    cost: Cost
    target: float | Floats  # of all or of each; infinite when the best score itself is wanted
    slope: Floats | None = None  # gradient in the action where the score is affine in it
    consequences: Consequences | None = None  # None: an action leads to itself alone
    seed: int = 0  # of the starts and samples

    def rows(self, who: Index | Mask) -> Self:
        """Return the problem of some of the people."""
        target = self.target[who] if isinstance(self.target, np.ndarray) else self.target
        part = replace(self, X=self.X[who], feasible=self.feasible.rows(who), home=self.home[who])
        return replace(part, target=target)

    def repeated(self, times: int) -> Self:
        """Return the problem with every person ``times`` over, each in a row."""
        return self.rows(np.repeat(np.arange(len(self.X)), times))

    def inside(self, feasible: FeasibleActions) -> SearchProblem:
        """Return the problem of the same people with fewer allowed actions."""
        return replace(self, feasible=feasible, home=starting_actions(feasible))

    def place(self, action: Floats) -> Floats:
        """Return the people after an action and its consequences."""
        if self.consequences is None:
            return self.X + action
        with torch.no_grad():
            after = self.consequences(torch.tensor(self.X), torch.tensor(action))
        return np.asarray(after.numpy(), np.float64)

    def values(self, action: Floats) -> Floats:
        """Return the score after the action, shape (n,)."""
        return values(self.score, self.place(action))

    def values_of_each(self, actions: Floats) -> Floats:
        """Return the score after each of k actions per person, (n, k) for (n, k, d)."""
        n, k, d = actions.shape
        return self.repeated(k).values(actions.reshape(n * k, d)).reshape(n, k)

    def allowed_values(self, actions: Floats) -> Floats:
        """Return the score after each of k actions, (n, k); -inf where A δ + b ≥ 0 fails."""
        n, k, d = actions.shape
        meets = self.feasible.repeated(k).meets(actions.reshape(n * k, d)).reshape(n, k)
        return np.where(meets, self.values_of_each(actions), -np.inf)

    def slopes(self, action: Floats) -> tuple[Floats, Floats]:
        """Return score and gradient in the action, shapes (n,) and (n, d)."""
        if self.slope is not None:
            return self.values(action), np.broadcast_to(self.slope, action.shape)
        found, gradient = np.empty(len(action)), np.empty_like(action)
        with deciding(self.score):
            for start in range(0, len(action), SLICE):
                part = slice(start, start + SLICE)
                scores, slope = self._slopes_of(self.X[part], action[part])
                found[part], gradient[part] = scores.numpy(), slope.numpy()
        return found, gradient

    def _slopes_of(self, X: Floats, action: Floats) -> tuple[Tensor, Tensor]:
        if self.consequences is None:
            return self.score.value_and_gradient(torch.from_numpy(X + action))
        delta = torch.from_numpy(np.array(action)).requires_grad_()
        scores = self.score(self.consequences(torch.from_numpy(np.array(X)), delta))
        (slope,) = torch.autograd.grad(scores.sum(), delta)
        return scores.detach(), slope

    def price(self, action: Floats) -> Floats:
        """Return what the action costs."""
        known = np.where(np.isnan(self.X), 0.0, self.X)  # What is missing does not move.
        return self.cost.price(known, known + action)

    def price_if_any(self, action: Floats) -> Floats:
        """Return what the action costs, infinitely much where there is none."""
        return np.where(absent(action), np.inf, self.price(np.nan_to_num(action)))

    def reaches(self, action: Floats, scores: Floats | None = None) -> Mask:
        """Return whose action reaches the target within A δ + b ≥ 0."""
        scores = self.values(action) if scores is None else scores
        mask: Mask = (scores >= self.target) & self.feasible.meets(action)
        return mask


def search_problem(
    score: Score,
    X: Floats,
    actions: ActionSet,
    cost: Cost,
    target: float,
    *,
    consequences: Consequences | None = None,
    effect: Floats | None = None,
    seed: int = 0,
) -> SearchProblem:
    """Return the search problem of these people."""
    movable = actions.movable_among(X.shape[1])
    reached = movable if effect is None else (np.abs(effect[:, movable]).sum(axis=1) > 0.0)
    slope = affine_slope(score, reached)
    if consequences is not None:
        slope = None if slope is None or effect is None else effect.T @ slope
    largest: Floats | float = LARGEST_MOVE
    if slope is not None and np.isfinite(target):
        # An affine score is reached by one unbounded feature alone: let it go far enough.
        need = np.maximum(target - values(score, X), 0.0)[:, None]
        far = np.where(slope != 0.0, 1.01 * need / np.where(slope != 0.0, np.abs(slope), 1.0), 0.0)
        largest = np.clip(far, LARGEST_MOVE, 1e6)
    feasible = feasible_actions(actions, X, largest)
    return SearchProblem(
        score, X, feasible, starting_actions(feasible), cost, target, slope, consequences, seed
    )


METHODS = {
    "auto": "_auto",
    "linear_program": "_linear",
    "gradient": "_gradient",
    "integer_program": "affine",
    "causal": "causal",
    "exhaustive": "_exhaustive",
}
"""The module of each method, by the name users give."""
HALVINGS = 30
"""Of the line from an action that reaches the target back to doing nothing."""


@dataclass(frozen=True)
class Settings:
    """How hard the methods search.

    Parameters
    ----------
    starts, steps
        Starts per person and Adam steps per start (``gradient``).
    grid
        Values per continuous feature (``exhaustive``).
    nodes
        Nodes of the search per person on a sum of trees; beyond, the best action known is
        returned without proof.
    calls
        Rows a black box is asked for per person, all in all.
    """

    starts: int = 4
    steps: int = 200
    grid: int = 41
    nodes: int = 20_000
    calls: int = 1_000

    def __post_init__(self) -> None:
        least_of = {"starts": 1, "steps": 1, "grid": 2, "nodes": 1, "calls": 1}
        for name, least in least_of.items():
            if getattr(self, name) < least:
                raise ParameterError(f"{name} is at least {least}, got {getattr(self, name)!r}")


class Proposals(NamedTuple):
    """Proposed actions (NaN where none), who provably has none, whose is provably cheapest."""

    action: Floats
    proven_none: Mask
    proven_cheapest: Mask


MethodReach = Callable[[SearchProblem, Settings], tuple[Floats, Floats]]


class SearchMethod(NamedTuple):
    """How a method finds recourse, and how it finds the best score whatever the threshold."""

    search: Callable[[SearchProblem, Settings], Proposals]
    reach: MethodReach


def method_of(name: str) -> SearchMethod:
    """Return a method by name."""
    if name not in METHODS:
        raise UnknownNameError(f"no recourse method {name!r}; {nearest(str(name), METHODS)}")
    home = import_module(f"countermove.recourse.{METHODS[name]}")
    return SearchMethod(home.search, home.reach)


def unproven(action: Floats) -> Proposals:
    """Return a proposal without any proof."""
    return Proposals(action, np.zeros(len(action), bool), np.zeros(len(action), bool))


def fall_back(
    problem: SearchProblem, action: Floats, reach: MethodReach, settings: Settings
) -> Floats:
    """Fill in, where nothing was found, the action of the best score the method reaches."""
    # That score does not depend on the target: whoever PARE counted as having recourse is
    # given that very action here.
    rest = np.flatnonzero(absent(action))
    if not rest.size:
        return action
    part = problem.rows(rest)
    with phase("highest reachable scores", len(rest)):
        reached, scores = reach(part, settings)
    # The aim lies a margin beyond the threshold; within that margin the caller decides.
    near = scores >= part.target - 2.0 * MARGIN * (1.0 + np.abs(part.target))
    filled = action.copy()
    filled[rest[near]] = reached[near]
    return filled


def cheaper_of(problem: SearchProblem, first: Floats, second: Floats) -> Floats:
    """Return the cheaper of two actions per person; NaN where there is neither."""
    wins = problem.price_if_any(second) < problem.price_if_any(first)
    best: Floats = np.where(wins[:, None], second, first)
    return best


def shortened(problem: SearchProblem, action: Floats) -> Floats:
    """Return what is left of each action where less of it, or of one feature, still will do."""
    who = np.flatnonzero(~absent(action))
    part, there = problem.rows(who), action[who]
    near, far, best = np.zeros(len(who)), np.ones(len(who)), there
    for _ in range(HALVINGS):
        share = 0.5 * (near + far)
        trial = part.home + share[:, None] * (there - part.home)
        if part.feasible.discrete:
            trial = part.feasible.snap(trial)
        good = part.reaches(trial)
        best = np.where(good[:, None], trial, best)
        far, near = np.where(good, share, far), np.where(good, near, share)
    for block in part.feasible.blocks:
        columns = list(block.columns)
        trial = best.copy()
        trial[:, columns] = part.home[:, columns]
        wins = (part.price(trial) < part.price(best)) & part.reaches(trial)
        best = np.where(wins[:, None], trial, best)
    result = action.copy()
    result[who] = best
    return result
