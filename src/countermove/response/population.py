"""People who differ: a share that never moves, several kinds, prices of their own."""

from __future__ import annotations

import copy
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtri
from torch import Tensor

from countermove._types import Floats, Index, Mask
from countermove.errors import ParameterError
from countermove.people import Cost
from countermove.randomness import row_uniforms
from countermove.response._chances import chance_of, cost_of, price_nodes
from countermove.response.base import NoResponse, OnFailure, Response, Responses, checked_rows
from countermove.scores import Score

if TYPE_CHECKING:
    import pandas as pd

ROUNDING = 1e-6
"""By how much shares may miss one."""


@dataclass(frozen=True)
class DrawnTypes:
    """Who everybody is, one row per person.

    Attributes
    ----------
    kind
        Position of the person's kind, shape (n,); -1 for those who never move.
    factor
        On the kind's cost, shape (n,); 1 for those who never move.
    """

    kind: NDArray[np.intp]
    factor: Floats

    @property
    def never(self) -> Mask:
        """Who never moves."""
        mask: Mask = self.kind < 0
        return mask


class Population(Response):
    r"""People who differ: some never move, the others differ in kind and in price.

    >>> from countermove import Population, StrategicClassifier
    >>> from countermove.response import BestResponse
    >>> people = Population([BestResponse()], never=0.3, log_sd=0.5)
    >>> StrategicClassifier(response=people).response.never
    0.3

    A person is of the kind :math:`k` with probability :math:`(1-\nu)\pi_k` and then pays

    .. math:: e^{\sigma z}\, e^{\gamma\cdot x}\, c_k(x, x'), \qquad z \sim N(0, 1),

    or never moves, with probability :math:`\nu`. Types are independent of everything else.

    Parameters
    ----------
    kinds
        One response or several plain ones; costs and actions are theirs.
    shares
        :math:`\pi`, of the kinds among those who move, summing to one; not needed for one kind.
    never
        :math:`\nu` in [0, 1), the share of all people who never move.
    log_sd
        :math:`\sigma \ge 0`: the factor on everybody's cost is log-normal with median 1.
    log_price
        :math:`\gamma`, shape (d,), standardised units; not zero only for features that nobody
        can move. None: prices do not depend on where people stand.
    nodes
        How many prices of a kind `members` holds.

    Notes
    -----
    `chance_after` and `expected_cost` are exact for best responders: with :math:`c` the cost of
    the cheapest crossing the chance is :math:`\Phi((\ln 2 - \ln c)/\sigma)`. For other kinds
    every price at which the decision changes is located to 2^-12 of chance (2^-8 for kinds that
    have one cost for everybody: ``ascent``, conic), and a mean cost to .01.

    `respond` and `decisions_after` draw one type per row, by the seed 0 (`with_seed`) and the
    number of the row alone: the result does not depend on how a table is cut into parts.
    `members` and `weights` are the population as plain responses, for training: prices at the
    nodes of Gauss and Hermite. Kinds with one cost for everybody draw theirs among these.
    """

    name = "population"

    def __init__(
        self,
        kinds: Response | Sequence[Response],
        shares: Sequence[float] | None = None,
        *,
        never: float = 0.0,
        log_sd: float = 0.0,
        log_price: ArrayLike | None = None,
        nodes: int = 8,
    ) -> None:
        listed = (kinds,) if isinstance(kinds, Response) else tuple(kinds)
        _check_kinds(listed)
        super().__init__(listed[0].cost, listed[0].actions)
        self.shares = _checked_shares(shares, len(listed))
        self.never = _checked_number("never", never, "a share in [0, 1)", below=1.0)
        self.log_sd = _checked_number("log_sd", log_sd, "a finite number >= 0", below=np.inf)
        if isinstance(nodes, bool) or not isinstance(nodes, int | np.integer) or nodes < 1:
            raise ParameterError(f"nodes is a whole number of at least 1, got {nodes!r}")
        self.nodes, self.seed = int(nodes), 0
        if log_price is not None:
            _check_not_priced(listed)
            listed = tuple(kind.with_log_price(log_price) for kind in listed)
            self.log_price = listed[0].log_price
        self.kinds = listed
        self.costly = any(kind.costly for kind in listed)
        self._rows: Index | None = None

    def __copy__(self) -> Self:
        """Return another population of the same settings; its members are made again."""
        other = super().__copy__()
        other.__dict__.pop("_discretised", None)
        return other

    @cached_property
    def _discretised(self) -> tuple[tuple[Response, ...], tuple[float, ...]]:
        members: list[Response] = []
        weights: list[float] = []
        if self.never > 0.0:
            members, weights = [NoResponse(self.cost, self.actions)], [self.never]
        factors, parts = price_nodes(self.log_sd, self.nodes)
        for kind, share in zip(self.kinds, self.shares, strict=True):
            alike = self.log_sd == 0.0 or isinstance(kind, NoResponse)
            members += [kind] if alike else [kind.with_price(float(f)) for f in factors]
            own = np.ones(1) if alike else parts
            weights += ((1.0 - self.never) * share * own).tolist()
        return tuple(members), tuple(weights)

    @property
    def members(self) -> tuple[Response, ...]:
        """The population as plain responses, each with one price factor."""
        return self._discretised[0]

    @property
    def weights(self) -> tuple[float, ...]:
        """The shares of `members`, summing to one."""
        return self._discretised[1]

    @property
    def mean_factor(self) -> float:
        """The mean of the log-normal factor on the cost of those who may move."""
        return math.exp(0.5 * self.log_sd**2)

    def drawn(self, n: int, seed: int = 0) -> DrawnTypes:
        """Return the types of ``n`` people, by seed and row number; equal calls, equal types."""
        rows = np.arange(n) if self._rows is None else self._rows
        if len(rows) != n:
            raise ParameterError(
                f"this is the population of {len(rows)} rows (of_rows), but {n} people were given"
            )
        level = (row_uniforms(seed, "kind of people", rows) - self.never) / (1.0 - self.never)
        edges = np.cumsum(self.shares)[:-1]
        kind = np.where(level < 0.0, -1, np.searchsorted(edges, level, side="right"))
        price, factor = row_uniforms(seed, "price of people", rows), np.ones(n)
        factors, parts = price_nodes(self.log_sd, self.nodes)
        for number, response in enumerate(self.kinds):
            here = kind == number
            if self.log_sd == 0.0 or isinstance(response, NoResponse):
                continue
            if response.priced_by_person:
                factor[here] = np.exp(self.log_sd * ndtri(price[here]))
            else:
                factor[here] = factors[np.searchsorted(np.cumsum(parts)[:-1], price[here])]
        return DrawnTypes(kind, factor)

    def with_seed(self, seed: int) -> Self:
        """Return the same people with types drawn by another seed than 0."""
        other = copy.copy(self)
        other.seed = seed
        return other

    def respond(self, score: Score, X: Any, on_failure: OnFailure = "raise") -> Responses[Any]:
        """Return where people move to, each of the type drawn for their row."""
        tensor, rows = isinstance(X, Tensor), checked_rows(X, score)
        found = NoResponse().respond(score, X if tensor else torch.from_numpy(rows))
        x_new, cost, moved, converged = found.x_new, found.cost, found.moved, found.converged
        for people, who in self._parts(len(rows)):
            where = torch.from_numpy(who)
            part = people.respond(score, X[where] if tensor else rows[who], on_failure)
            x_new = x_new.index_copy(0, where, torch.as_tensor(part.x_new))
            cost = cost.index_copy(0, where, torch.as_tensor(part.cost))
            moved[where], converged[where] = (
                torch.as_tensor(flags) for flags in (part.moved, part.converged)
            )
        return Responses.like(X, x_new, cost, moved, converged)

    def scores_after(self, score: Score, X: Tensor) -> Tensor:
        """Refuse: training joins the losses of `members`, not their scores."""
        raise ParameterError(
            "people of a population end at different scores; training joins the losses of its "
            "members by their weights, chance_after gives the probability of approval"
        )

    def decisions_after(self, score: Score, X: Any) -> Mask:
        """Return who is favoured after the response, each of the type drawn for their row."""
        rows = checked_rows(X, score)
        decided = NoResponse().decisions_after(score, rows)
        for people, part in self._parts(len(rows)):
            decided[part] = people.decisions_after(score, rows[part])
        return decided

    def chance_after(self, score: Score, X: Any) -> Floats:
        """Return the probability of the favourable decision over the types, shape (n,)."""
        rows = checked_rows(X, score)
        chance = self.never * NoResponse().chance_after(score, rows)
        for kind, share in zip(self.kinds, self.shares, strict=True):
            chance += (1.0 - self.never) * share * chance_of(kind, self.log_sd, score, rows)
        return chance

    def answers(self, score: Score) -> bool:
        """Return whether all kinds of people can respond to such a score."""
        return all(kind.answers(score) for kind in self.kinds)

    def expected_cost(self, score: Score, X: Any) -> Floats:
        """Return what people pay on average over the types, shape (n,)."""
        rows, cost = checked_rows(X, score), np.zeros(len(X))
        for kind, share in zip(self.kinds, self.shares, strict=True):
            cost += (1.0 - self.never) * share * cost_of(kind, self.log_sd, score, rows)
        return cost

    def of_rows(self, rows: Any) -> Self:
        """Return the population of the people in ``rows``: their types stay theirs."""
        chosen = np.asarray(rows)
        chosen = np.flatnonzero(chosen) if chosen.dtype == bool else chosen.astype(np.intp)
        other = self._of_kinds([kind.of_rows(chosen) for kind in self.kinds])
        other._rows = chosen if self._rows is None else self._rows[chosen]
        return other

    def for_people(self, X: ArrayLike) -> Self:
        """Return the population of these people: nobody moves a cell that they lack."""
        return self._of_kinds([kind.for_people(X) for kind in self.kinds])

    def with_windows(self, X: Floats, windows: pd.DataFrame | None) -> Self:
        """Return the population of people whose histories are known month by month."""
        return self._of_kinds([kind.with_windows(X, windows) for kind in self.kinds])

    def relaxed(self) -> Self:
        """Return the same people, whose responses relax relations and histories."""
        return self._of_kinds([kind.relaxed() for kind in self.kinds])

    def with_cost(self, cost: Cost) -> Self:
        """Return the same people, the median cost of every kind being ``cost``."""
        return self._of_kinds([kind.with_cost(cost) for kind in self.kinds])

    def after_standardising(self, mean: ArrayLike, scale: ArrayLike) -> Self:
        """Return the same people as standardised rows, every kind of them."""
        return self._of_kinds([kind.after_standardising(mean, scale) for kind in self.kinds])

    def with_price(self, factor: float) -> Self:
        """Return the same people if every move cost ``factor`` > 0 times as much."""
        return self._of_kinds([kind.with_price(factor) for kind in self.kinds])

    def with_log_price(self, log_price: ArrayLike | None) -> Self:
        """Return the same people with prices that depend on where they stand."""
        other = self._of_kinds([kind.with_log_price(log_price) for kind in self.kinds])
        other.log_price = other.kinds[0].log_price
        return other

    def describe(self) -> dict[str, Any]:
        """Return kinds, shares and prices, JSON-ready; `response_from_description` reads it."""
        kinds = [kind.with_log_price(None).describe() for kind in self.kinds]
        drawn = {"seed": self.seed} if self.seed else {}
        return (
            super().describe()
            | drawn
            | {
                "kinds": kinds,
                "shares": list(self.shares),
                "never": self.never,
                "log_sd": self.log_sd,
                "nodes": self.nodes,
            }
        )

    def _of_kinds(self, kinds: Sequence[Response]) -> Self:
        other = copy.copy(self)
        other.kinds, other.cost, other.actions = tuple(kinds), kinds[0].cost, kinds[0].actions
        other._plans = {}
        return other

    def _parts(self, n: int) -> list[tuple[Response, Index]]:
        """Return everybody who may move as plain responses with the rows they are of."""
        types = self.drawn(n, self.seed)
        found: list[tuple[Response, Index]] = []
        for number, kind in enumerate(self.kinds):
            rows = np.flatnonzero(types.kind == number)
            factors = types.factor[rows]
            if not len(rows):
                continue
            if kind.priced_by_person or self.log_sd == 0.0:
                people = kind.of_rows(rows)
                found.append((people.with_factors(factors) if self.log_sd else people, rows))
                continue
            for factor in np.unique(factors):
                here = rows[factors == factor]
                found.append((kind.of_rows(here).with_price(float(factor)), here))
        return found


def _check_kinds(kinds: tuple[Response, ...]) -> None:
    if not kinds or not all(isinstance(kind, Response) for kind in kinds):
        raise ParameterError(f"a population needs at least one response, got {kinds!r}")
    for kind in kinds:
        if hasattr(kind, "members"):
            raise ParameterError(
                f"the kinds of a population are plain responses, got {type(kind).__name__}; the "
                "worst of several populations is RobustResponse([population, ...])"
            )


def _check_not_priced(kinds: tuple[Response, ...]) -> None:
    for kind in kinds:
        if kind.log_price is not None:
            raise ParameterError(
                "both the population and one of its kinds have a log_price; give one of them"
            )


def _checked_shares(shares: Sequence[float] | None, count: int) -> tuple[float, ...]:
    if shares is None:
        if count == 1:
            return (1.0,)
        raise ParameterError(
            f"{count} kinds of people need shares that sum to one; for the worst of several "
            "responses use RobustResponse(members)"
        )
    found = np.asarray(shares, dtype=np.float64)
    fine = found.shape == (count,) and np.isfinite(found).all() and (found >= 0.0).all()
    if not fine or abs(found.sum() - 1.0) > ROUNDING:
        raise ParameterError(
            f"{count} kinds of people need as many shares >= 0 that sum to one, got {shares!r}"
        )
    return tuple((found / found.sum()).tolist())


def _checked_number(name: str, value: float, wanted: str, below: float) -> float:
    number = isinstance(value, int | float | np.number) and not isinstance(value, bool)
    if not (number and 0.0 <= value < below):
        raise ParameterError(f"{name} is {wanted}, got {value!r}")
    return float(value)
