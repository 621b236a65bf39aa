r"""Looking ahead with the wrong learner: the paper's open question, made runnable.

.. math:: \mathrm{regret} = U(h^\sharp) - U(\hat h^\sharp), \qquad
          \hat h^\sharp = \arg\max_h \hat U(h)

:math:`\hat U` is the utility on a believed platform: another learner, another penalty,
or the true learner known only through a sample of the people.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from countermove._types import Index
from countermove.dynamics.bilevel import Bilevel, Solution
from countermove.dynamics.crowd import Crowd
from countermove.dynamics.moves import Moves
from countermove.errors import ParameterError
from countermove.randomness import generator


@dataclass(frozen=True, eq=False)
class Misjudgement:
    """A strategy made for a believed platform, played on the true one.

    Parameters
    ----------
    believed
        The strategy, with the model and utility members expect.
    best
        The best strategy on the true platform.
    realised
        What the believed strategy is worth there.
    staying
        What it is worth there to do nothing.
    """

    believed: Solution
    best: Solution
    realised: float
    staying: float

    @property
    def promised(self) -> float:
        """What members expected."""
        return self.believed.value

    @property
    def regret(self) -> float:
        """What the misjudgement costs; 0 at a best strategy."""
        return self.best.value - self.realised

    @property
    def share_kept(self) -> float:
        """The share of the attainable gain that is kept; below 0 staying would have been better."""
        gain = self.best.value - self.staying
        return (self.realised - self.staying) / gain if gain > 0.0 else float("nan")


def misjudged(truth: Bilevel, belief: Bilevel, **options: Any) -> Misjudgement:
    """Optimise on the believed platform and play on the true one (see `Bilevel.maximise`)."""
    believed = belief.maximise(**options)
    realised = truth.at(believed.eta)
    best = max(
        (truth.maximise(**options), truth.maximise(start=believed.eta, **options)),
        key=lambda solution: solution.value,
    )
    staying = truth.at(truth.space.stay(), realised.theta).value
    return Misjudgement(believed, best, realised.value, staying)


def known_from_sample(space: Moves, size: int, seed: int) -> Moves:
    """Return the members' moves among the people they know.

    Members know themselves and a sample of the others; a uniform move can be planned from a
    sample of members and others alike. Both groups keep their share of everybody.
    """
    if size < 1:
        raise ParameterError(f"a sample holds at least one person, got {size}")
    rng, inside = generator(seed, "believed people"), space.rows
    outside = np.setdiff1d(np.arange(space.crowd.n), inside)
    if not outside.size and not space.uniform:
        raise ParameterError(
            "everybody is a member and makes a move of their own: nobody is left to be known "
            "from a sample; let the move be uniform, or let some stay outside"
        )
    kept = np.arange(len(inside))
    if space.uniform:
        kept = np.sort(rng.choice(kept, min(size, len(kept)), replace=False))
    known = np.sort(rng.choice(outside, min(size, len(outside)), replace=False))
    crowd = _weighed(space.crowd, (inside, inside[kept]), (outside, known))
    return replace(
        space,
        crowd=crowd,
        participants=np.arange(len(kept)),
        actions=None if space.actions is None else space.actions.of_rows(kept),
        ball=None if space.ball is None else space.ball.of_rows(kept),
    )


def _weighed(crowd: Crowd, *groups: tuple[Index, Index]) -> Crowd:
    """Let the known rows of each group stand for the whole group."""
    mass, rows = crowd.mass, np.concatenate([known for _, known in groups])
    weight = np.concatenate(
        [
            mass[known] * (mass[whole].sum() / mass[known].sum()) if len(known) else mass[known]
            for whole, known in groups
        ]
    )
    return Crowd(crowd.X[rows], crowd.y[rows], weight)
