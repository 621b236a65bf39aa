"""A score that can only be asked: what people may do is searched for, and nothing is proven.

First one column at a time over a ladder of steps, then a population that crosses and mutates, all
people's questions of a round in one call; every answer is the model's own.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Protocol, Self

import numpy as np

from countermove._types import Floats, Index, Mask
from countermove.execution import in_turn, phase
from countermove.people import Cost
from countermove.people.feasible import FeasibleActions, absent
from countermove.randomness import generator
from countermove.response.tree_best import TreeBest
from countermove.response.trees import TreeMoves
from countermove.scores import Score
from countermove.scores.base import values

CALLS = 1_000
"""Rows asked for per person."""
LADDER = 8
"""Steps tried per column and direction."""
POPULATION = 24
SHRINK = 12
"""Halvings that bring an action back towards doing nothing."""


class Asked(Protocol):
    """People before a score: what a search asks about."""

    @property
    def X(self) -> Floats: ...  # noqa: N802
    @property
    def feasible(self) -> FeasibleActions: ...
    @property
    def home(self) -> Floats: ...
    @property
    def seed(self) -> int: ...
    def rows(self, who: Index | Mask) -> Self:
        """Return some of the people."""
        ...

    def repeated(self, times: int) -> Self:
        """Return every person several times, each in a row."""
        ...

    def values(self, action: Floats) -> Floats:
        """Return the score after an action, (n,)."""
        ...

    def price(self, action: Floats) -> Floats:
        """Return what an action costs, (n,)."""
        ...


@dataclass(frozen=True)
class AskedPeople:
    """People who respond to a score."""

    score: Score
    X: Floats
    feasible: FeasibleActions
    home: Floats
    cost: Cost
    seed: int = 0

    def rows(self, who: Index | Mask) -> Self:
        """Return some of the people."""
        return replace(self, X=self.X[who], feasible=self.feasible.rows(who), home=self.home[who])

    def repeated(self, times: int) -> Self:
        """Return every person several times, each in a row."""
        return self.rows(np.repeat(np.arange(len(self.X)), times))

    def values(self, action: Floats) -> Floats:
        """Return the score after an action, (n,)."""
        return values(self.score, self.X + action)

    def price(self, action: Floats) -> Floats:
        """Return what an action costs, (n,)."""
        return self.cost.price(self.X, self.X + action)


def cheapest_asked(people: Asked, target: Floats, most: Floats, calls: int) -> Floats:
    """Return the cheapest action met that reaches a target for at most so much, NaN without."""
    blocks = max(len(people.feasible.blocks), 1)
    halvings = max(1, min(SHRINK, calls // (2 * blocks)))
    best, score = _search(people, target, most, calls - halvings * blocks)
    works = (score >= target) & (people.price(best) <= most) & people.feasible.meets(best)
    with phase("smaller changes", int(works.sum())):
        return _shrunk(people, np.where(works[:, None], best, np.nan), target, halvings)


def highest_asked(people: Asked, most: Floats, calls: int) -> tuple[Floats, Floats]:
    """Return the action of the highest score met for at most so much, and that score."""
    return _search(people, np.full(len(people.X), np.inf), most, calls)


def _search(people: Asked, target: Floats, most: Floats, calls: int) -> tuple[Floats, Floats]:
    """Return the best action met: at the target the cheapest, else the highest."""
    best, score = people.home.copy(), people.values(people.home)
    ways = _ladder(people.feasible, people.home)[:, : max(calls // 2, 1)]
    left = calls - 1 - ways.shape[1]
    best, score = _take(people, best, score, ways, target, most)
    draws = generator(people.seed, "black box")
    pool = np.repeat(best[:, None], POPULATION, axis=1)
    for _ in in_turn(range(left // POPULATION)):
        pool = _next_generation(people.feasible, pool, best, ways, draws)
        found = _allowed_values(people, pool)
        order = np.argsort(-_merit(people, pool, found, target, most), axis=1)
        pool = np.take_along_axis(pool, order[:, :, None], axis=1)
        found = np.take_along_axis(found, order, axis=1)
        best, score = _take(people, best, score, pool[:, :1], target, most, found[:, :1])
    return best, score


def _allowed_values(people: Asked, ways: Floats) -> Floats:
    """Return the score after each of k actions, (n, k); -inf where a row is broken."""
    n, k, d = ways.shape
    many, flat = people.repeated(k), ways.reshape(n * k, d)
    found: Floats = np.where(many.feasible.meets(flat), many.values(flat), -np.inf)
    return found.reshape(n, k)


def _ladder(feasible: FeasibleActions, home: Floats) -> Floats:
    """Return actions that change one block of each person, (n, k, d)."""
    ways = []
    share = np.linspace(0.0, 1.0, LADDER + 1)[1:] ** 2
    for block in feasible.blocks:
        columns = list(block.columns)
        if block.kind == "listed":
            part = feasible.states_of(block)
            for state in range(part.allowed.shape[1]):
                there = home.copy()
                change = part.change[:, state]
                there[:, columns] = np.where(part.allowed[:, [state]], change, home[:, columns])
                ways.append(there)
            continue
        j = columns[0]
        for end in (feasible.low, feasible.high):
            for s in share:
                there = home.copy()
                there[:, j] = s * end[:, j]
                ways.append(feasible.snap(there))
    return np.stack(ways, axis=1) if ways else home[:, None]


def _take(
    people: Asked,
    best: Floats,
    score: Floats,
    ways: Floats,
    target: Floats,
    most: Floats,
    found: Floats | None = None,
) -> tuple[Floats, Floats]:
    """Return the best of some actions and of what was known."""
    found = _allowed_values(people, ways) if found is None else found
    both = np.concatenate([best[:, None], ways], axis=1)
    known = np.concatenate([score[:, None], found], axis=1)
    first = _merit(people, both, known, target, most).argmax(axis=1)
    rows = np.arange(len(best))
    return both[rows, first], known[rows, first]


def _merit(people: Asked, ways: Floats, found: Floats, target: Floats, most: Floats) -> Floats:
    """Return what is wanted most: first the target, then a low price, below it a high score."""
    n, k, d = ways.shape
    price = people.repeated(k).price(ways.reshape(n * k, d)).reshape(n, k)
    top = np.where(np.isfinite(found), found, -1e18)
    merit = np.where(found >= target[:, None], 1e12 - price, top)
    return np.where(price <= most[:, None], merit, -1e20 - price)


def _next_generation(
    feasible: FeasibleActions, pool: Floats, best: Floats, ways: Floats, draws: np.random.Generator
) -> Floats:
    """Return children: blocks of two parents or of a ladder's step, some moved a little."""
    n, k, d = pool.shape
    rows = np.arange(n)[:, None]
    mother = pool[rows, draws.integers(max(1, k // 3), size=(n, k))]
    father = ways[rows, draws.integers(ways.shape[1], size=(n, k))]
    child = mother.copy()
    for block in feasible.blocks:
        columns = list(block.columns)
        takes = draws.random((n, k)) < 0.3
        child[:, :, columns] = np.where(
            takes[:, :, None], father[:, :, columns], child[:, :, columns]
        )
        if block.kind != "listed":
            j = columns[0]
            width = (feasible.high - feasible.low)[:, [j]]
            size = np.minimum(0.2 * np.abs(best).max(axis=1, keepdims=True), 0.03 * width)
            near = draws.random((n, k)) < 0.5
            spread = np.where(near, size, 0.2 * width) * draws.standard_normal((n, k))
            child[:, :, j] += np.where(draws.random((n, k)) < 0.4, spread, 0.0)
    back = draws.random((n, k)) < 0.3  # nearer to doing nothing
    child = np.where(back[:, :, None], child * draws.uniform(0.5, 1.0, (n, k, 1)), child)
    child[:, 0] = best
    flat = feasible.repeated(k).snap(child.reshape(n * k, d))
    return flat.reshape(n, k, d)


def _shrunk(people: Asked, action: Floats, target: Floats, halvings: int) -> Floats:
    """Bring actions back towards doing nothing, block by block, as long as they work."""
    who = np.flatnonzero(~absent(action))
    if not who.size:
        return action
    part, first, best = people.rows(who), action[who], action[who].copy()
    for block in in_turn(part.feasible.blocks):
        columns = list(block.columns)
        near, far = np.zeros(len(best)), np.ones(len(best))
        for _ in range(halvings if block.kind != "listed" else 1):
            share = 0.5 * (near + far) if block.kind != "listed" else near
            trial = best.copy()
            trial[:, columns] = share[:, None] * first[:, columns]
            trial = part.feasible.snap(trial)
            good = (part.values(trial) >= target[who]) & part.feasible.meets(trial)
            good &= part.price(trial) <= part.price(best)
            best = np.where(good[:, None], trial, best)
            far, near = np.where(good, share, far), np.where(good, near, share)
    result = action.copy()
    result[who] = best
    return result


class AskedBest(TreeBest):
    """What `BestResponse` does before a black box: the best of what was met, never a proof.

    Whoever was not seen to cross counts as refused and is not ``converged``.
    """

    nodes = CALLS
    limited = "a black box is asked for a limited number of rows per person"
    searched_at_once = True

    def _key(self, score: Any) -> Any:
        return score.function

    def _decided(self, score: Any, rows: Floats) -> tuple[Mask, Mask]:
        """Return who is favoured after the response; of nobody else that is known."""
        known = self._afforded(score, rows)
        assert known is not None
        favoured: Mask = known.score + float(score.bias) >= 0.0
        return favoured, ~favoured

    def _highest(
        self, score: Any, rows: Floats, feasible: FeasibleActions, most: Floats
    ) -> TreeMoves:
        people = self._people(score, rows, feasible, most)
        action, found = highest_asked(people, most, self.nodes)
        return self._met(people, action, found, np.full(len(rows), np.inf))

    def _cheapest(
        self, score: Any, rows: Floats, feasible: FeasibleActions, target: float, most: Floats
    ) -> TreeMoves:
        people = self._people(score, rows, feasible, most)
        if target == -np.inf:
            return self._met(people, people.home, people.values(people.home), np.zeros(len(rows)))
        # Nobody crosses at the price of the gain itself.
        below = np.where(np.isfinite(most), np.nextafter(most, 0.0), most)
        action = cheapest_asked(people, np.full(len(rows), target), below, self.nodes)
        there = people.values(np.nan_to_num(action))
        return self._met(people, action, there, np.zeros(len(rows)))

    def _people(
        self, score: Score, rows: Floats, feasible: FeasibleActions, most: Floats
    ) -> AskedPeople:
        """Return the people, who are not asked about moves of one column that nobody pays for."""
        home = feasible.snap(np.zeros_like(feasible.low))
        shape = self.response.cost.canonical(rows.shape[1])
        if shape is not None and shape.weights is not None and np.isfinite(most).any():
            reach = np.sqrt(most[:, None] / shape.weights.detach().numpy())
            step = np.where(feasible.step > 0.0, feasible.step, 1.0)
            reach = np.where(feasible.step > 0.0, np.ceil(reach / step) * step, reach)
            low = np.minimum(np.maximum(feasible.low, -reach), home)
            high = np.maximum(np.minimum(feasible.high, reach), home)
            feasible = replace(feasible, low=low, high=high)
        return AskedPeople(score, rows, feasible, home, self.response.cost)

    def _met(self, people: AskedPeople, action: Floats, found: Floats, bound: Floats) -> TreeMoves:
        """Return what was met, without proof; an infinite cost where nothing was."""
        lost = absent(action)
        cost = np.where(lost, np.inf, people.price(np.nan_to_num(action)))
        none = np.zeros(len(action), bool)
        count = np.full(len(action), self.nodes)
        return TreeMoves(action, cost, found, none, bound, count)
