r"""Advice that still holds after the rule is fitted again to other rows.

At a person's new place both fits, the present and the next, miss the rule of the whole population:
the next one approves with probability :math:`\Phi(m / \sqrt{h^\top(\Sigma + \Sigma')h})`, m the
score beyond the threshold. As the spread depends on the place, the threshold is raised in rounds.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from countermove._types import Floats, Index, Mask
from countermove.errors import ParameterError
from countermove.execution import in_turn
from countermove.people.feasible import absent
from countermove.recourse.problem import MARGIN, Proposals, SearchProblem
from countermove.scores import Score
from countermove.scores.base import values
from countermove.scores.covariance import Refits

if TYPE_CHECKING:
    from countermove.recourse.recommend import Advice

NONE_KEPT = (
    "Linear scores trained by StrategicClassifier or by a run have a covariance; networks are "
    "fitted again to rows drawn with replacement where refits=20 (in a run "
    "serm.training.refits: 20) asks for it, at 20 times the cost of training"
)
TINY, ROUNDING = 1e-300, 1e-9
ROUNDS = 5
"""How often the threshold is raised to what the last place asks for; three or four settle it."""
STEEPEST = 0.9
"""How much more margin a margin may ask for at its place: beyond it, steps would be wild."""
SETTLED = 1e-3
"""A threshold that changes by less than this share of the margin is not raised again."""
DISTINCT = 1.96
"""Standard errors of a weight below which it cannot be distinguished from zero at 95 %."""

Find = Callable[[SearchProblem], Proposals]
"""Looks for the cheapest actions that reach a problem's target."""


def refits_of_model(model: Any) -> Refits | None:
    """Return what a classifier or a stored model knows of its next fit."""
    for name in ("covariance_", "covariance", "refits_", "refits"):
        found = getattr(model, name, None)
        if isinstance(found, Refits):
            return found
    return None


def margin_of(
    model: Any, score: Score, confidence: float | None, aim: float, most_paid: float
) -> Margin:
    """Return the margin of a model's advice; refuse a confidence that it cannot give."""
    refits = refits_of_model(model)
    if refits is not None and refits.n_features != score.n_features:
        raise ParameterError(
            f"the covariance is of {refits.n_features} weights, the score reads "
            f"{score.n_features} features; train the rule again"
        )
    if confidence is None:
        return Margin(refits, None, aim, most_paid)
    if not 0.0 < confidence < 1.0:
        raise ParameterError(
            "confidence is the probability that advice outlasts a refit, strictly between 0 and "
            f"1, or None for advice without that margin; got {confidence!r}"
        )
    if refits is None:
        raise ParameterError(
            f"confidence={confidence:g} needs the covariance of the rule or refits of it, and this "
            f"{type(model).__name__} has none. {NONE_KEPT}; train it again, or pass confidence=None"
        )
    return Margin(refits, confidence, aim, most_paid)


@dataclass(frozen=True)
class Margin:
    """What a refit may change, and how sure advice should be of outlasting it."""

    refits: Refits | None
    confidence: float | None  # None: no margin is asked for
    aim: float  # the score that is approved
    most_paid: float  # a margin that costs more is not advised

    def survival(self, problem: SearchProblem, action: Floats) -> Floats:
        """Return with what probability actions outlast a refit; NaN where none is known."""
        from scipy.special import ndtr

        chance = np.full(len(action), np.nan)
        who = np.flatnonzero((np.nan_to_num(action) != 0.0).any(axis=1) & ~absent(action))
        if self.refits is not None:
            beyond, loss, spread = self._at(self.refits, problem.rows(who), action[who])
            chance[who] = ndtr((beyond - loss) / spread)
        return chance

    def lasts(self, problem: SearchProblem, action: Floats) -> Mask:
        """Return whose action outlasts a refit with the confidence asked for."""
        reached = np.inf if self.confidence is None else self.confidence - ROUNDING
        mask: Mask = self.survival(problem, action) >= reached
        return mask

    def kept(self, problem: SearchProblem, action: Floats, beyond: float) -> KeptProblem:
        """Return the problem of replacing actions by others that reach what these have reached."""
        reached = np.minimum(problem.values(np.nan_to_num(action)), problem.target + beyond)
        # Half of what a search aims beyond the threshold is left to rounding errors.
        target = np.maximum(reached, problem.target) - 0.5 * MARGIN * (1.0 + np.abs(problem.target))
        own = {part.name: getattr(problem, part.name) for part in fields(SearchProblem)}
        own |= {"target": target, "refits": self, "lasting": self.lasts(problem, action)}
        return KeptProblem(**own)

    def outlasting(
        self, find: Find, problem: SearchProblem, first: Proposals, beyond: float
    ) -> Proposals:
        """Return the cheapest actions found that outlast a refit, the first where none does."""
        from scipy.stats import norm

        if self.refits is None or self.confidence is None or not len(problem.X):
            return first
        errors = float(norm.ppf(self.confidence))
        kept = self.kept(problem, first.action, beyond)
        best = first._replace(
            action=first.action.copy(), proven_cheapest=first.proven_cheapest.copy()
        )
        price = np.full(len(problem.X), self.most_paid)
        # A margin costs something: whoever pays the most already has none to look for.
        payable = problem.price(np.nan_to_num(first.action)) <= price
        who = np.flatnonzero(~absent(first.action) & ~kept.lasting & payable)
        start, loss, spread = self._at(self.refits, problem, np.nan_to_num(first.action))
        goal = loss + errors * spread
        asked, needed = start, goal.copy()
        for _ in in_turn(range(ROUNDS)):
            if not who.size:
                break
            part = kept.rows(who)
            target = np.maximum(part.target, self.aim + goal[who])
            found = find(replace(problem.rows(who), target=target))
            action, given = np.nan_to_num(found.action), ~absent(found.action)
            _, loss, spread = self._at(self.refits, part, action)
            met, cost = given & self.lasts(part, action), part.price(action)
            wins = met & (cost <= price[who])
            at = who[wins]
            price[at], best.action[at] = cost[wins], found.action[wins]
            best.proven_cheapest[at] = found.proven_cheapest[wins]
            there = loss + errors * spread
            moved = np.abs(there - goal[who]) > SETTLED * np.abs(goal[who])
            further = _settling(asked[who], needed[who], goal[who], there)
            asked[who], needed[who], goal[who] = goal[who], there, further
            goal[who[~met]] += SETTLED * np.abs(goal[who[~met]])
            # More than this margin costs no less: nobody pays for it who does not pay for this.
            cheaper = (goal[who] < asked[who]) | (cost < price[who])
            who = who[given & cheaper & (moved | ~met)]
        return best

    def outlook(self, advice: Advice, problem: SearchProblem) -> Advice:
        """Return verified advice with what a refit would leave of it."""
        if self.refits is None:
            return advice
        who = np.flatnonzero(~absent(advice.action) & (advice.n_changed > 0))
        uncertain = np.zeros(len(problem.X), bool)
        uncertain[who] = self._rests(self.refits, problem.rows(who), advice.action[who])
        return replace(
            advice,
            survival=self.survival(problem, advice.action),
            lasting=self.lasts(problem, advice.action),
            uncertain_weight=uncertain,
        )

    def _at(
        self, refits: Refits, problem: SearchProblem, action: Floats
    ) -> tuple[Floats, Floats, Floats]:
        """Return score beyond the aim, expected loss by another fit and its deviation."""
        place = problem.place(action)
        loss, spread = refits.foreseen(problem.score, problem.X, place)
        return values(problem.score, place) - self.aim, loss, np.maximum(spread, TINY)

    def _rests(self, refits: Refits, problem: SearchProblem, action: Floats) -> Mask:
        """Return whose action is approved only by features whose effect may as well be none."""
        unsure = np.zeros(len(action))
        for block in problem.feasible.blocks:
            alone, columns = np.zeros_like(action), list(block.columns)
            alone[:, columns] = action[:, columns]
            place = problem.place(alone)
            gain, error = refits.gain_and_error(problem.score, problem.X, place)
            unsure += np.where(np.abs(gain) < DISTINCT * error, gain, 0.0)
        mask: Mask = (unsure > 0.0) & (problem.values(action) - unsure < self.aim)
        return mask


@dataclass(frozen=True)
class KeptProblem(SearchProblem):
    """What actions have reached, and whatever replaces them has to keep: scores and outlook."""

    refits: Margin = field(default=Margin(None, None, 0.0, np.inf))
    lasting: Mask = field(default_factory=lambda: np.zeros(0, bool))  # whose action outlasts refits

    def rows(self, who: Index | Mask) -> KeptProblem:
        """Return the problem of some of the people."""
        return replace(super().rows(who), lasting=self.lasting[who])

    def reaches(self, action: Floats, scores: Floats | None = None) -> Mask:
        """Return whose action keeps what was reached."""
        mask = super().reaches(action, scores)
        who = np.flatnonzero(mask & self.lasting)
        mask[who] = self.refits.lasts(self.rows(who), action[who])
        return mask


def _settling(asked: Floats, needed: Floats, goal: Floats, there: Floats) -> Floats:
    """Return the margin that its own place would ask for, by the last two margins (secant)."""
    rise = np.divide(there - needed, goal - asked, out=np.zeros_like(goal), where=goal != asked)
    settled: Floats = goal + (there - goal) / (1.0 - np.clip(rise, 0.0, STEEPEST))
    return settled
