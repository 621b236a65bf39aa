"""Bounds of shape (n, d) follow their people."""

import numpy as np
import pytest

from countermove.errors import ParameterError
from countermove.people import ActionSet
from countermove.people.per_person import check_people, people_listed

OWN = np.arange(12.0).reshape(4, 3)


def test_rows_are_picked_in_order_and_shared_bounds_stay():
    actions = ActionSet(lower=-OWN, upper=np.ones(3), immutable=[1])
    picked = actions.of_rows([2, 0])
    np.testing.assert_array_equal(picked.lower, -OWN[[2, 0]])
    np.testing.assert_array_equal(picked.upper, np.ones(3))
    assert picked.immutable == (1,)
    assert people_listed(actions) == 4
    assert people_listed(picked) == 2


def test_offsets_of_constraints_follow_too():
    actions = ActionSet(A=np.ones((1, 3)), b=np.arange(4.0)[:, None])
    np.testing.assert_array_equal(actions.of_rows([3, 3]).b, [[3.0], [3.0]])


@pytest.mark.parametrize("lower", [None, [-1.0, -1.0, -1.0], [[-1.0, -1.0, -1.0]]])
def test_shared_bounds_are_left_alone(lower):
    actions = ActionSet(lower=lower)
    assert actions.of_rows(np.arange(50)) is actions
    check_people(actions, 50, "people")


def test_strangers_are_refused():
    actions = ActionSet(max_value=OWN)
    with pytest.raises(ParameterError, match="rows 4"):
        actions.of_rows([0, 4])
    with pytest.raises(ParameterError, match=r"4 people but the people are 3 rows.*of_rows"):
        check_people(actions, 3, "the people")
    with pytest.raises(ParameterError, match="same people"):
        people_listed(ActionSet(lower=-OWN, A=np.ones((1, 3)), b=np.ones((2, 1))))
    with pytest.raises(ParameterError, match=r"4 people but 3 were given.*of_rows"):
        actions.bounds(3, 3)
