"""Actions held to a limit keep everything else they say."""

import numpy as np
import pytest

from countermove.errors import ParameterError
from countermove.people import ActionSet
from countermove.people.narrowed import narrowed

PEOPLE = np.array([[0.0, 0.2, 3.0], [1.0, -0.5, 0.0]])


def test_the_tighter_bound_wins():
    wide = ActionSet(
        lower=[-0.2, -9.0, -9.0], only_increase=[1], immutable=[2], max_value=[1.1] * 3
    )
    people = np.minimum(PEOPLE, 1.0)
    low, high = narrowed(wide, 0.75, 3).box(people)
    before = wide.box(people)
    assert np.array_equal(low, np.maximum(before[0], -0.75))
    assert np.array_equal(high, np.minimum(before[1], 0.75))


def test_units_constraints_and_per_person_bounds_stay():
    own = ActionSet(upper=[[2.0, 2.0, 0.1], [2.0, 0.2, 2.0]], A=np.eye(3)[:1], b=[0.1], integer=[1])
    scaled = own.rescaled(np.array([2.0, 1.0, 1.0]), np.zeros(3))
    held = narrowed(scaled, 0.5, 3)
    assert np.array_equal(held.unit, scaled.unit)
    assert np.array_equal(held.A, scaled.A)
    assert held.integer == (1,)
    assert held.box(PEOPLE)[1].tolist() == [[0.5, 0.5, 0.1], [0.5, 0.2, 0.5]]


def test_no_limit_changes_nothing_and_nonsense_is_refused():
    free = ActionSet()
    assert narrowed(free, None, 3) is free
    for limit in (0.0, -1.0, float("nan")):
        with pytest.raises(ParameterError, match="largest_action is positive"):
            narrowed(free, limit, 3)
