"""New tables of people whose cause is known: for tests and for the table of power.

Five features of a Gaussian population: one is yes or no and nobody can change it, one comes in
steps of a half. So there are atoms before anybody moves, and people heap up on the boundary after.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from countermove.data.standardise import Standardiser
from countermove.data.synthetic import GaussianPopulation
from countermove.errors import UnknownNameError, nearest
from countermove.people import ActionSet, QuadraticCost, WeightedQuadraticCost
from countermove.production.drift import PeopleTable
from countermove.production.drift.diagnosis import Recommendation
from countermove.response import BestResponse, NoResponse, Response, ScalarResponse
from countermove.scores import LinearScore
from countermove.scores.storage import PublishedModel

Floats = NDArray[np.float64]

NAMES = ("income", "savings", "debts", "owner", "years")
CENTRE = (0.5, 0.3, -0.4, 0.2, 0.4)
OWNER, YEARS = 3, 4
SCALE = 2.0
"""What a move costs by our own account, per squared unit."""

_ACTIONS = ActionSet(immutable=[OWNER])


@dataclass(frozen=True, eq=False)
class KnownCase:
    """Two tables, the deployed model and our response, and the recommendation that is right."""

    reference: PeopleTable
    observed: PeopleTable
    model: PublishedModel
    response: Response
    answer: Recommendation


@dataclass(frozen=True)
class KnownCause:
    """What happened between the tables.

    ``people`` answer the rule and go so great a ``part`` of the way, ``before`` changes who comes,
    ``after`` what is recorded; ``shift`` is added to the score that labels follow; ``ours`` is the
    response we count on, best responders by default.
    """

    answer: Recommendation
    people: Response
    before: Callable[[Floats], Floats] | None = None
    after: Callable[[Floats], Floats] | None = None
    shift: float = 0.0
    part: float = 1.0
    ours: Response | None = None


def best(scale: float = SCALE) -> Response:
    """Return best responders whose moves cost so much."""
    return BestResponse(QuadraticCost(scale), _ACTIONS)


def _moved(column: int, by: float) -> Callable[[Floats], Floats]:
    def change(X: Floats) -> Floats:
        X = X.copy()
        X[:, column] += by
        return X

    return change


def _times(column: int, factor: float) -> Callable[[Floats], Floats]:
    def change(X: Floats) -> Floats:
        X = X.copy()
        X[:, column] *= factor
        return X

    return change


def _lost(X: Floats) -> Floats:
    X = X.copy()
    X[::10, 1] = np.nan
    return X


_NOBODY = NoResponse(QuadraticCost(SCALE), _ACTIONS)
_UNEQUAL = BestResponse(WeightedQuadraticCost([8.0, 0.5, 8.0, 2.0, 8.0]), _ACTIONS)
_SMOOTH = ScalarResponse(QuadraticCost(SCALE), _ACTIONS, temperature=0.3)

CAUSES: Mapping[str, KnownCause] = {
    "nobody answers, none expected": KnownCause("keep", _NOBODY, ours=_NOBODY),
    "people answer as modelled": KnownCause("keep", best()),
    "a move costs half as much": KnownCause("re-estimate costs", best(0.5 * SCALE)),
    "a move costs twice as much": KnownCause("re-estimate costs", best(2.0 * SCALE)),
    "nobody answers": KnownCause("re-estimate costs", _NOBODY),
    "features are priced otherwise": KnownCause("re-estimate costs", _UNEQUAL),
    "people climb a smoothed step": KnownCause("re-estimate costs", _SMOOTH),
    "savings grow by 0.2": KnownCause("retrain", _NOBODY, _moved(1, 0.2), ours=_NOBODY),
    "as modelled, and savings grow by 0.2": KnownCause("retrain", best(), _moved(1, 0.2)),
    "as modelled, and labels shift": KnownCause("retrain", best(), shift=0.6),
    "people overshoot by half": KnownCause("investigate", best(), part=1.5),
    "savings in another unit": KnownCause("investigate", best(), after=_times(1, 100.0)),
    "debts are no longer recorded": KnownCause("investigate", best(), after=_times(2, 0.0)),
    "a tenth of savings is missing": KnownCause("investigate", best(), after=_lost),
}
"""What can happen, by name."""


def known_case(name: str, n: int, m: int, seed: int) -> KnownCase:
    """Return ``n`` people before and ``m`` others after something known happened.

    Parameters
    ----------
    name
        One of `CAUSES`.
    n, m
        Rows of either table.
    seed
        Of the people.
    """
    if name not in CAUSES:
        raise UnknownNameError(f"no known cause {name!r}; {nearest(name, CAUSES)}")
    cause = CAUSES[name]
    model = deployed()
    X, y = people(n, 2 * seed)
    Z, z = people(m, 2 * seed + 1, cause.shift)
    Z = Z if cause.before is None else cause.before(Z)
    seen = Z + cause.part * (cause.people.respond(model.rule, Z).x_new - Z)
    seen = seen if cause.after is None else cause.after(seen)
    ours = best() if cause.ours is None else cause.ours
    return KnownCase(PeopleTable(X, y), PeopleTable(seen, z), model, ours, cause.answer)


def deployed() -> PublishedModel:
    """Return the deployed model: the population's best rule, a little harder to pass."""
    weights, bias = GaussianPopulation(CENTRE).best_rule()
    score = LinearScore(len(NAMES))
    with torch.no_grad():
        score.weight.copy_(torch.from_numpy(weights))
        score.bias.fill_(bias - 0.5)
    units = Standardiser(np.zeros(len(NAMES)), np.ones(len(NAMES)), NAMES)
    return PublishedModel(score, units, "")


def people(n: int, seed: int, shift: float = 0.0) -> tuple[Floats, Floats]:
    """Return people; a shift moves the intercept of P(y = 1 | x), which is logistic."""
    population = GaussianPopulation(CENTRE)
    X, y = population.sample(n, seed)
    if shift:
        weights, bias = population.best_rule()
        chance = 1.0 / (1.0 + np.exp(-(X @ weights + bias + shift)))
        y = np.where(np.random.default_rng(seed).random(n) < chance, 1.0, -1.0)
    X[:, OWNER] = (X[:, OWNER] > 0.0).astype(np.float64)
    X[:, YEARS] = np.rint(2.0 * X[:, YEARS]) / 2.0
    return X, y
