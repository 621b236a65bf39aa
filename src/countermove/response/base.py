"""The one interface of every response.

A response knows a cost, the allowed actions and a model of behaviour; given a
score and people it says where they move to, and what the rule then decides.
"""

from __future__ import annotations

import copy
import functools
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, Literal, Self, TypeVar

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Tensor

from countermove._types import Floats, Mask
from countermove.errors import DataError, NotConvergedError, ParameterError, shown
from countermove.people import ActionSet, Cost, QuadraticCost
from countermove.people.actions import checked_actions
from countermove.people.costs import checked_cost
from countermove.response.reduction import ActionPlan, Reduction, make_reduction
from countermove.scores import Score

if TYPE_CHECKING:
    import pandas as pd

    from countermove.response.response_set import ConfidenceSet

OnFailure = Literal["raise", "mask"]
Array = TypeVar("Array", Floats, Tensor, covariant=True)

GAIN = 2.0
"""What crossing is worth: the decision goes from -1 to +1."""


ANSWERS = (
    "respond", "scores_after", "decisions_after", "chance_after", "expected_cost", "crossing",
    "crossing_cost", "crossing_and_floor", "problem", "utility", "optimality_gap",
)  # fmt: skip
"""Methods of a response that are asked about a score and people at ``X``."""


def _of_these_people(method: Callable[..., Any]) -> Callable[..., Any]:
    """Return a method that answers for the people it is given: see `Response.for_people`."""

    @functools.wraps(method)
    def answer(self: Response, score: Score, X: Any, *more: Any, **options: Any) -> Any:
        if self.knows_missing:
            rows = X.detach().numpy() if isinstance(X, Tensor) else X
            self = self.for_people(rows)
        return method(self, score, X, *more, **options)

    return answer


@dataclass(frozen=True)
class Responses(Generic[Array]):
    """Where people move to.

    Parameters
    ----------
    x_new
        Features after the move, shape (n, d).
    cost
        What each person pays, shape (n,).
    moved
        Who moved at all, shape (n,).
    converged
        Whose response was found to tolerance, shape (n,).
    """

    x_new: Array
    cost: Array
    moved: Any
    converged: Any

    @staticmethod
    def like(
        X: Any, x_new: Tensor, cost: Tensor, moved: Tensor, converged: Tensor
    ) -> Responses[Any]:
        """Return tensors to whoever gave people as a tensor, else arrays."""
        parts = (x_new, cost, moved, converged)
        return Responses(*(parts if isinstance(X, Tensor) else (part.numpy() for part in parts)))


@dataclass(frozen=True)
class Crossing:
    """The cheapest way to a favourable decision."""

    cost: Tensor  # (n,), zero for the favourable and, without meaning, where not possible
    possible: Tensor  # whom some allowed move brings there (or who stands there), (n,)


class Response(ABC):
    r"""A model of how people respond to a published score.

    Parameters
    ----------
    cost
        What a move costs; ``QuadraticCost(1.0)`` by default.
    actions
        Which moves are allowed; all by default.

    Attributes
    ----------
    log_price
        None, or :math:`\gamma` of shape (d,): everybody's cost is also multiplied by
        :math:`\exp(\gamma\cdot x)` at the place where they stand (`with_log_price`).
    """

    name: str
    priced_by_person: bool = False
    """Whether everybody may have a price of their own; others have one cost for all."""
    falls_with_price: bool = False
    """Whether nobody refused at some price is approved at a higher one, provably."""
    costly: bool = False
    """Whether a response takes so long that searches should evaluate few of them."""
    exact_reach: bool = False
    """Whether ``scores_after`` moves with the intercept, one for one: what people can reach does
    not depend on it."""
    confidence: ConfidenceSet | None = None
    """What else these people may be, where they were estimated: promises hold over all of it."""

    def __init__(self, cost: Cost | None = None, actions: ActionSet | None = None) -> None:
        self.cost: Cost = checked_cost(cost) or QuadraticCost()
        self.actions: ActionSet = checked_actions(actions) or ActionSet()
        self.log_price: Floats | None = None
        self._factors: Floats | None = None
        self._plans: dict[tuple[int, tuple[int, ...]], ActionPlan] = {}

    def __copy__(self) -> Self:
        """Return another response of the same settings that shares what was compiled."""
        other = object.__new__(type(self))
        other.__dict__.update(self.__dict__)
        return other

    def __getstate__(self) -> dict[str, Any]:
        """Return what travels to another process: what was compiled is made again there."""
        return self.__dict__ | {"_plans": {}}

    def __init_subclass__(cls, **kwargs: Any) -> None:
        """Let every answer to people at ``X`` be that of people who may lack cells."""
        super().__init_subclass__(**kwargs)
        for name in ANSWERS:
            if name in cls.__dict__:
                setattr(cls, name, _of_these_people(cls.__dict__[name]))

    def plan(self, n_features: int, fixed: Sequence[int] = ()) -> ActionPlan:
        """Return what the actions say about so many features; made once.

        Relations move nothing along that is in ``fixed``: a score need not be affine there.
        """
        possible = self.actions.possible
        tied = possible is not None and possible.in_responses and not possible.only_ranges
        key = (n_features, tuple(fixed) if tied else ())
        if key not in self._plans:
            self._plans[key] = ActionPlan(self.actions.holding(key[1]), n_features)
        return self._plans[key]

    def reduction(self, score: Score, n_rows: int) -> Reduction:
        """Return what the solvers read of this response's cost and actions and of a score."""
        plan = self.plan(score.n_features, score.fixed)
        return make_reduction(score, self.cost, plan, n_rows)

    @abstractmethod
    def respond(self, score: Score, X: Any, on_failure: OnFailure = "raise") -> Responses[Any]:
        """Return where people move to.

        Parameters
        ----------
        score
            The published score.
        X
            People, shape (n, d). A NumPy array gives NumPy results; a tensor gives
            tensors that carry gradients to the score, to ``X`` and to the cost.
        on_failure
            ``"raise"`` a `NotConvergedError`, or ``"mask"`` the rows in ``converged``.
        """

    @abstractmethod
    def scores_after(self, score: Score, X: Tensor) -> Tensor:
        """Return the differentiable training signal, shape (n,): favourable iff >= 0."""

    def decisions_after(self, score: Score, X: Any) -> Mask:
        """Return who gets the favourable decision once people have moved, shape (n,)."""
        rows = checked_rows(X, score)
        with torch.no_grad():
            return (self.scores_after(score, torch.from_numpy(rows)) >= 0.0).numpy()

    def chance_after(self, score: Score, X: Any) -> Floats:
        """Return the probability of the favourable decision once people have moved, shape (n,).

        One behaviour leaves nothing to chance: the decision itself, as 0 or 1.
        """
        return self.decisions_after(score, X).astype(np.float64)

    def answers(self, score: Score) -> bool:
        """Return whether people can respond in this way to such a score."""
        return score.slope() is not None

    def refused_stay(self, score: Score, X: Floats) -> bool:
        """Return whether whoever is refused after the response is known not to have moved."""
        return False

    def expected_cost(self, score: Score, X: Any) -> Floats:
        """Return what people pay on average over the types they may be, shape (n,)."""
        cost: Floats = self.respond(score, checked_rows(X, score), on_failure="mask").cost
        return cost

    def worth(self, score: Score, after: Tensor) -> Tensor:
        """Return what a score brings in people's eyes, in [-1, 1]: here the decision itself.

        Together with the cost it is what people maximise; ``after`` are scores of shape (n,).
        """
        return torch.where(after >= 0.0, 1.0, -1.0).to(torch.float64)

    def for_epoch(self, epoch: int) -> Self:
        """Return the response of a training epoch counted from 0: the same, unless it says so."""
        return self

    def of_rows(self, rows: Any) -> Self:
        """Return the response of the people in ``rows``: what is per person follows them."""
        actions = self.actions.of_rows(rows)
        if actions is self.actions and self._factors is None:
            return self
        other = copy.copy(self)
        if actions is not self.actions:
            other.actions, other._plans = actions, {}
        if self._factors is not None:
            other._factors = self._factors[np.asarray(rows)]
        return other

    @property
    def knows_missing(self) -> bool:
        """Whether people may lack cells, which they then cannot move."""
        return bool(self.actions.missing)

    def for_people(self, X: ArrayLike) -> Self:
        """Return the response of these people, shape (n, d): nobody moves a cell that they lack."""
        return self._with_actions(self.actions.for_people(X))

    def with_windows(self, X: Floats, windows: pd.DataFrame | None) -> Self:
        """Return the response of people whose histories are known month by month.

        The same where responses relax histories; see `ActionSet.with_windows`. Row i of what is
        known then belongs to person i (`of_rows`).
        """
        possible = self.actions.possible
        if possible is None or not possible.in_responses:
            return self
        return self._with_actions(self.actions.with_windows(X, windows))

    def relaxed(self) -> Self:
        """Return the same people, whose responses relax relations, histories and usual ranges."""
        return self._with_actions(self.actions.obeyed_in_responses(False))

    def _with_actions(self, actions: ActionSet) -> Self:
        if actions is self.actions:
            return self
        other = copy.copy(self)
        other.actions, other._plans = actions, {}
        return other

    def with_cost(self, cost: Cost) -> Self:
        """Return the same behaviour of people for whom a move costs ``cost``."""
        other = copy.copy(self)
        other.cost = cost
        return other

    def after_standardising(self, mean: ArrayLike, scale: ArrayLike) -> Self:
        """Return the same people as rows ``(x - mean) / scale``, for a caller who holds ``x``.

        Cost and actions are converted where they are not per standard deviation.
        """
        other = copy.copy(self.with_cost(self.cost.standardised(mean, scale)))
        other.actions, other._plans = self.actions.after_standardising(mean, scale), {}
        return other

    def with_price(self, factor: float) -> Self:
        """Return the same people if every move cost ``factor`` > 0 times as much."""
        return self.with_cost(self.cost.times(factor))

    def with_log_price(self, log_price: ArrayLike | None) -> Self:
        r"""Return the same behaviour of people whose price depends on where they stand.

        Parameters
        ----------
        log_price
            :math:`\gamma`, shape (d,), standardised units: the cost of the person at
            :math:`x` is multiplied by :math:`\exp(\gamma\cdot x)`. Not zero only for features
            that cannot move. None: everybody pays the same.
        """
        other = copy.copy(self)
        other.log_price = None if log_price is None else checked_log_price(self, log_price)
        return other

    def with_factors(self, factors: Floats | None) -> Self:
        """Return the same people, the cost of person i multiplied by ``factors[i]`` besides."""
        other = copy.copy(self)
        other._factors = factors
        return other

    def prices(self, X: Tensor) -> Tensor | None:
        """Return the factors on everybody's cost, shape (n,); None where all pay the same."""
        if self.log_price is None and self._factors is None:
            return None
        found = torch.ones(len(X), dtype=torch.float64)
        if self.log_price is not None:
            if len(self.log_price) != X.shape[1]:
                raise ParameterError(
                    f"log_price has {len(self.log_price)} coefficients but the people have "
                    f"{X.shape[1]} features"
                )
            # Column by column: nobody's price depends on who else is in the batch.
            exponents = torch.zeros(len(X), dtype=torch.float64)
            for j in np.flatnonzero(self.log_price):
                exponents = exponents + float(self.log_price[j]) * X[:, j]
            found = torch.exp(exponents)
        if self._factors is None:
            return found
        if len(self._factors) != len(X):
            raise ParameterError(
                f"prices of {len(self._factors)} people were given, but {len(X)} people respond; "
                "take the same rows of both (of_rows)"
            )
        return found * torch.from_numpy(self._factors)

    def describe(self) -> dict[str, Any]:
        """Return the name, cost, actions and, where there is one, the log-price; JSON-ready."""
        said = {
            "kind": self.name,
            "cost": self.cost.describe(),
            "actions": self.actions.describe(),
        }
        return said if self.log_price is None else said | {"log_price": self.log_price.tolist()}


class NoResponse(Response):
    """Nobody moves."""

    name = "none"
    exact_reach = True
    priced_by_person = True

    def answers(self, score: Score) -> bool:
        """Return True: staying needs nothing of a score."""
        return True

    def respond(self, score: Score, X: Any, on_failure: OnFailure = "raise") -> Responses[Any]:
        """Return everybody where they stand."""
        checked_rows(X, score)
        n = len(X)
        if isinstance(X, Tensor):
            still = torch.zeros(n, dtype=torch.bool)
            return Responses(X, torch.zeros(n, dtype=torch.float64), still, ~still)
        stay = np.zeros(n, dtype=bool)
        return Responses(np.array(X, dtype=np.float64), np.zeros(n), stay, ~stay)

    def scores_after(self, score: Score, X: Tensor) -> Tensor:
        """Return the scores as they are."""
        result: Tensor = score(X)
        return result


def checked_log_price(response: Response, log_price: ArrayLike) -> Floats:
    """Return the coefficients after checking them against what a response lets move."""
    found = np.array(log_price, dtype=np.float64)
    if found.ndim != 1 or not np.isfinite(found).all():
        raise ParameterError(
            "log_price is one finite coefficient per feature, shape (d,), got "
            f"{found.tolist() if found.ndim == 1 else f'shape {found.shape}'}"
        )
    if not response.priced_by_person:
        raise ParameterError(
            f"a response of kind {response.name!r} has one cost for everybody; prices that depend "
            "on where people stand need BestResponse or ScalarResponse"
        )
    moving = np.flatnonzero((found != 0.0) & response.plan(len(found)).moving)
    if moving.size and not isinstance(response, NoResponse):
        raise ParameterError(
            f"log_price is not zero for features {shown(moving)}, which people can move: a price "
            "may only depend on what stays. List them as immutable (or in a one-hot group), or "
            "set their coefficients to zero"
        )
    return found


def checked_rows(X: Any, score: Score) -> Floats:
    """Return the rows as a contiguous float64 array after checking their shape."""
    rows = X.detach().numpy() if isinstance(X, Tensor) else np.asarray(X)
    if rows.ndim != 2 or rows.shape[1] != score.n_features:
        raise DataError(
            f"the score reads {score.n_features} features per person; "
            f"expected shape (n, {score.n_features}), got {rows.shape}"
        )
    if rows.dtype.kind not in "fiub":
        raise DataError(f"people are described by numbers, got dtype {rows.dtype}")
    return np.ascontiguousarray(rows, dtype=np.float64)


def check_converged(converged: Mask, on_failure: OnFailure) -> None:
    """Raise with the rows whose solve stopped early, unless the caller reads the mask."""
    if on_failure not in ("raise", "mask"):
        raise ParameterError(f"on_failure is 'raise' or 'mask', got {on_failure!r}")
    if on_failure == "raise" and not converged.all():
        failed = np.flatnonzero(~converged)
        raise NotConvergedError(
            f"the response of the people in rows {shown(failed)} stopped before its tolerance; "
            "loosen it, raise the cap or pass on_failure='mask'",
            rows=failed,
        )
