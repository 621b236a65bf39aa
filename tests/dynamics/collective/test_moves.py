"""The nearest point of two sets: a ball and a half-space by hand, and sets that do not meet."""

import numpy as np
import pytest
from tests.response.test_possible import little_people
from tests.response.test_possible_programs import little_crowd

from countermove.dynamics.collective.balls import Ball
from countermove.dynamics.collective.moves import Moves, project_to_both
from countermove.dynamics.crowd import Crowd
from countermove.errors import NotConvergedError, ParameterError
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


@pytest.mark.parametrize("radius", [None, 0.8])
def test_members_who_can_exist_only_move_to_who_can_exist_in_the_nearest_way(radius):
    actions, X = little_people(), little_crowd()
    space = Moves(
        Crowd(X, np.zeros(len(X))),
        actions=actions,
        ball=None if radius is None else Ball(radius),
        cost_rate=1.0,
    )
    wanted = 2.0 * np.random.default_rng(5).normal(size=X.shape)
    found = space.project(wanted)
    assert actions._copy(integer=(), steps={}).contains(X, found, 1e-6).all()
    # Whoever stands on a premise's value stays on it, and the others on their side.
    assert ((X[:, 0] == 0.0) == (np.abs(X[:, 0] + found[:, 0]) < 1e-9)).all()
    fine = np.round(np.arange(-3.0, 3.005, 0.02), 2)
    places = np.stack(np.meshgrid(fine, fine, indexing="ij"), axis=-1).reshape(-1, 2)
    places = np.vstack([places, np.column_stack([np.zeros(601), np.linspace(-3.0, 3.0, 601)])])
    for x, move, point in zip(X, found, wanted, strict=True):
        side = np.where(np.abs(places[:, 0]) < 1.0, 0, np.sign(places[:, 0]))
        kept = (side == np.sign(x[0])) & (places[:, 0] <= places[:, 1])
        kept &= (np.abs(places[:, 0]) >= 1.0) | (places[:, 0] == 0.0)
        kept &= (places[:, 0] != 0.0) | (places[:, 1] <= 1.0)
        if radius is not None:
            kept &= np.linalg.norm(places - x, axis=1) <= radius
            assert np.linalg.norm(move) <= radius + 1e-9
        nearest = np.linalg.norm(places[kept] - x - point, axis=1).min(initial=np.inf)
        assert np.linalg.norm(move - point) <= nearest + 1e-6
    alone = Moves(Crowd(X, np.zeros(len(X))), actions=actions, columns=[1], cost_rate=1.0)
    only = np.column_stack([np.zeros(len(X)), alone.project(wanted[:, 1:])])
    assert actions.contains(X, only, 1e-6).all()
    with pytest.raises(ParameterError, match="relations between columns"):
        Moves(Crowd(X, np.zeros(len(X))), actions=actions, uniform=True, cost_rate=1.0)
