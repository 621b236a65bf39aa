"""Best responses to a sum of trees: the cheapest crossing is searched for, and proven or not.

Unlike other responses it keeps whole steps, one-hot groups, relations and histories: the cells of
the splits are searched one by one in any case.
"""

from __future__ import annotations

import copy
import json
import warnings
from hashlib import sha256
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

import numpy as np
import torch
from torch import Tensor

from countermove._types import Floats, Mask
from countermove.people.feasible import FeasibleActions, feasible_actions
from countermove.response.base import GAIN, Crossing, Responses, checked_rows
from countermove.response.trees import BUDGET, TreeMoves, cheapest_crossing, highest_score
from countermove.scores.base import values
from countermove.scores.opaque import OpaqueScore
from countermove.scores.trees import TreeScore

if TYPE_CHECKING:
    from countermove.people import ActionSet
    from countermove.response.best import BestResponse
    from countermove.scores.trees import TreeEnsemble

SearchedScore = TreeScore | OpaqueScore
"""Scores without a slope to which people's best response is searched for."""
KEPT = 4
"""Groups of people whose highest scores are kept per model."""
Kept = list[tuple[bytes, "ActionSet", TreeMoves | None]]
_highest: WeakKeyDictionary[TreeEnsemble, Kept] = WeakKeyDictionary()


class UnprovenWarning(UserWarning):
    """Some people's search ended before their crossing was found or ruled out."""


class TreeBest:
    """What `BestResponse` does before a sum of trees.

    Whoever's crossing was neither found nor ruled out within the nodes searched counts as
    refused: they stay, are not ``converged``, and a warning says how many they are.
    """

    nodes = BUDGET
    """Searched per person."""
    limited = "the nodes searched per person are limited"
    searched_at_once = False
    """Whether highest scores are worth their search when people are first asked about."""

    def __init__(self, response: BestResponse) -> None:
        self.response = response

    def respond(self, score: SearchedScore, X: Any) -> Responses[Any]:
        """Return where people move to."""
        rows = checked_rows(X, score)
        known = self._afforded(score, rows)
        found, floor = self._crossings(score, rows, GAIN, known)
        gains = np.broadcast_to(self._gains(rows, GAIN), len(rows))
        crosses = np.isfinite(found.cost) & (found.cost - floor.cost < gains)
        decided = crosses | found.proven | (found.bound - floor.cost >= gains)
        self._warn(~decided)
        action = np.where(crosses[:, None], found.action, floor.action)
        cost = self._paid(rows, np.where(crosses, found.cost, floor.cost))
        parts = (rows + action, cost, (action != 0.0).any(axis=1), decided)
        return Responses.like(X, *(torch.from_numpy(np.asarray(part)) for part in parts))

    def decisions_after(self, score: SearchedScore, rows: Floats) -> Mask:
        """Return who is favoured after the response."""
        favoured, unknown = self._decided(score, rows)
        self._warn(unknown)
        return favoured

    def undecided(self, score: SearchedScore, rows: Floats) -> Mask:
        """Return of whom it is not known whether they cross."""
        return self._decided(score, rows)[1]

    def _decided(self, score: SearchedScore, rows: Floats) -> tuple[Mask, Mask]:
        """Return who is favoured after the response, and of whom that is not known."""
        known, favoured = self._afforded(score, rows), np.zeros(len(rows), bool)
        if known is not None:
            favoured = known.score + float(score.bias) >= 0.0
            unknown = ~favoured & ~known.proven & (known.bound + float(score.bias) >= 0.0)
            if not unknown.any():
                return favoured, unknown
        found, floor = self._crossings(score, rows, GAIN, known)
        gains = np.broadcast_to(self._gains(rows, GAIN), len(rows))
        favoured = favoured | (np.isfinite(found.cost) & (found.cost - floor.cost < gains))
        return favoured, ~favoured & ~found.proven & (found.bound - floor.cost < gains)

    def scores_after(self, score: SearchedScore, X: Tensor) -> Tensor:
        """Return the highest score people can afford; it has no gradient."""
        return torch.from_numpy(self._highest_scores(score, checked_rows(X, score)).score)

    def crossing(self, score: SearchedScore, X: Tensor) -> Crossing:
        """Return the cheapest favourable decision known, whatever it costs."""
        rows = checked_rows(X, score)
        found, _ = self._crossings(score, rows, np.inf)
        self._warn(
            ~found.proven, "the cheapest crossing of", "is not proven; the best known is taken"
        )
        possible = np.isfinite(found.cost)
        cost = np.where(possible, self._paid(rows, np.where(possible, found.cost, 0.0)), 0.0)
        return Crossing(torch.from_numpy(cost), torch.from_numpy(possible))

    def forced(self, rows: Floats) -> Mask:
        """Return who may not stay where they stand, shape (n,)."""
        return _forced(feasible_actions(self.response.actions, rows))

    def floor(self, score: SearchedScore, rows: Floats) -> Floats:
        """Return what people pay if they do not cross, shape (n,)."""
        return self._paid(rows, self._crossings(score, rows, 0.0)[1].cost)

    def _afforded(self, score: SearchedScore, rows: Floats) -> TreeMoves | None:
        """Return the highest scores these people can afford, at an intercept of 0, or None.

        They decide every threshold at once, and cost a few crossings: they are searched for when
        the same people are asked about the same trees for the second time.
        """
        kept = _highest.setdefault(self._key(score), [])
        gains = np.broadcast_to(self._gains(rows, GAIN), len(rows))
        said = json.dumps(self.response.cost.describe(), sort_keys=True).encode()
        parts = (rows, gains, score.mean, score.scale)
        who = sha256(said + b"".join(np.ascontiguousarray(part).tobytes() for part in parts))
        asked = who.digest()
        for at, (digest, actions, found) in enumerate(kept):
            if digest == asked and actions is self.response.actions:
                if found is None:
                    plain = copy.deepcopy(score)
                    plain.bias.data.zero_()
                    found = self._highest_scores(plain, rows)
                kept[at] = (digest, actions, found)
                return found
        kept[KEPT - 1 :] = []
        kept.insert(0, (asked, self.response.actions, None))
        return self._afforded(score, rows) if self.searched_at_once else None

    def _highest_scores(self, score: SearchedScore, rows: Floats) -> TreeMoves:
        gains = np.nextafter(np.broadcast_to(self._gains(rows, GAIN), len(rows)), 0.0)
        return self._highest(score, rows, feasible_actions(self.response.actions, rows), gains)

    def _key(self, score: Any) -> Any:
        """Return what scores of the same people are kept under, whatever the intercept."""
        return score.ensemble

    def _highest(
        self, score: Any, rows: Floats, feasible: FeasibleActions, most: Floats
    ) -> TreeMoves:
        """Return the highest scores within a price."""
        return highest_score(score, rows, feasible, self.response.cost, most, self.nodes)

    def _cheapest(
        self, score: Any, rows: Floats, feasible: FeasibleActions, target: float, most: Floats
    ) -> TreeMoves:
        """Return the cheapest actions that reach a score."""
        return cheapest_crossing(
            score, rows, feasible, self.response.cost, target, most, self.nodes
        )

    def _crossings(
        self, score: SearchedScore, rows: Floats, gain: float, known: TreeMoves | None = None
    ) -> tuple[TreeMoves, TreeMoves]:
        """Return everybody's cheapest crossing, and what they do if they do not cross.

        Nobody looks for one of whom it is ``known`` that there is none they can afford.
        """
        feasible = feasible_actions(self.response.actions, rows)
        n, forced = len(rows), _forced(feasible)
        still = _staying(score, rows)
        who = np.flatnonzero(forced)
        if who.size:
            endless = np.full(len(who), np.inf)
            held = self._cheapest(score, rows[who], feasible.rows(who), -np.inf, endless)
            still = _merged(still, held, who)
        short = values(score, rows) < 0.0
        who, found = np.flatnonzero(forced | short), _staying(score, rows)
        if known is not None:
            none = known.proven & (known.score + float(score.bias) < 0.0) & ~forced
            found.cost[none], found.bound[none] = np.inf, np.inf
            who = np.flatnonzero((forced | short) & ~none)
        if who.size:
            gains = np.broadcast_to(self._gains(rows, gain), n)[who]
            crossed = self._cheapest(score, rows[who], feasible.rows(who), 0.0, gains)
            found = _merged(found, crossed, who)
        return found, still

    def _gains(self, rows: Floats, gain: float) -> Floats:
        prices = self.response.prices(torch.from_numpy(rows))
        return np.full(1, gain) if prices is None else gain / prices.numpy()

    def _paid(self, rows: Floats, cost: Floats) -> Floats:
        prices = self.response.prices(torch.from_numpy(rows))
        return cost if prices is None else cost * prices.numpy()

    def _warn(
        self,
        unknown: Mask,
        what: str = "whether",
        why: str = "cross is not decided; they count as refused",
    ) -> None:
        if unknown.any():
            warnings.warn(
                f"{what} {unknown.sum()} of {len(unknown)} people ({unknown.mean():.2%}) {why} "
                f"({self.limited})",
                UnprovenWarning,
                stacklevel=5,
            )


def _forced(feasible: FeasibleActions) -> Mask:
    forced: Mask = np.asarray(((feasible.low > 0.0) | (feasible.high < 0.0)).any(axis=1))
    for part in feasible.listed:
        forced |= ~part.allowed[np.arange(len(forced)), part.present]
    return forced


def _staying(score: SearchedScore, rows: Floats) -> TreeMoves:
    """Return everybody where they stand."""
    n = len(rows)
    return TreeMoves(
        np.zeros_like(rows), np.zeros(n), values(score, rows), np.ones(n, bool), np.zeros(n),
        np.zeros(n, np.int64),
    )  # fmt: skip


def _merged(all_: TreeMoves, some: TreeMoves, who: Any) -> TreeMoves:
    """Write what was found for some people over that of all."""
    for name in ("action", "cost", "score", "proven", "bound", "nodes"):
        getattr(all_, name)[who] = getattr(some, name)
    return all_
