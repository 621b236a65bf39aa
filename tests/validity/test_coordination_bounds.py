"""Bounds on the benefit of coordination hold in random games; the printed one does not."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

from countermove.dynamics.collective.bilevel import Bilevel
from countermove.dynamics.collective.coordination import coordination
from countermove.dynamics.collective.spaces import Mixing
from countermove.dynamics.collective.utilities import Utility
from countermove.dynamics.crowd import Crowd

from ..dynamics.mean_learner import MeanLearner

GAMES = 30


@dataclass(frozen=True)
class NearAnchors(Utility):
    """Members want the mean near two anchors, and to be near it."""

    anchors: np.ndarray

    def of_rows(self, theta, members, learner):
        return -((self.anchors - theta) ** 2).sum() - learner.losses(theta, members)

    def by_theta(self, theta, members, learner):
        return 2 * (self.anchors - theta).sum(axis=0) + 2 * (members.mean(members.X) - theta)

    def by_rows(self, theta, members, learner):
        return -2 * members.mass[:, None] * (members.X - theta), np.zeros(members.n)


@pytest.mark.validity
@pytest.mark.slow
def test_the_normalised_bounds_hold_in_random_games():
    """Theorem 6 with its distance, and Theorem 12: 0 violations; as printed Theorem 6 has some."""
    judged, printed = 0, 0
    for seed in range(GAMES):
        rng = np.random.default_rng(seed)
        answers = [Crowd(row[None], np.zeros(1)) for row in rng.normal(size=(4, 2))]
        game = Bilevel(Mixing(answers), NearAnchors(rng.normal(size=(2, 2))), MeanLearner())
        found = coordination(game, strict=False, tolerance=1e-8, max_steps=200)
        if not found.selfish.converged or found.theorem_6.kind != "bound":
            continue
        judged += 1
        slack = 1e-9 * (1.0 + abs(found.benefit))
        assert found.benefit >= -slack
        assert found.benefit <= found.theorem_6.value + slack
        assert found.benefit <= found.theorem_12.value + slack
        literal = found.alignment**2 / (2.0 * found.curvature) if found.distance else 0.0
        printed += found.benefit > literal + slack
    assert judged >= 0.8 * GAMES
    assert printed > 0
