r"""Advice that still holds after the rule is fitted again to other rows.

At a person's new place both fits, the present and the next, miss the rule of the whole population:
the next one approves with probability :math:`\Phi(m / \sqrt{h^\top(\Sigma + \Sigma')h})`, m the
score beyond the threshold. As the spread depends on the place, the threshold is raised in rounds.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from countermove._types import Floats, Mask
from countermove.errors import ParameterError
from countermove.recourse._feasible import absent
from countermove.recourse._search import Proposals, SearchMethod, SearchProblem, Settings
from countermove.scores import Score
from countermove.scores.base import values
from countermove.scores.covariance import RuleCovariance

if TYPE_CHECKING:
    from countermove.recourse.recommend import Advice

NONE_KEPT = (
    "It is kept for linear scores trained by StrategicClassifier or by a run; not for networks, "
    "whose refits one fit does not foresee, nor for models stored by earlier releases"
)
TINY, ROUNDING = 1e-300, 1e-9
ROUNDS = 5
"""How often the threshold is raised to what the last place asks for; two or three settle it."""
SETTLED = 1e-3
"""A threshold that changes by less than this share of the margin is not raised again."""
DISTINCT = 1.96
"""Standard errors of a weight below which it cannot be distinguished from zero at 95 %."""


def covariance_of_model(model: Any) -> RuleCovariance | None:
    """Return what a classifier or a stored model knows of its covariance."""
    for name in ("covariance_", "covariance"):
        found = getattr(model, name, None)
        if isinstance(found, RuleCovariance):
            return found
    return None


def margin_of(
    model: Any, score: Score, confidence: float | None, aim: float, most_paid: float
) -> Margin:
    """Return the margin of a model's advice; refuse a confidence that it cannot give."""
    covariance = covariance_of_model(model)
    if covariance is not None and covariance.n_features != score.n_features:
        raise ParameterError(
            f"the covariance is of {covariance.n_features} weights, the score reads "
            f"{score.n_features} features; train the rule again"
        )
    if confidence is None:
        return Margin(covariance, None, aim, most_paid)
    if not 0.0 < confidence < 1.0:
        raise ParameterError(
            "confidence is the probability that advice outlasts a refit, strictly between 0 and "
            f"1, or None for advice without that margin; got {confidence!r}"
        )
    if covariance is None:
        raise ParameterError(
            f"confidence={confidence:g} needs the covariance of the rule, and this "
            f"{type(model).__name__} has none. {NONE_KEPT}; train it again, or pass confidence=None"
        )
    return Margin(covariance, confidence, aim, most_paid)


@dataclass(frozen=True)
class Margin:
    """What a refit may change: the rule's covariance, and how sure advice should be of it."""

    covariance: RuleCovariance | None
    confidence: float | None  # None: no margin is asked for
    aim: float  # the score that is approved
    most_paid: float  # a margin that costs more is not advised

    @staticmethod
    def at(
        covariance: RuleCovariance, problem: SearchProblem, action: Floats
    ) -> tuple[Floats, Floats, Floats]:
        """Return score, expected loss by another fit, and its standard deviation after actions."""
        place = problem.place(action)
        loss = covariance.optimism(_weights(problem.score), place - problem.X)
        loss += covariance.cut_bias
        spread = np.sqrt(2.0 * covariance.score_variance(place))
        return values(problem.score, place), loss, np.maximum(spread, TINY)

    def method(self, plain: SearchMethod) -> SearchMethod:
        """Return a search whose actions outlast a refit where they can; ``plain`` if not asked."""
        from scipy.stats import norm

        if self.confidence is None or self.covariance is None or self.confidence <= 0.5:
            return plain
        errors = float(norm.ppf(self.confidence))
        search = partial(self._search, plain, errors, self.covariance)
        return SearchMethod(search, plain.reach)

    def _search(
        self,
        plain: SearchMethod,
        errors: float,
        covariance: RuleCovariance,
        problem: SearchProblem,
        settings: Settings,
    ) -> Proposals:
        """Return the cheapest actions found with their margin, the plain ones where none is."""
        first = plain.search(problem, settings)
        best = Proposals(first.action.copy(), first.proven_none, first.proven_cheapest.copy())
        price = np.full(len(problem.X), self.most_paid)
        who = np.flatnonzero(~absent(first.action))
        _, loss, spread = self.at(covariance, problem, np.nan_to_num(first.action))
        needed = loss + errors * spread
        for _ in range(ROUNDS):
            if not who.size:
                break
            part, asked = problem.rows(who), needed[who]
            target = np.maximum(part.target, self.aim + asked)
            found = plain.search(replace(part, target=target), settings)
            action, given = np.nan_to_num(found.action), ~absent(found.action)
            scores, loss, spread = self.at(covariance, part, action)
            needed[who] = loss + errors * spread
            met = given & (scores >= self.aim + needed[who])
            cost = part.price(action)
            wins = met & (cost <= price[who])
            at = who[wins]
            price[at], best.action[at] = cost[wins], found.action[wins]
            best.proven_cheapest[at] = found.proven_cheapest[wins]
            moved = np.abs(needed[who] - asked) > SETTLED * asked
            needed[who[~met]] *= 1.0 + SETTLED
            who = who[given & (moved | ~met)]
        return best

    def outlook(self, advice: Advice, problem: SearchProblem) -> Advice:
        """Return verified advice with what a refit would leave of it."""
        if self.covariance is None:
            return advice
        from scipy.special import ndtr

        n = len(problem.X)
        who = np.flatnonzero(~absent(advice.action) & (advice.n_changed > 0))
        part, action = problem.rows(who), advice.action[who]
        survival, uncertain = np.full(n, np.nan), np.zeros(n, bool)
        scores, loss, spread = self.at(self.covariance, part, action)
        survival[who] = ndtr((scores - self.aim - loss) / spread)
        uncertain[who] = self._uncertain(self.covariance, part, action)
        reached = np.inf if self.confidence is None else self.confidence - ROUNDING
        return replace(
            advice, survival=survival, lasting=survival >= reached, uncertain_weight=uncertain
        )

    def _uncertain(
        self, covariance: RuleCovariance, problem: SearchProblem, action: Floats
    ) -> Mask:
        """Return whose action changes a feature whose effect may as well be none."""
        weight = _weights(problem.score)
        found = np.zeros(len(action), bool)
        for block in problem.feasible.blocks:
            columns = list(block.columns)
            alone = np.zeros_like(action)
            alone[:, columns] = action[:, columns]
            error = np.sqrt(covariance.effect_variance(alone))
            found |= alone.any(axis=1) & (np.abs(alone @ weight) < DISTINCT * error)
        return found


def _weights(score: Score) -> Floats:
    """Return the weights of a score with a covariance, which is linear."""
    slope = score.slope()
    assert slope is not None
    weights: Floats = slope.detach().numpy()
    return weights
