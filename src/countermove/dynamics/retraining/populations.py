r"""Populations: the crowd that a deployed model meets, :math:`D(\theta)`.

People respond to the deployed model, or think ahead: level k responds to the model that a
population of level k - 1 would bring.

.. math:: \theta^{(0)} = \theta, \quad \theta^{(k)} = A(D_k(\theta)), \quad
          D_k(\theta) = \text{everybody's response to } \theta^{(k-1)}, \quad
          D(\theta) = \sum_k \alpha_k D_k(\theta)
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from countermove._types import Floats, Mask
from countermove.dynamics.crowd import Crowd, checked_shares, mixture
from countermove.dynamics.learners import Learner
from countermove.errors import DataError, ParameterError, shown
from countermove.response.base import Response
from countermove.scores import Score


class PerformativePopulation(ABC):
    """People who may respond to the model a learner deploys."""

    base: Crowd
    """Who they are while no model is deployed."""

    @abstractmethod
    def answer(self, theta: Floats, learner: Learner) -> Crowd:
        """Return the crowd once everybody has responded to the learner's model ``theta``."""

    @property
    def first_level(self) -> PerformativePopulation:
        """The same people if each took the deployed model as it is: these, unless it says so."""
        return self

    def promised_rate(self, first: float) -> float:
        """Return the contraction per round, given that of `first_level`."""
        return first


@dataclass(frozen=True, eq=False)
class RespondingPopulation(PerformativePopulation):
    """Everybody, or some of them, responds to the deployed model in one way; labels are kept.

    Parameters
    ----------
    base
        Who they are while no model is deployed.
    response
        How a person responds to a score.
    who
        Who responds at all, shape (n,); None means everybody.
    """

    base: Crowd
    response: Response
    who: Mask | None = None

    def __post_init__(self) -> None:
        if self.who is not None and np.shape(self.who) != (self.base.n,):
            raise DataError(
                f"who responds is one truth value per person, shape ({self.base.n},); "
                f"got {np.shape(self.who)}"
            )
        if self.who is not None and not np.any(self.who):
            raise ParameterError(
                "nobody responds: who responds is false for everybody, and retraining on people "
                "who stay says nothing; choose some"
            )

    def answer(self, theta: Floats, learner: Learner) -> Crowd:
        """Return everybody where the response takes them."""
        return self.base.moved(self.places(learner.score(theta)))

    def places(self, score: Score, rows: NDArray[np.intp] | None = None) -> Floats:
        """Return where everybody, or some, end up in response to a score."""
        people = self.base.X if rows is None else self.base.X[rows]
        if self.who is None:
            chosen = self.response if rows is None else self.response.of_rows(rows)
            return np.asarray(chosen.respond(score, people).x_new)
        among = np.arange(self.base.n) if rows is None else rows
        movers = np.flatnonzero(np.asarray(self.who)[among])
        X = people.copy()
        if movers.size:
            chosen = self.response.of_rows(among[movers])
            X[movers] = chosen.respond(score, people[movers]).x_new
        return X


Levels = NDArray[np.int64]
Shares = Mapping[int, float] | Sequence[float]

REMEMBERED = 4
"""Deployed models whose chain of hypothetical ones is kept."""


@dataclass(frozen=True, eq=False)
class _Chain:
    """The models that levels 1 … K respond to, and everybody's place at levels 1 … K - 1."""

    scores: list[Score]
    places: list[Floats]


@dataclass(frozen=True, eq=False)
class LevelKPopulation(PerformativePopulation):
    r"""A mixture of people who think k = 0 … K steps ahead (Section 3 of the look-ahead paper).

    >>> import numpy as np
    >>> from countermove.dynamics import Crowd, LevelKPopulation
    >>> from countermove.people import QuadraticCost
    >>> from countermove.response import GainResponse
    >>> X = np.random.default_rng(0).normal(size=(100, 2))
    >>> gaming = GainResponse(QuadraticCost(2.0))
    >>> LevelKPopulation(Crowd(X, X[:, 0] > 0.0), gaming, {1: 0.5, 2: 0.5}).shares
    array([0. , 0.5, 0.5])

    Level 0 does not move. Level 1 responds to the deployed model. Level k responds to the model
    that the learner would fit if everybody else were of level k - 1.

    Parameters
    ----------
    base
        Who they are while no model is deployed.
    response
        How a person responds to a score, at every level from 1 on.
    shares
        :math:`\alpha_k`, adding up to 1: by level (``{1: 0.9, 2: 0.1}``), or a sequence that
        starts with level 0.
    who
        Who responds at all, shape (n,); the others stay whatever they think. None: everybody.
    levels
        Everybody's own level, shape (n,): the paper's random disjoint groups (see `drawn`).
        None: everybody counts at every level with its share, exactly and without a draw.
    believed_learner
        The learner people think of when they look ahead; None: the one that trains. Another
        penalty or another kind makes them misinformed.
    believed_rows
        The rows they imagine the learner to see; None: all of ``base``. A sample makes their
        foresight an estimate.

    Notes
    -----
    **Theorem 3.** If the learner's risk is :math:`\gamma`-strongly convex, its gradient
    :math:`\beta`-Lipschitz in the data, :math:`D_1` :math:`\epsilon`-sensitive and
    :math:`\epsilon\beta < \gamma`, retraining contracts by
    :math:`\sum_k \alpha_k (\epsilon\beta/\gamma)^k` a round. **Corollary 1.** The stable model is
    the same for all shares with :math:`\alpha_0 = 0` (and right beliefs); people of level 0 move
    it, and so do wrong beliefs of anybody of level 2 or more.
    """

    base: Crowd
    response: Response
    shares: Shares
    who: Mask | None = None
    levels: Levels | None = None
    believed_learner: Learner | None = None
    believed_rows: NDArray[np.intp] | None = None
    _chains: dict[Any, _Chain] = field(default_factory=dict, init=False, repr=False)
    _level_1: RespondingPopulation = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "shares", _by_level(self.shares))
        if self.who is not None:
            object.__setattr__(self, "who", np.asarray(self.who, dtype=np.bool_))
        object.__setattr__(
            self, "_level_1", RespondingPopulation(self.base, self.response, self.who)
        )
        if self.believed_rows is not None:
            rows = _checked_rows(self.believed_rows, self.base.n)
            object.__setattr__(self, "believed_rows", rows)
        if self.levels is not None:
            object.__setattr__(self, "levels", _checked_levels(self.levels, self.base.n, self.top))

    @classmethod
    def drawn(
        cls,
        base: Crowd,
        response: Response,
        shares: Shares,
        rng: np.random.Generator,
        **settings: Any,
    ) -> Self:
        """Return a population in which everybody has one level, drawn as the paper does.

        Groups are disjoint and of the sizes the shares say, rounded down at every boundary.
        """
        alpha = _by_level(shares)
        edges = np.floor(np.cumsum(alpha) * base.n + 1e-9).astype(np.int64)
        levels = np.empty(base.n, dtype=np.int64)
        # Position in a random order decides the level.
        levels[rng.permutation(base.n)] = np.searchsorted(edges, np.arange(base.n), side="right")
        return cls(base, response, shares, levels=np.minimum(levels, len(alpha) - 1), **settings)

    @property
    def top(self) -> int:
        """The highest level anybody thinks at."""
        return len(self.shares) - 1

    def answer(self, theta: Floats, learner: Learner) -> Crowd:
        """Return everybody where their level takes them."""
        chain = self._chain(theta, learner)
        if self.levels is None:
            present = [k for k, share in enumerate(self.shares) if share]
            answers = [self.base.moved(self._level(k, chain)) for k in present]
            return mixture(answers, [float(self.shares[k]) for k in present])
        # Everybody starts where the most common level takes them; the others are then corrected.
        common = int(np.argmax(np.bincount(self.levels)))
        X = self._level(common, chain).copy()
        for k in range(self.top + 1):
            rows = np.flatnonzero(self.levels == k)
            if k != common and rows.size:
                X[rows] = self._level(k, chain, rows)
        return self.base.moved(X)

    def foreseen(self, theta: Floats, learner: Learner) -> list[Score]:
        """Return the models that levels 1 … K respond to: the deployed one, then hypothetical ones.

        Each hypothetical model is fitted once per deployed model, and kept for the next ask.
        """
        return self._chain(theta, learner).scores

    @property
    def first_level(self) -> PerformativePopulation:
        """The same people, each taking the deployed model as it is."""
        return self._level_1

    def promised_rate(self, first: float) -> float:
        r"""Return Theorem 3's :math:`\sum_{k \ge 1} \alpha_k c^k` for the rate c of level 1."""
        return level_k_rate(self.shares, first)

    def _chain(self, theta: Floats, learner: Learner) -> _Chain:
        key = (np.asarray(theta).tobytes(), learner)
        if key not in self._chains:
            while len(self._chains) >= REMEMBERED:
                self._chains.pop(next(iter(self._chains)))
            self._chains[key] = self._look_ahead(theta, learner)
        return self._chains[key]

    def _look_ahead(self, theta: Floats, learner: Learner) -> _Chain:
        believed = learner if self.believed_learner is None else self.believed_learner
        rows = self.believed_rows
        imagined = self.base if rows is None else self.base.of_rows(rows)
        scores, start = [learner.score(theta)], theta if believed is learner else None
        places = []
        for _ in range(2, self.top + 1):
            places.append(self._level_1.places(scores[-1], rows))
            start = believed.fit(imagined.moved(places[-1]), start=start)
            scores.append(believed.score(start))
        return _Chain(scores, places if rows is None else [])

    def _level(self, k: int, chain: _Chain, rows: NDArray[np.intp] | None = None) -> Floats:
        """Return where level k takes everybody, or some; what was looked ahead is kept."""
        if k <= len(chain.places):
            known = chain.places[k - 1] if k else self.base.X
            return known if rows is None else known[rows]
        return self._level_1.places(chain.scores[k - 1], rows)


def level_k_rate(shares: Shares, first: float) -> float:
    r"""Return :math:`\sum_{k \ge 1} \alpha_k c^k`, Theorem 3's rate; level 0 adds nothing."""
    # With the sign of c (negative where retraining alternates) its absolute value is the local
    # rate.
    alpha = _by_level(shares)
    if not np.isfinite(first):
        return float("inf") if alpha[1:].any() else 0.0
    return float(alpha[1:] @ first ** np.arange(1.0, len(alpha)))


def _by_level(shares: Shares) -> Floats:
    """Return the shares as an array that starts with level 0."""
    if isinstance(shares, Mapping):
        wrong = [level for level in shares if int(level) != level or level < 0]
        if wrong or not shares:
            raise ParameterError(f"levels are whole numbers >= 0, got {list(shares)}")
        listed = np.zeros(int(max(shares)) + 1)
        listed[[int(level) for level in shares]] = list(shares.values())
        return checked_shares(listed.tolist())
    return checked_shares(shares)


def _checked_levels(levels: Any, n: int, top: int) -> Levels:
    found = np.asarray(levels)
    if found.shape != (n,):
        raise DataError(f"levels are one whole number per person, shape ({n},); got {found.shape}")
    wrong = np.flatnonzero((found != np.floor(found)) | (found < 0) | (found > top))
    if wrong.size:
        raise DataError(
            f"levels are whole numbers from 0 to {top}, the highest with a share; not so in rows "
            f"{shown(wrong)}",
            rows=wrong,
        )
    return found.astype(np.int64)


def _checked_rows(rows: Any, n: int) -> NDArray[np.intp]:
    try:
        found: NDArray[np.intp] = np.arange(n)[np.asarray(rows)]
    except IndexError as error:
        raise DataError(f"the rows people imagine are positions below {n}: {error}") from error
    if found.ndim != 1 or not found.size:
        raise DataError("the rows people imagine are a list of at least one position")
    return found
