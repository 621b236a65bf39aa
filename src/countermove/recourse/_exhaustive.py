"""Recourse by trying everything: the referee for small action sets.

Whole numbers and categories are tried one and all, continuous features on a fine
grid that holds both ends and doing nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from math import prod

import numpy as np

from countermove._types import Floats
from countermove.errors import ParameterError
from countermove.execution import in_turn
from countermove.people.feasible import FeasibleActions, FeatureBlock, absent
from countermove.recourse.problem import MARGIN, Proposals, SearchProblem, Settings

MOST_COMBINATIONS = 300_000
"""Combinations per person beyond which trying everything is refused."""
AT_ONCE = 100_000
"""Actions evaluated at once."""


def search(problem: SearchProblem, settings: Settings) -> Proposals:
    """Return the cheapest action that reaches the target; without continuous features, a proof."""
    # A proof must hold at the threshold itself, not at the margin beyond it that is aimed at.
    problem = replace(problem, target=problem.target - MARGIN * (1.0 + np.abs(problem.target)))
    best = np.full_like(problem.X, np.nan)
    price = np.full(len(best), np.inf)
    rows = np.arange(len(best))
    for actions in _combinations(problem.feasible, problem.home, settings.grid):
        n, k, d = actions.shape
        many, flat = problem.repeated(k), actions.reshape(n * k, d)
        cost = np.where(many.reaches(flat), many.price(flat), np.inf).reshape(n, k)
        first = cost.argmin(axis=1)
        wins = cost[rows, first] < price
        best[wins], price[wins] = actions[rows, first][wins], cost[rows, first][wins]
    complete = all(block.kind != "number" for block in problem.feasible.blocks)
    endless = (problem.feasible.open_low | problem.feasible.open_high).any(axis=1)
    sure = complete & ~endless
    return Proposals(best, absent(best) & sure, ~absent(best) & sure)


def reach(problem: SearchProblem, settings: Settings) -> tuple[Floats, Floats]:
    """Return the action of the highest score on the grid, and that score."""
    best, scores = problem.home.copy(), problem.values(problem.home)
    rows = np.arange(len(best))
    for actions in _combinations(problem.feasible, problem.home, settings.grid):
        worth = problem.allowed_values(actions)
        first = worth.argmax(axis=1)
        wins = worth[rows, first] > scores
        best[wins], scores[wins] = actions[rows, first][wins], worth[rows, first][wins]
    return best, scores


def _combinations(feasible: FeasibleActions, home: Floats, grid: int) -> Iterator[Floats]:
    """Yield every combination in parts, each (n, k, d)."""
    blocks = feasible.blocks
    levels = [_levels(feasible, home, block, grid) for block in blocks]
    counts = [part.shape[1] for part in levels]
    total = prod(counts)
    if total > MOST_COMBINATIONS:
        sizes = " × ".join(map(str, counts))
        raise ParameterError(
            f"trying everything means {sizes} = {total:,} combinations per person, more than "
            f"{MOST_COMBINATIONS:,}; bound the actions, lower max_features or settings.grid, or "
            "use another method"
        )
    size = max(1, AT_ONCE // max(len(home), 1))
    for start in in_turn(range(0, total if len(home) else 0, size)):
        flat = np.arange(start, min(start + size, total))
        actions = np.repeat(home[:, None], len(flat), axis=1)
        for block, part, position in zip(
            blocks, levels, np.unravel_index(flat, counts), strict=True
        ):
            actions[:, :, list(block.columns)] = part[:, position]
        yield actions


def _levels(feasible: FeasibleActions, home: Floats, block: FeatureBlock, grid: int) -> Floats:
    """Return what a block can be for each person, (n, levels, columns); repeats fill up."""
    if block.kind == "listed":
        part = feasible.states_of(block)
        rows = np.arange(len(home))
        stay = np.where(part.allowed[rows, part.present], part.present, part.allowed.argmax(axis=1))
        fallback = part.of(stay)[:, None]
        return np.where(part.allowed[:, :, None], part.change, fallback)
    j = block.columns[0]
    low, high = feasible.low[:, [j]], feasible.high[:, [j]]
    if block.kind == "whole":
        count = int(np.round((high - low).max() / feasible.step[j])) + 1
        if count > MOST_COMBINATIONS:
            raise ParameterError(
                f"feature {j} alone has {count:,} values, more than can be tried; bound its "
                "actions or use another method"
            )
        values: Floats = np.minimum(low + np.arange(count) * feasible.step[j], high)
        return values[:, :, None]
    values = low + np.linspace(0.0, 1.0, grid) * (high - low)
    return np.hstack([home[:, [j]], values])[:, :, None]
