"""Some members move, the others are held: the same utility, the same slopes."""

import numpy as np
from sklearn.datasets import load_iris

from countermove.dynamics.collective.balls import Ball
from countermove.dynamics.collective.bilevel import Bilevel
from countermove.dynamics.collective.moves import Moves
from countermove.dynamics.collective.spaces import PartialMoves
from countermove.dynamics.collective.utilities import QueryUtility, goals_of
from countermove.dynamics.crowd import Crowd
from countermove.dynamics.learners.centroids import CentroidLearner

X, Y = load_iris(return_X_y=True)


def test_a_part_is_the_whole_with_the_rest_held():
    learner, rng = CentroidLearner((0.0, 1.0, 2.0)), np.random.default_rng(0)
    space = Moves(Crowd(X, Y), ball=Ball(0.5), cost_rate=0.1)
    utility = QueryUtility(goals_of(learner), X[100:101], np.array([1.0]), np.ones(1))
    whole = Bilevel(space, utility, learner)
    held, rows = space.drawn(rng), np.array([3, 60, 149])
    part = Bilevel(PartialMoves(space, held, rows), utility, learner)
    one, other = whole.at(held), part.at(part.space.stay())
    assert one.value == other.value
    assert np.allclose(whole.gradient(one)[rows], part.gradient(other))
    moved = part.maximise(strict=False).eta
    after = part.space.whole(moved)
    assert whole.at(after).value > one.value
    untouched = np.delete(np.arange(150), rows)
    assert np.array_equal(after[untouched], held[untouched])
    assert (Ball(0.5).size(after) <= 0.5 + 1e-9).all()
