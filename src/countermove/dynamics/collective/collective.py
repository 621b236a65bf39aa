"""People who act together: who takes part, what they want, what they may change.

The front of the bilevel engine. Everything is about one retraining (or one stable point,
beside a selfish rest) of a platform that the members foresee.
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from countermove._types import Floats
from countermove.dynamics.collective.bilevel import Bilevel, Platform, Point, Solution
from countermove.dynamics.collective.coordination import (
    Coordination,
    Misjudgement,
    Scaling,
    coordination,
    known_from_sample,
    misjudged,
    scaling,
)
from countermove.dynamics.collective.moves import (
    AllowedMoves,
    Moves,
    checked_participation,
    checked_rows,
)
from countermove.dynamics.collective.selfish import SelfishPoint, SelfishRest, selfish_point
from countermove.dynamics.collective.utilities import Utility
from countermove.dynamics.crowd import Crowd
from countermove.dynamics.learners import Learner
from countermove.dynamics.retraining.populations import PerformativePopulation
from countermove.errors import ParameterError


@dataclass(frozen=True, eq=False)
class Collective(AllowedMoves):
    r"""A collective on a learning platform.

    >>> import numpy as np
    >>> from countermove.dynamics import Collective, Crowd, LogisticLearner, LossUtility
    >>> X = np.random.default_rng(0).normal(size=(60, 2))
    >>> platform = LogisticLearner(penalty=0.1)
    >>> people = Crowd(X, X[:, 0] > 0.0)
    >>> members = Collective(people, LossUtility(), platform, cost_rate=1.0, participation=0.5)
    >>> members.eligible.n
    60

    .. math:: D^\alpha = D_{others} + m\,\bigl(\alpha D_h + (1-\alpha) D_0\bigr)

    with :math:`D_0` the people who could take part (a share m of everybody) and
    :math:`\alpha` the share of them who do. With everybody eligible this is the paper's (3);
    with a selfish rest, (4).

    Parameters
    ----------
    base
        Everybody, before anyone moves.
    utility
        What members want.
    learner
        The platform's.
    columns, labels, uniform, actions, ball, label_range, cost_rate, label_cost, allow_constant
        What members may change and what bounds or costs it: see `Moves`.
    participants
        Who could take part, as rows or a mask; None: everybody.
    participation
        The share of them who do, in (0, 1]. Shares are exact: each eligible person counts by
        this share as a member and by the remainder as itself. For a drawn subset give its rows
        as ``participants``.
    rest
        A population of everybody who does *not* take part, responding selfishly; None:
        they stay as they are.
    """

    base: Crowd
    utility: Utility
    learner: Learner
    _: KW_ONLY
    participants: Any = None
    participation: float = 1.0
    rest: PerformativePopulation | None = None
    space: Moves = field(init=False)
    problem: Bilevel = field(init=False)

    def __post_init__(self) -> None:
        share = checked_participation(self.participation)
        rows = checked_rows(self.participants, self.base)
        object.__setattr__(self, "participants", rows)
        platform: Platform | Learner = self.learner
        if self.rest is not None:
            platform = SelfishRest(self.learner, self.rest, share * self.eligible_share)
        object.__setattr__(self, "space", self._space())
        object.__setattr__(self, "problem", Bilevel(self.space, self.utility, platform))

    @cached_property
    def eligible(self) -> Crowd:
        """The people who could take part, as they are."""
        return self.base.of_rows(self.participants)

    @property
    def eligible_share(self) -> float:
        """Their share of everybody."""
        everybody = len(self.participants) == self.base.n
        return 1.0 if everybody else float(self.base.mass[self.participants].sum())

    def at(self, eta: Floats | None = None) -> Point:
        """Return what a strategy leads to; None: nobody moves."""
        return self.problem.at(self.space.stay() if eta is None else np.asarray(eta, np.float64))

    def optimal_strategy(self, **options: Any) -> Solution:
        r"""Return :math:`h^\sharp_\alpha`, best for this size (see `Bilevel.maximise`)."""
        return self.problem.maximise(**options)

    def selfish_strategy(self, **options: Any) -> SelfishPoint:
        r"""Return :math:`h^*`, where members rest who do not coordinate.

        Parameters
        ----------
        **options
            ``start``, ``tolerance``, ``max_steps`` (rounds of moving and refitting) and ``strict``
            as in `Bilevel.maximise`; ``stride``: how far a member moves at most before the learner
            refits, where many points are stable.
        """
        return selfish_point(self.problem, **options)

    def coordination(self, **options: Any) -> Coordination:
        """Return the benefit of coordination, the alignment and bounds (see `Bilevel.maximise`)."""
        return coordination(self.problem, **options)

    def scaling(self, eta: Floats | None = None) -> Scaling:
        """Return whether more participants would do a strategy good (Propositions 7 and 8)."""
        return scaling(self, self.at(eta))

    def of_size(self, participation: float) -> Collective:
        """Return the same collective with another share of the eligible people."""
        return replace(self, participation=participation)

    def facing(self, learner: Learner) -> Collective:
        """Return the same people before another learner."""
        return replace(self, learner=learner)

    def believed(
        self, learner: Learner | None = None, sample: int | None = None, seed: int = 0
    ) -> Bilevel:
        """Return the platform as members believe it to be.

        Parameters
        ----------
        learner
            The learner they expect; None: the true one.
        sample
            How many people they know: of those who stay outside, and, where all members make one
            move, of the members too. None: all.
        seed
            Of the sample.
        """
        space = self.space if sample is None else known_from_sample(self.space, sample, seed)
        platform = self.facing(learner).problem.platform if learner else self.problem.platform
        return Bilevel(space, self.utility, platform)

    def misjudged(
        self,
        learner: Learner | None = None,
        sample: int | None = None,
        seed: int = 0,
        **options: Any,
    ) -> Misjudgement:
        """Return what a strategy made for a believed platform is worth on the true one."""
        return misjudged(self.problem, self.believed(learner, sample, seed), **options)

    def rate(self, eta: Floats | None = None) -> float:
        r"""Return the contraction of retraining beside a selfish rest (Proposition 9).

        It is the spectral radius of the linearised retraining at the stable point; 0 without a
        selfish rest, where one retraining settles everything.
        """
        platform = self.problem.facing
        if not isinstance(platform, SelfishRest):
            return 0.0
        point = self.at(eta)
        return platform.linearised(point.theta, point.whole).radius

    def _space(self) -> Moves:
        crowd, members = self._crowd()
        return Moves(crowd, np.arange(members), **self.allowed())

    def _crowd(self) -> tuple[Crowd, int]:
        """Return everybody who responds to no model, members first, and the number of members."""
        rows, share, mass = self.participants, float(self.participation), self.base.mass
        if self.rest is not None:
            return self.eligible, len(rows)
        outside = np.setdiff1d(np.arange(self.base.n), rows)
        parts, masses = [rows, outside], [share * mass[rows], mass[outside]]
        if share < 1.0:
            parts.insert(1, rows)
            masses.insert(1, (1.0 - share) * mass[rows])
        order = np.concatenate(parts)
        if not np.concatenate(masses).sum() > 0.0:
            raise ParameterError("nobody counts; give some row a weight above 0")
        return Crowd(self.base.X[order], self.base.y[order], np.concatenate(masses)), len(rows)
