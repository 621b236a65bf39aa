"""Several models of people at once: training counts on the worst of them.

Nobody responds to a rule in several ways; we do not know in which. So the set has
members, and a rule is evaluated member by member. People who are known to differ are one
model, a `Population`.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn, Self
from weakref import WeakKeyDictionary

import torch
from numpy.typing import ArrayLike
from torch import Tensor

from countermove._types import Floats, Mask
from countermove.errors import ParameterError
from countermove.people import Cost, QuadraticCost
from countermove.randomness import seed_of
from countermove.response.base import NoResponse, OnFailure, Response, Responses
from countermove.response.best import BestResponse
from countermove.response.population import Population
from countermove.response.representation import RepresentationResponse, represented
from countermove.response.score_seeking import GainResponse
from countermove.response.smooth import ScalarResponse
from countermove.scores import Score

if TYPE_CHECKING:
    import pandas as pd

logger = logging.getLogger(__name__)


class RobustResponse(Response):
    """A set of response models, the true one unknown.

    Parameters
    ----------
    members
        At least two responses, populations among them allowed, none of them robust itself.
    weights
        None: the worst member counts. Else their probabilities.
    """

    name = "robust"

    def __init__(self, members: Sequence[Response], weights: Sequence[float] | None = None) -> None:
        if len(members) < 2 or any(isinstance(member, RobustResponse) for member in members):
            raise ParameterError(
                f"a robust response needs at least two plain members, got {len(members)}"
            )
        super().__init__(members[0].cost, members[0].actions)
        self.members = tuple(members)
        self.weights = None if weights is None else tuple(weights)

    def respond(self, score: Score, X: Any, on_failure: OnFailure = "raise") -> Responses[Any]:
        """Refuse: name the member whose response is meant."""
        self._refuse()

    def scores_after(self, score: Score, X: Tensor) -> Tensor:
        """Refuse: the training objective joins the members' losses, not their scores."""
        self._refuse()

    def decisions_after(self, score: Score, X: Any) -> Mask:
        """Refuse: which decision follows depends on the member."""
        self._refuse()

    def answers(self, score: Score) -> bool:
        """Return whether all members can respond to such a score."""
        return all(member.answers(score) for member in self.members)

    def of_rows(self, rows: Any) -> Self:
        """Return the same of the people in ``rows``."""
        return self._of_members([member.of_rows(rows) for member in self.members])

    @property
    def knows_missing(self) -> bool:
        """Whether people may lack cells, which they then cannot move."""
        return any(member.knows_missing for member in self.members)

    def for_people(self, X: Any) -> Self:
        """Return the same of these people: nobody moves a cell that they lack."""
        return self._of_members([member.for_people(X) for member in self.members])

    def with_windows(self, X: Floats, windows: pd.DataFrame | None) -> Self:
        """Return the same of people whose histories are known month by month."""
        return self._of_members([member.with_windows(X, windows) for member in self.members])

    def relaxed(self) -> Self:
        """Return the same members, whose responses relax relations and histories."""
        return self._of_members([member.relaxed() for member in self.members])

    def _of_members(self, members: Sequence[Response]) -> Self:
        if all(new is old for new, old in zip(members, self.members, strict=True)):
            return self
        return type(self)(members, self.weights)

    def with_cost(self, cost: Cost) -> Self:
        """Return the same members, all of them with another cost."""
        return type(self)([member.with_cost(cost) for member in self.members], self.weights)

    def after_standardising(self, mean: ArrayLike, scale: ArrayLike) -> Self:
        """Return the same members as standardised rows."""
        members = [member.after_standardising(mean, scale) for member in self.members]
        return type(self)(members, self.weights)

    def with_price(self, factor: float) -> Self:
        """Return the same members if every move cost ``factor`` > 0 times as much."""
        return type(self)([member.with_price(factor) for member in self.members], self.weights)

    def describe(self) -> dict[str, Any]:
        """Return the members' descriptions."""
        described = {"members": [member.describe() for member in self.members]}
        return super().describe() | described | {"weights": self.weights}

    def _refuse(self) -> NoReturn:
        raise ParameterError(
            "a robust response is no single behaviour; ask one of its members "
            f"({', '.join(member.name for member in self.members)})"
        )


@dataclass(frozen=True)
class ConfidenceSet:
    """What estimated people may be: numbers that lie in these intervals together.

    Attributes
    ----------
    movers
        Who moves: a plain response with the estimated cost.
    level
        Probability that all numbers of the true people lie in their intervals.
    price
        Factor on the cost of the movers, from and to.
    never, log_sd
        Share of never-movers and spread of prices, see `Population`.
    temperature
        Of a smoothed step; None for others.
    """

    movers: Response
    level: float
    price: tuple[float, float]
    never: tuple[float, float] = (0.0, 0.0)
    log_sd: tuple[float, float] = (0.0, 0.0)
    temperature: tuple[float, float] | None = None

    @property
    def populations(self) -> tuple[Response, ...]:
        """The corners: everybody's chances lie between theirs if they fall with the price."""
        heats = (None,) if self.temperature is None else self.temperature
        return tuple(
            self._people(price, never, log_sd, heat)
            for price in sorted(set(self.price))
            for never in sorted(set(self.never))
            for log_sd in sorted(set(self.log_sd))
            for heat in heats
        )

    def _people(self, price: float, never: float, log_sd: float, heat: float | None) -> Response:
        movers = self.movers.with_price(price)
        if heat is not None and isinstance(movers, ScalarResponse):
            movers = movers.at_temperature(heat)
        return Population(movers, never=never, log_sd=log_sd)

    @property
    def words(self) -> str:
        """The intervals in words."""
        said = [
            f"a price of {self.price[0]:.3g} to {self.price[1]:.3g} times the one stated",
            f"{self.never[0]:.1%} to {self.never[1]:.1%} who never move",
            f"a log-sd of prices of {self.log_sd[0]:.2g} to {self.log_sd[1]:.2g}",
        ]
        if self.temperature is not None:
            said.append(f"a temperature of {self.temperature[0]:.3g} to {self.temperature[1]:.3g}")
        return ", ".join(said)


def members_of(response: Response) -> tuple[Response, ...]:
    """Return the models of which the worst counts: the members of a robust response, or itself."""
    return response.members if isinstance(response, RobustResponse) else (response,)


def kinds_of(response: Response) -> tuple[Response, ...]:
    """Return the plain behaviours a response is made of, those of every member in turn."""
    return tuple(
        kind
        for member in members_of(response)
        for kind in (member.kinds if isinstance(member, Population) else (member,))
    )


def why_relaxed(response: Response, strictly: bool = False) -> str | None:
    """Return why a response does not obey relations between columns and histories; None: it does.

    Parameters
    ----------
    response
        Whose people are meant.
    strictly
        Whether what is only slow is done all the same.
    """
    for kind in kinds_of(response):
        possible = kind.actions.possible
        if isinstance(kind, NoResponse) or possible is None or possible.only_ranges:
            continue
        if isinstance(kind, RepresentationResponse):
            return "people who move in a representation have no columns"
        if isinstance(kind, ScalarResponse) and not kind.polish:
            return "polish=False follows the published procedure"
        shape = kind.cost.canonical(len(possible.low))
        crossed = shape is not None and (shape.matrix is not None or shape.kink is not None)
        if crossed and isinstance(kind, BestResponse | ScalarResponse) and not strictly:
            return (
                f"at a {kind.cost.describe()['kind']} cost every branch is a convex program, a "
                "thousand times slower; serm.actions.responses: obey takes the time"
            )
        if crossed and isinstance(kind, GainResponse):
            return f"a {kind.cost.describe()['kind']} cost is no sum of squares over columns"
    return None


def obeying(response: Response, strictly: bool = False) -> Response:
    """Return a response that obeys relations and histories, or, if it cannot, one that relaxes.

    Parameters
    ----------
    response
        People whose action set says that responses obey it (`ActionSet.obeyed_in_responses`).
    strictly
        Obey however long it takes, and refuse people who cannot, instead of a warning.
    """
    reason = why_relaxed(response, strictly)
    if reason is None:
        return response
    warning = f"relations between columns do not bind these responses: {reason}"
    if strictly:
        raise ParameterError(
            f"{warning}. Choose another response or cost, or let columns move alone in responses: "
            "serm.actions.responses: relax"
        )
    warn_once(warning)
    return response.relaxed()


@lru_cache(maxsize=64)
def warn_once(warning: str) -> None:
    """Say once per run what it is that responses do not obey."""
    logger.warning("%s; columns move alone in them, not in recourse", warning)


def discretised(response: Response) -> tuple[tuple[float, Response], ...]:
    """Return the plain responses a model stands for in training, each with its share."""
    if isinstance(response, Population):
        return tuple(zip(response.weights, response.members, strict=True))
    return ((1.0, response),)


def redrawn(response: Response, seed: int, stage: str) -> Response:
    """Return a response whose people have types drawn for a stage; plain ones as they are.

    Rows of two tables that must be independent need types of their own in each.
    """
    if isinstance(response, RobustResponse):
        members = [redrawn(member, seed, stage) for member in response.members]
        return RobustResponse(members, response.weights)
    if isinstance(response, Population):
        return response.with_seed(seed_of(seed, stage))
    return response


_RATIONAL: WeakKeyDictionary[Response, dict[bool, BestResponse]] = WeakKeyDictionary()


def rational(response: Response, unscaled: bool = False) -> BestResponse:
    """Return fully rational people with a response's cost (or, ``unscaled``, squared length)."""
    # Of several members or kinds the first one's people are meant. They are made once per response:
    # their plan is kept, and conic costs are compiled once.
    response = kinds_of(response)[0]
    if isinstance(response, BestResponse) and not unscaled:
        return response
    made = _RATIONAL.setdefault(response, {})
    known = made.get(unscaled)
    cost = QuadraticCost() if unscaled else response.cost
    same_cost = known is not None and (unscaled or known.cost is cost)
    same_price = known is not None and (unscaled or known.log_price is response.log_price)
    if not (known and same_cost and same_price and known.actions is response.actions):
        known = BestResponse(cost, response.actions)
        if not unscaled:
            known.log_price = response.log_price
        made[unscaled] = known
    return known


class RationalPeople(NamedTuple):
    """Best responders, the score they see, and where they stand, shape (n, k)."""

    response: BestResponse
    score: Score
    rows: Floats


def rational_people(response: Response, score: Score, X: Floats) -> RationalPeople | None:
    """Return best responders with a response's cost and actions; None without a closed form."""
    # People who move in a representation see its head from there.
    member = kinds_of(response)[0]
    if isinstance(member, RepresentationResponse):
        known = represented(score)
        with torch.no_grad():
            places = known.represent(torch.from_numpy(X)).numpy()
        return RationalPeople(rational(member.inner), known.head(), places)
    if score.slope() is None:
        return None
    return RationalPeople(rational(member), score, X)
