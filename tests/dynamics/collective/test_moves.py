"""The nearest point of two sets: a ball and a half-space by hand, and sets that do not meet."""

import numpy as np
import pytest

from countermove.dynamics.collective.balls import Ball
from countermove.dynamics.collective.moves import Moves, project_to_both
from countermove.dynamics.crowd import Crowd
from countermove.errors import NotConvergedError
from countermove.people import ActionSet


def test_a_ball_and_a_half_space():
    """Nearest to (2, 0) in the unit disc with x <= 1/2: the corner region's (1/2, 0)."""
    moves = Moves(
        Crowd(np.random.default_rng(0).normal(size=(3, 2)), np.zeros(3)),
        ball=Ball(1.0),
        actions=ActionSet(A=[[-1.0, 0.0]], b=[0.5]),
    )
    wanted = np.array([[2.0, 0.0], [2.0, 2.0], [0.1, 0.2]])
    found = moves.project(wanted)
    assert np.allclose(found[0], [0.5, 0.0], atol=1e-7)
    assert np.allclose(found[1], [0.5, np.sqrt(0.75)], atol=1e-7)
    assert np.allclose(found[2], wanted[2])


def test_the_nearest_of_many_drawn_points_is_not_nearer():
    rng = np.random.default_rng(1)
    normal = np.array([1.0, -2.0, 0.5])
    point = np.array([[2.0, -1.0, 1.5]])

    def half(a):
        return a - np.maximum(a @ normal - 0.3, 0.0)[:, None] * normal / (normal @ normal)

    found = project_to_both(point, half, Ball(1.0, 1.0).project)
    drawn = Ball(1.0, 1.0).project(rng.normal(size=(20_000, 3)))
    allowed = drawn[drawn @ normal <= 0.3]
    assert (found @ normal <= 0.3 + 1e-8).all()
    assert np.linalg.norm(found - point) <= np.linalg.norm(allowed - point, axis=1).min() + 1e-9


def test_sets_that_do_not_meet_are_refused(monkeypatch):
    monkeypatch.setattr("countermove.dynamics.collective.moves.SWEEPS", 50)
    with pytest.raises(NotConvergedError, match="barely intersect"):
        project_to_both(np.zeros((1, 1)), lambda a: a.clip(2.0, 3.0), lambda a: a.clip(-1.0, 1.0))
