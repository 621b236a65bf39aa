"""Fewer features, alternatives, a margin: any method, on fewer actions or a higher target.

A method finds recourse among the allowed actions. Leaving out features narrows
them person by person, so "at most m features", "the fewest" and "an alternative"
need no method of their own, and an exact method stays exact.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import combinations
from math import comb

import numpy as np

from countermove._types import Floats, Index, Mask
from countermove.errors import ParameterError, UnknownNameError, nearest
from countermove.execution import in_turn, phase
from countermove.people import ActionSet
from countermove.people.feasible import FeatureBlock, absent
from countermove.recourse._rounding import rounded
from countermove.recourse.lasting import Margin
from countermove.recourse.problem import (
    MARGIN,
    Proposals,
    SearchMethod,
    SearchProblem,
    Settings,
    unproven,
)
from countermove.scores.base import values

OBJECTIVES = ("cheapest", "sparsest")
HALVINGS, SPENT, ROOM = 60, 1e-4, 1e-6
"""Steps of the search for the best score within a ceiling, which ends within the share ``SPENT``
of it; ``ROOM`` is left for the rounding of the advice that follows."""
MOST_SUBSETS = 150
"""Sets of features tried per size; beyond, only those of each person's steepest features."""


@dataclass(frozen=True)
class Preference:
    """Whether the fewest features come first, how many may change at most, and the margin."""

    sparsest: bool = False
    max_features: int | None = None
    beyond: float = 0.0  # how far above the target, in score, actions go where they can
    not_causal: tuple[int, ...] = ()  # columns that are left alone where that costs little more
    tolerance: float = 0.0  # how much more, as a share
    most_paid: float = float("inf")  # what nobody is advised to exceed

    @property
    def limited(self) -> bool:
        """Whether a ceiling or a number of features bounds what anybody is advised."""
        return self.most_paid < float("inf") or self.max_features is not None

    @property
    def restricted(self) -> bool:
        """Whether not every allowed action will do."""
        return self.sparsest or self.max_features is not None


def preference_of(
    objective: str, max_features: int | None, options: int, beyond: float, ceiling: float | None
) -> Preference:
    """Return what is preferred, checked."""
    if objective not in OBJECTIVES:
        raise UnknownNameError(f"no objective {objective!r}; {nearest(str(objective), OBJECTIVES)}")
    for name, value in (("max_features", max_features), ("options", options)):
        if value is not None and (int(value) != value or value < 1):
            raise ParameterError(f"{name} is a whole number of at least 1, got {value!r}")
    most = float("inf")
    if ceiling is not None:
        if not ceiling > 0.0:
            raise ParameterError(f"a ceiling on cost is a positive number or None, got {ceiling!r}")
        most = ceiling * (1.0 + 1e-9)  # room for rounding
    return Preference(objective == "sparsest", max_features, beyond, most_paid=most)


def causes_preferred(
    preference: Preference, not_causal: Sequence[int], tolerance: float, n_features: int
) -> Preference:
    """Return a preference that leaves columns alone which do not cause the outcome."""
    unknown = [j for j in not_causal if not 0 <= j < n_features]
    if unknown:
        raise ParameterError(
            f"not_causal names the columns {unknown}, expected 0 to {n_features - 1}"
        )
    if not (np.isfinite(tolerance) and tolerance >= 0.0):
        raise ParameterError(f"causal_tolerance is a share of at least 0, got {tolerance!r}")
    return replace(preference, not_causal=tuple(not_causal), tolerance=tolerance)


def search_preferred(
    problem: SearchProblem, method: SearchMethod, settings: Settings, preference: Preference
) -> Proposals:
    """Return the cheapest recourse that the preference allows, with its margin where it can."""
    if not len(problem.X):  # nobody was refused
        return unproven(problem.X.copy())
    if not preference.beyond:
        return _few(problem, method, settings, preference)
    further = replace(problem, target=problem.target + preference.beyond)
    action, _, cheapest = _few(further, method, settings, preference)
    proven = np.zeros(len(action), bool)
    rest = np.flatnonzero(absent(action) | (problem.price_if_any(action) > preference.most_paid))
    if rest.size:
        # Without room for the margin the target itself still counts, and only it is proven about.
        with phase("cheapest actions without the margin", len(rest)):
            nearer = _few(problem.rows(rest), method, settings, preference)
        action[rest], proven[rest] = nearer.action, nearer.proven_none
        cheapest[rest] = nearer.proven_cheapest
    return Proposals(action, proven, cheapest)


def prefer_causal(
    problem: SearchProblem,
    search: AdviceSearch,
    found: Proposals,
    kept: SearchProblem,
) -> Proposals:
    """Leave alone what does not cause the outcome where that costs little and keeps the rest."""
    # `kept` says what has been reached and stays reached: the target and the margins beyond it.
    preference = search.preference
    games = np.nan_to_num(found.action)[:, list(preference.not_causal)] != 0.0
    who = np.flatnonzero(games.any(axis=1))
    if not who.size:
        return found
    blocks = problem.feasible.blocks
    held = [bool(set(block.columns) & set(preference.not_causal)) for block in blocks]
    part = problem.rows(who)
    fewer = part.inside(part.feasible.frozen(np.tile(held, (len(who), 1)), blocks))
    cheapest = part.price(found.action[who])
    most = np.minimum((1.0 + preference.tolerance) * cheapest, preference.most_paid)
    most = np.maximum(most, cheapest)
    plain = search.cheapest(fewer)
    # What costs too much without a margin against a refit costs no less with one.
    near = np.flatnonzero(~absent(plain.action) & (part.price(np.nan_to_num(plain.action)) <= most))
    who, part, cheapest, most = who[near], part.rows(near), cheapest[near], most[near]
    given = Proposals(plain.action[near], plain.proven_none[near], plain.proven_cheapest[near])
    action = search.lasting(fewer.rows(near), given).action
    price = part.price(action)
    wins = kept.rows(who).reaches(action) & (price <= most)
    chosen, proven = found.action.copy(), found.proven_cheapest.copy()
    chosen[who[wins]] = action[wins]
    proven[who[wins]] &= price[wins] <= cheapest[wins] * (1.0 + 1e-6)
    return found._replace(action=chosen, proven_cheapest=proven)


def _few(
    problem: SearchProblem, method: SearchMethod, settings: Settings, preference: Preference
) -> Proposals:
    """Return the cheapest recourse of no more features than the preference allows."""
    if not preference.restricted:
        return method.search(problem, settings)
    blocks = problem.feasible.blocks
    most = (
        len(blocks)
        if preference.max_features is None
        else min(preference.max_features, len(blocks))
    )
    sizes = range(1, most + 1) if preference.sparsest else [most]
    action = np.full_like(problem.X, np.nan)
    proven, cheapest = np.zeros((2, len(problem.X)), bool)
    fewest = np.ones(len(problem.X), bool)
    for size in in_turn(sizes):
        rest = np.flatnonzero(absent(action))
        if not rest.size:
            break
        found = _of_size(problem.rows(rest), method, settings, blocks, size)
        action[rest], proven[rest] = found.action, found.proven_none
        # With the fewest features only where fewer were proven not to do.
        cheapest[rest] = found.proven_cheapest & fewest[rest]
        fewest[rest] &= found.proven_none
    return Proposals(action, proven, cheapest)


def _of_size(
    problem: SearchProblem,
    method: SearchMethod,
    settings: Settings,
    blocks: tuple[FeatureBlock, ...],
    size: int,
) -> Proposals:
    """Return each person's cheapest recourse over the sets of ``size`` features."""
    kept = _candidates(problem, blocks, size)
    subsets = list(combinations(range(kept.shape[1]), size))
    action = np.full_like(problem.X, np.nan)
    price = np.full(len(action), np.inf)
    # Beyond the features tried, nothing is proven to those who could move others too.
    complete = _free(problem, blocks).sum(axis=1) <= kept.shape[1]
    proven, cheapest = complete.copy(), complete.copy()
    for subset in in_turn(subsets):
        held = np.ones((len(action), len(blocks)), bool)
        np.put_along_axis(held, kept[:, list(subset)], False, axis=1)
        part = problem.inside(problem.feasible.frozen(held, blocks))
        found = method.search(part, settings)
        cost = problem.price_if_any(found.action)
        wins = cost < price
        action[wins], price[wins] = found.action[wins], cost[wins]
        proven &= found.proven_none
        cheapest &= found.proven_none | found.proven_cheapest
    return Proposals(action, proven, cheapest & ~absent(action))


def _candidates(problem: SearchProblem, blocks: tuple[FeatureBlock, ...], size: int) -> Index:
    """Return the features whose sets are tried: all, or those that promise each person most."""
    n, count = len(problem.X), len(blocks)
    if comb(count, size) <= MOST_SUBSETS:
        return np.tile(np.arange(count), (n, 1))
    _, gradient = problem.slopes(problem.home)
    width = np.where(gradient > 0.0, problem.feasible.high, -problem.feasible.low)
    gain = np.abs(gradient) * width
    promise = np.stack([gain[:, list(block.columns)].sum(axis=1) for block in blocks], axis=1)
    promise[~_free(problem, blocks)] = -1.0
    count = size
    while comb(count + 1, size) <= MOST_SUBSETS:
        count += 1
    found: Index = np.sort(np.argsort(-promise, axis=1, kind="stable")[:, :count], axis=1)
    return found


def _free(problem: SearchProblem, blocks: tuple[FeatureBlock, ...]) -> Mask:
    """Return which features each person can move, shape (n, blocks)."""
    moves = problem.feasible.low < problem.feasible.high
    return np.stack([moves[:, list(block.columns)].any(axis=1) for block in blocks], axis=1)


def other_options(
    problem: SearchProblem,
    search: Callable[[SearchProblem], Proposals],
    first: Proposals,
    options: int,
) -> list[Proposals]:
    """Return alternatives, each without the most expensive feature of every one before."""
    blocks = problem.feasible.blocks
    held = np.zeros((len(problem.X), len(blocks)), bool)
    found, alternatives = first, []
    for _ in in_turn(range(options - 1)):
        alone = _cost_alone(problem, blocks, np.nan_to_num(found.action))
        held[np.arange(len(held)), alone.argmax(axis=1)] |= alone.max(axis=1) > 0.0
        found = search(problem.inside(problem.feasible.frozen(held, blocks)))
        # Who has no first action has no other one: fewer actions prove nothing new.
        lost = absent(first.action)
        found = unproven(np.where(lost[:, None], np.nan, found.action))
        found = found._replace(proven_none=lost & first.proven_none)
        alternatives.append(found)
    return alternatives


def _cost_alone(problem: SearchProblem, blocks: tuple[FeatureBlock, ...], action: Floats) -> Floats:
    """Return what the action's part in each block would cost by itself, shape (n, blocks)."""
    price = np.zeros((len(action), len(blocks)))
    for k, block in enumerate(blocks):
        alone = np.zeros_like(action)
        columns = list(block.columns)
        alone[:, columns] = action[:, columns]
        price[:, k] = problem.price(alone) + (alone != 0.0).any(axis=1) * 1e-12
    return price


@dataclass(frozen=True)
class AdviceSearch:
    """A method, how hard it searches, what is preferred, and the margin against a refit."""

    method: SearchMethod
    settings: Settings
    preference: Preference
    refits: Margin

    def cheapest(self, problem: SearchProblem) -> Proposals:
        """Return the cheapest actions, without a margin against a refit."""
        with phase("cheapest actions", len(problem.X)):
            found = search_preferred(problem, self.method, self.settings, self.preference)
            return self._fall_back(problem, found)

    def least_costs(self, problem: SearchProblem, found: Proposals) -> Floats:
        """Return what recourse costs at least, as far as that is proven."""
        price = problem.price_if_any(found.action)
        return np.where(found.proven_none, np.inf, np.where(found.proven_cheapest, price, 0.0))

    def reach(self, problem: SearchProblem) -> tuple[Floats, Floats]:
        """Return the best score reached within what is preferred, whatever the target."""
        action, highest = self.method.reach(problem, self.settings)
        if not self.preference.limited:
            return action, highest
        lowest = values(problem.score, problem.X)
        within = self._allows(problem, action)
        best, reached = np.where(within[:, None], action, 0.0), np.where(within, highest, lowest)
        who = np.flatnonzero(~within & (highest > lowest))
        # The dearer, the better the score: halve between what is affordable and what is not.
        for _ in in_turn(range(HALVINGS)):
            if not who.size:
                break
            middle = 0.5 * (reached[who] + highest[who])
            slack = MARGIN * (1.0 + np.abs(middle))
            part = replace(problem.rows(who), target=middle + slack)
            found = np.nan_to_num(_few(part, self.method, self.settings, self.preference).action)
            scores = part.values(found)
            met = (scores >= middle) & self._allows(part, found)
            best[who[met]], reached[who[met]] = found[met], scores[met]
            highest[who[~met]] = middle[~met]
            spent = met & (part.price(found) >= (1.0 - SPENT) * self.preference.most_paid)
            apart = highest[who] - reached[who] > SPENT * (1.0 + np.abs(reached[who]))
            who = who[apart & ~spent]
        return best, reached

    def _allows(self, problem: SearchProblem, action: Floats) -> Mask:
        """Return whose action costs no more, and changes no more, than anybody is advised."""
        most = self.preference.max_features
        allowed: Mask = problem.price(action) <= self.preference.most_paid * (1.0 - ROOM)
        return allowed if most is None else allowed & (problem.feasible.changed(action) <= most)

    def _fall_back(self, problem: SearchProblem, found: Proposals) -> Proposals:
        """Give those who are not helped the action of the best score within the limits."""
        # That score does not depend on the target, and PARE counts on it.
        lost = absent(found.action)
        lost |= problem.price_if_any(found.action) > self.preference.most_paid
        rest = np.flatnonzero(lost & ~found.proven_none & ~found.proven_cheapest)
        if not (self.preference.limited and rest.size):
            return found
        part = problem.rows(rest)
        reached, scores = self.reach(part)
        near = scores >= part.target - 2.0 * MARGIN * (1.0 + np.abs(part.target))
        action = found.action.copy()
        action[rest[near]] = reached[near]
        return found._replace(action=action)

    def lasting(self, problem: SearchProblem, cheapest: Proposals) -> Proposals:
        """Return actions that outlast a refit where that is asked for and possible."""
        if self.refits.confidence is None:
            return cheapest
        plain = replace(self.preference, beyond=0.0)
        find = partial(
            search_preferred, method=self.method, settings=self.settings, preference=plain
        )
        with phase("actions that outlast a refit", len(problem.X)):
            return self.refits.outlasting(find, problem, cheapest, self.preference.beyond)

    def causal(self, problem: SearchProblem, found: Proposals) -> Proposals:
        """Return actions that leave alone what does not cause the outcome, where that is cheap."""
        if not self.preference.not_causal:
            return found
        kept = self.refits.kept(problem, found.action, self.preference.beyond)
        with phase("actions on causes alone", len(problem.X)):
            return prefer_causal(problem, self, found, kept)

    def rounded(
        self, problem: SearchProblem, allowed: ActionSet, found: Proposals, digits: int | None
    ) -> Proposals:
        """Return actions in round amounts; as they are without a number of digits."""
        if digits is None:
            return found
        kept = self.refits.kept(problem, found.action, self.preference.beyond)
        most = self.preference.most_paid
        with phase("round amounts", len(problem.X)):
            return found._replace(action=rounded(kept, allowed, found.action, digits, most))

    def others(self, problem: SearchProblem, first: Proposals, options: int) -> list[Proposals]:
        """Return alternatives to the first actions."""
        with phase("further options", len(problem.X)):
            return other_options(problem, self._asked, first, options)

    def _asked(self, problem: SearchProblem) -> Proposals:
        """Return the cheapest actions with their margin against a refit where they can have it."""
        return self.lasting(problem, self.cheapest(problem))
