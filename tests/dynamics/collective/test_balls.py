"""Projections onto balls are nearest points."""

import numpy as np
import pytest

from countermove.dynamics.collective.balls import Ball, project_to_simplex
from countermove.errors import ParameterError

ORDERS = (1.0, 2.0, np.inf)


@pytest.mark.parametrize("p", ORDERS)
@pytest.mark.parametrize("prices", [None, np.array([0.5, 1.0, 3.0])], ids=["plain", "priced"])
@pytest.mark.parametrize("boxed", [False, True])
def test_a_projection_is_inside_and_nearest(p, prices, boxed):
    """The nearest point z of a convex set has (a - z).(w - z) <= 0 for every w in the set."""
    rng = np.random.default_rng(0)
    ball = Ball(rng.uniform(0.0, 2.0, 60), p, prices)
    points = 2.0 * rng.normal(size=(60, 3))
    box = (np.array([-0.2, -1.0, -np.inf]), np.array([0.3, np.inf, 0.1])) if boxed else (None, None)
    nearest = ball.project(points, *box)
    assert (ball.size(nearest) <= ball.radius * (1 + 1e-12)).all()
    if boxed:
        assert (nearest >= box[0]).all()
        assert (nearest <= box[1]).all()
    for _ in range(25):
        others = ball.project(2.0 * rng.normal(size=(60, 3)), *box)
        gap = ((points - nearest) * (others - nearest)).sum(axis=1)
        assert gap.max() <= 1e-10
    assert np.allclose(ball.project(nearest, *box), nearest, atol=1e-12)


def test_a_point_inside_stays_and_a_ball_of_no_size_holds_only_staying():
    points = np.array([[0.1, -0.2], [3.0, 4.0]])
    assert np.array_equal(Ball(1.0, 2.0).project(points)[0], points[0])
    assert np.allclose(Ball(1.0, 2.0).project(points)[1], [0.6, 0.8])
    assert np.allclose(Ball(1.0, 1.0).project(points)[1], [0.0, 1.0])
    for p in ORDERS:
        assert not Ball(0.0, p, np.array([1.0, 2.0])).project(points).any()


def test_balls_of_some_people():
    ball = Ball(np.array([1.0, 2.0, 3.0]), 1.0)
    assert np.array_equal(ball.of_rows([2, 0]).radius, [3.0, 1.0])


def test_the_simplex():
    assert np.allclose(project_to_simplex(np.array([0.2, 0.3, 0.5])), [0.2, 0.3, 0.5])
    assert np.allclose(project_to_simplex(np.array([2.0, 0.0, -1.0])), [1.0, 0.0, 0.0])
    assert np.allclose(project_to_simplex(np.array([0.6, 0.6])), [0.5, 0.5])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"radius": -1.0}, ">= 0"),
        ({"radius": np.array([1.0, np.nan])}, ">= 0"),
        ({"radius": 1.0, "p": 3.0}, "p = 1, 2 or infinity"),
        ({"radius": 1.0, "prices": np.array([1.0, 0.0])}, "numbers > 0"),
    ],
)
def test_balls_that_make_no_sense(arguments, message):
    with pytest.raises(ParameterError, match=message):
        Ball(**arguments)


def test_shapes_that_do_not_fit():
    with pytest.raises(ParameterError, match="2 radii were given for 3 people"):
        Ball(np.ones(2)).project(np.ones((3, 2)))
    with pytest.raises(ParameterError, match="must hold 0"):
        Ball(1.0).project(np.ones((3, 2)), lower=np.array([0.5, 0.0]))
