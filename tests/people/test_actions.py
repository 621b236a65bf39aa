"""Which moves are allowed: shapes, boxes, per-person bounds and limits."""

import numpy as np
import pytest

from countermove.errors import InfeasibleActionsError, ParameterError
from countermove.people import ActionSet

RNG = np.random.default_rng(0)


def test_bounds_on_action_and_place_meet_in_one_box():
    actions = ActionSet(
        lower=[-1.0, -1.0, -1.0, -1.0],
        upper=[2.0, 2.0, 2.0, 2.0],
        min_value=[-0.5, -9.0, -9.0, -9.0],
        max_value=[9.0, 1.0, 9.0, 9.0],
        only_increase=[2],
        immutable=[3],
    )
    lower, upper = actions.box(np.array([[0.0, 0.5, 0.0, 7.0]]))
    np.testing.assert_allclose(lower, [[-0.5, -1.0, 0.0, 0.0]])
    np.testing.assert_allclose(upper, [[2.0, 0.5, 2.0, 0.0]])


def test_everything_is_allowed_by_default():
    lower, upper = ActionSet().box(np.zeros((2, 3)))
    assert np.isneginf(lower).all()
    assert np.isposinf(upper).all()
    assert ActionSet().movable_among(3).all()
    with pytest.raises(ParameterError, match="movable_among"):
        _ = ActionSet().movable


def test_per_person_bounds_hold_per_person():
    actions = ActionSet(upper=np.array([[1.0, 2.0], [3.0, 4.0]]))
    _, upper = actions.box(np.zeros((2, 2)))
    np.testing.assert_array_equal(upper, [[1.0, 2.0], [3.0, 4.0]])
    with pytest.raises(ParameterError, match="2 people but 3"):
        actions.box(np.zeros((3, 2)))


def test_a_person_beyond_a_bound_has_to_come_back():
    lower, upper = ActionSet(max_value=[1.0]).box(np.array([[3.0]]))
    assert upper[0, 0] == -2.0
    assert np.isneginf(lower[0, 0])


def test_rounding_at_a_bound_is_no_reason_to_move():
    lower, _ = ActionSet(min_value=[0.1 + 0.2], only_increase=[0]).box(np.array([[0.3]]))
    assert lower[0, 0] == 0.0


@pytest.mark.parametrize(
    ("actions", "X", "rows"),
    [
        (ActionSet(min_value=[1.0], only_decrease=[0]), [[2.0], [0.0], [0.5]], (1, 2)),
        (ActionSet(max_value=[1.0], immutable=[0]), [[0.0], [2.0]], (1,)),
        (ActionSet(lower=[2.0], max_value=[1.0]), [[-3.0], [0.0]], (1,)),
    ],
)
def test_people_without_any_action_are_named(actions, X, rows):
    with pytest.raises(InfeasibleActionsError, match="not even staying") as caught:
        actions.box(np.array(X))
    assert caught.value.rows == rows


def test_contradictory_bounds_are_refused_at_once():
    with pytest.raises(InfeasibleActionsError, match="everybody"):
        ActionSet(lower=[1.0], upper=[0.0])
    with pytest.raises(InfeasibleActionsError, match="people 1") as caught:
        ActionSet(lower=[[0.0], [2.0]], upper=[[1.0], [1.0]])
    assert caught.value.rows == (1,)
    with pytest.raises(InfeasibleActionsError, match="immutable"):
        ActionSet(lower=[1.0], immutable=[0]).box(np.zeros((1, 1)))


@pytest.mark.parametrize(
    ("first", "second", "said"),
    [
        ({"lower": np.zeros((4, 3))}, {"upper": np.ones((2, 3))}, "number of people"),
        ({"lower": np.zeros((4, 3))}, {"min_value": np.zeros((5, 3))}, "number of people"),
        ({"lower": np.zeros((4, 3))}, {"upper": np.ones(2)}, "number of features"),
        ({"max_value": np.ones(3)}, {"A": np.ones((1, 2))}, "number of features"),
    ],
)
def test_bounds_of_different_shapes_are_named_with_both(first, second, said):
    with pytest.raises(ParameterError, match=said) as caught:
        ActionSet(**first, **second)
    for name, array in (first | second).items():
        assert f"{name} has shape {array.shape}" in str(caught.value)


def test_bounds_for_everybody_and_per_person_go_together():
    actions = ActionSet(lower=np.zeros((4, 3)), upper=np.ones(3), min_value=np.zeros((1, 3)))
    low, high = actions.box(np.full((4, 3), 0.5))
    assert low.shape == high.shape == (4, 3)


@pytest.mark.parametrize(
    "make",
    [
        lambda: ActionSet(lower=[np.nan]),
        lambda: ActionSet(lower=[[[0.0]]]),
        lambda: ActionSet(immutable=[-1]),
        lambda: ActionSet(immutable="age"),
        lambda: ActionSet(immutable=[1.5]),
        lambda: ActionSet(immutable=3),
        lambda: ActionSet(lower="low"),
        lambda: ActionSet(immutable=["age"]).box(np.zeros((1, 3))),
        lambda: ActionSet(b=[1.0]),
        lambda: ActionSet(A=[1.0, 2.0]),
        lambda: ActionSet(A=[[1.0]], b=[1.0, 2.0]),
        lambda: ActionSet(A=[[np.inf]]),
        lambda: ActionSet(lower=[0.0, 0.0]).box(np.zeros((1, 3))),
        lambda: ActionSet(immutable=[5]).box(np.zeros((1, 3))),
    ],
)
def test_malformed_descriptions_are_refused(make):
    with pytest.raises(ParameterError):
        make()


def test_contains_agrees_with_the_inequalities():
    actions = ActionSet(
        lower=[-1.0, -1.0, -2.0], max_value=[1.0, 2.0, 3.0], A=[[1.0, 1.0, 0.0]], b=[0.5]
    )
    X, action = RNG.normal(size=(500, 3)).clip(-1.0, 1.0), RNG.normal(size=(500, 3))
    G, h = actions.as_inequalities(X)
    expected = (action @ G.T + h >= 0.0).all(axis=1)
    assert expected.any()
    assert not expected.all()
    np.testing.assert_array_equal(actions.contains(X, action, tolerance=0.0), expected)


def test_contains_checks_whole_numbers_and_groups_in_original_units():
    original = ActionSet(integer=[0], groups=[(1, 2)])
    scale, mean = np.array([2.0, 0.5, 0.5]), np.array([10.0, 0.3, 0.7])
    actions = original.rescaled(scale, mean)
    X = (np.array([[12.0, 1.0, 0.0]]) - mean) / scale
    moves = {(3.0, -1.0, 1.0): True, (0.5, 0.0, 0.0): False, (0.0, -0.5, 0.5): False}
    moves |= {(0.0, 0.0, 1.0): False, (0.0, 0.0, 0.0): True}
    for move, allowed in moves.items():
        assert actions.contains(X, np.array([move]) / scale)[0] == allowed, move


def test_projection_is_the_nearest_allowed_action():
    actions = ActionSet(
        lower=[-1.0, -0.5, -1.0], upper=[1.0, 0.5, 0.2], A=[[1.0, 1.0, 1.0], [-1.0, 2.0, 0.0]],
        b=[0.1, 0.4],
    )  # fmt: skip
    X, wished = np.zeros((40, 3)), RNG.normal(size=(40, 3)) * 2.0
    nearest = actions.project(X, wished)
    assert actions.contains(X, nearest, tolerance=1e-9).all()
    others = RNG.uniform(-1.0, 1.0, size=(4000, 3))
    others = others[actions.contains(np.zeros((4000, 3)), others)]
    for i in range(40):
        distance = np.linalg.norm(nearest[i] - wished[i])
        assert distance <= np.linalg.norm(others - wished[i], axis=1).min() + 1e-9


def test_projection_without_constraints_clips_and_with_empty_ones_names_the_person():
    X = np.zeros((1, 2))
    np.testing.assert_array_equal(
        ActionSet(upper=[1.0, 1.0]).project(X, np.array([[2.0, 0.5]])), [[1.0, 0.5]]
    )
    impossible = ActionSet(upper=[1.0, 1.0], A=[[1.0, 0.0]], b=[-3.0])
    with pytest.raises(InfeasibleActionsError) as caught:
        impossible.project(X, np.zeros((1, 2)))
    assert caught.value.rows == (0,)


def test_rescaled_sets_allow_the_same_moves():
    original = ActionSet(
        lower=[-5.0, -1.0], max_value=[30.0, 2.0], only_increase=[1], A=[[1.0, -2.0]], b=[4.0]
    )
    scale, mean = np.array([10.0, 0.5]), np.array([20.0, 1.0])
    X, action = RNG.uniform([0, 0], [30, 2], size=(300, 2)), RNG.normal(size=(300, 2)) * [6, 1]
    np.testing.assert_array_equal(
        original.rescaled(scale, mean).contains((X - mean) / scale, action / scale),
        original.contains(X, action),
    )


def test_responses_hold_one_hot_groups_fixed():
    actions = ActionSet(groups=[(0, 1)], immutable=[2])
    assert actions.movable_among(4).tolist() == [True, True, False, True]
    assert actions.for_response().movable_among(4).tolist() == [False, False, False, True]


def test_a_description_rebuilds_the_set():
    actions = ActionSet(lower=[-1.0, 0.0], groups=[(0, 1)], integer=[1], A=[[1.0, 0.0]], b=[1.0])
    again = ActionSet(**actions.describe())
    assert again.describe() == actions.describe()
    assert "groups" in repr(again)


OWN = np.arange(12.0).reshape(4, 3)


def test_rows_are_picked_in_order_and_shared_bounds_stay():
    actions = ActionSet(lower=-OWN, upper=np.ones(3), immutable=[1])
    picked = actions.of_rows([2, 0])
    np.testing.assert_array_equal(picked.lower, -OWN[[2, 0]])
    np.testing.assert_array_equal(picked.upper, np.ones(3))
    assert picked.immutable == (1,)
    assert actions.n_people == 4
    assert picked.n_people == 2


def test_offsets_of_constraints_follow_too():
    actions = ActionSet(A=np.ones((1, 3)), b=np.arange(4.0)[:, None])
    np.testing.assert_array_equal(actions.of_rows([3, 3]).b, [[3.0], [3.0]])


@pytest.mark.parametrize("lower", [None, [-1.0, -1.0, -1.0], [[-1.0, -1.0, -1.0]]])
def test_shared_bounds_are_left_alone(lower):
    actions = ActionSet(lower=lower)
    assert actions.of_rows(np.arange(50)) is actions
    actions.check_people(50, "people")


def test_strangers_are_refused():
    actions = ActionSet(max_value=OWN)
    with pytest.raises(ParameterError, match="rows 4"):
        actions.of_rows([0, 4])
    with pytest.raises(ParameterError, match=r"4 people but the people are 3 rows.*of_rows"):
        actions.check_people(3, "the people")
    with pytest.raises(ParameterError, match="same people"):
        _ = ActionSet(lower=-OWN, A=np.ones((1, 3)), b=np.ones((2, 1))).n_people
    with pytest.raises(ParameterError, match=r"4 people but 3 were given.*of_rows"):
        actions.bounds(3, 3)


PEOPLE = np.array([[0.0, 0.2, 3.0], [1.0, -0.5, 0.0]])


def test_the_tighter_bound_wins():
    wide = ActionSet(
        lower=[-0.2, -9.0, -9.0], only_increase=[1], immutable=[2], max_value=[1.1] * 3
    )
    people = np.minimum(PEOPLE, 1.0)
    low, high = wide.narrowed(0.75, 3).box(people)
    before = wide.box(people)
    assert np.array_equal(low, np.maximum(before[0], -0.75))
    assert np.array_equal(high, np.minimum(before[1], 0.75))


def test_units_constraints_and_per_person_bounds_stay():
    own = ActionSet(upper=[[2.0, 2.0, 0.1], [2.0, 0.2, 2.0]], A=np.eye(3)[:1], b=[0.1], integer=[1])
    scaled = own.rescaled(np.array([2.0, 1.0, 1.0]), np.zeros(3))
    held = scaled.narrowed(0.5, 3)
    assert np.array_equal(held.unit, scaled.unit)
    assert np.array_equal(held.A, scaled.A)
    assert held.integer == (1,)
    assert held.box(PEOPLE)[1].tolist() == [[0.5, 0.5, 0.1], [0.5, 0.2, 0.5]]


def test_no_limit_changes_nothing_and_nonsense_is_refused():
    free = ActionSet()
    assert free.narrowed(None, 3) is free
    for limit in (0.0, -1.0, float("nan")):
        with pytest.raises(ParameterError, match="largest_action is positive"):
            free.narrowed(limit, 3)
