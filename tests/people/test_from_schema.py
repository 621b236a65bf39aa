"""From a schema to the actions its people have."""

import numpy as np
import pytest

from countermove.data.schema import Schema
from countermove.data.standardise import Standardiser
from countermove.errors import ParameterError
from countermove.people import ActionSet

DESCRIPTION = {
    "label": {"column": "repaid", "favourable": 1},
    "features": {
        "age": {"kind": "integer", "change": "up", "min": 18, "max": 100},
        "income": {"kind": "numeric", "change": "both", "min": 0},
        "loans": {"kind": "integer", "change": "down", "min": 0},
        "sex": {"kind": "binary", "change": "immutable"},
        "job": {"kind": "onehot", "change": "both", "categories": ["none", "clerk", "miner"]},
    },
}


@pytest.fixture
def schema() -> Schema:
    return Schema.from_mapping("people", DESCRIPTION)


@pytest.fixture
def standardiser(schema) -> Standardiser:
    rng = np.random.default_rng(0)
    X = np.column_stack([
        rng.integers(18, 90, 200), rng.uniform(0, 9e4, 200), rng.integers(0, 5, 200),
        rng.integers(0, 2, 200), np.eye(3)[rng.integers(0, 3, 200)],
    ]).astype(float)  # fmt: skip
    return Standardiser.fit(X, schema.feature_names)


def test_a_schema_gives_directions_bounds_and_groups(schema, standardiser):
    actions = ActionSet.from_schema(schema, standardiser)
    assert actions.only_increase == (0,)
    assert actions.only_decrease == (2,)
    assert actions.immutable == (3,)
    assert actions.groups == ((4, 5, 6),)
    assert set(actions.integer) >= {0, 2}
    person = np.array([[40.0, 3e4, 2.0, 1.0, 1.0, 0.0, 0.0]])
    lower, upper = (
        standardiser.action_to_original(b) for b in actions.box(standardiser.transform(person))
    )
    np.testing.assert_allclose(upper[0, :4], [60.0, np.inf, 0.0, 0.0], atol=1e-9)
    np.testing.assert_allclose(lower[0, :4], [0.0, -3e4, -2.0, 0.0], atol=1e-9)


def test_a_whole_legal_action_is_contained(schema, standardiser):
    actions = ActionSet.from_schema(schema, standardiser)
    X = standardiser.transform(np.array([[40.0, 3e4, 2.0, 1.0, 1.0, 0.0, 0.0]]))
    legal = np.array([[1.0, 512.25, -1.0, 0.0, -1.0, 0.0, 1.0]])
    assert actions.contains(X, standardiser.action_to_standard(legal))[0]
    for j, illegal in ((0, -1.0), (0, 0.5), (2, 1.0), (4, 0.0)):
        wrong = legal.copy()
        wrong[0, j] = illegal
        assert not actions.contains(X, standardiser.action_to_standard(wrong))[0]


def test_other_columns_than_the_schema_s_are_refused(schema):
    other = Standardiser.fit(np.arange(6.0).reshape(3, 2), ["a", "b"])
    with pytest.raises(ParameterError, match="other columns"):
        ActionSet.from_schema(schema, other)


STEPS = {
    "label": {"column": "repaid", "favourable": 1},
    "features": {
        "bill": {"kind": "integer", "change": "both", "step": 10},
        "rate": {"kind": "numeric", "change": "down", "min": 0, "step": 0.25},
        "income": {"kind": "numeric", "change": "up"},
        "fixed": {"kind": "integer", "change": "immutable", "step": 5},
        "home_own": {"kind": "binary", "change": "both", "group": "home"},
        "home_rent": {"kind": "binary", "change": "both", "group": "home"},
    },
}


@pytest.fixture
def stepped() -> tuple[ActionSet, Standardiser]:
    schema = Schema.from_mapping("steps", STEPS)
    rng = np.random.default_rng(1)
    own = rng.integers(0, 2, 100)
    numbers = rng.integers(0, 500, (100, 4)).astype(float)
    standardiser = Standardiser.fit(
        np.column_stack([numbers, own, 1 - own]), schema.feature_names, divide_by_root_d=True
    )
    return ActionSet.from_schema(schema, standardiser), standardiser


@pytest.mark.parametrize(
    ("feature", "move", "allowed"),
    [
        (0, 10.0, True),
        (0, -30.0, True),
        (0, 1.0, False),
        (0, 15.0, False),
        (1, -0.25, True),
        (1, -0.1, False),
        (2, 0.1, True),
        (3, 5.0, False),
    ],
)
def test_a_feature_moves_by_its_own_step(stepped, feature, move, allowed):
    """In original units, from where the person stands: 13 may become 23."""
    actions, standardiser = stepped
    X = standardiser.transform(np.array([[13.0, 7.1, 3.3, 4.0, 1.0, 0.0]]))
    action = np.zeros((1, 6))
    action[0, feature] = move
    assert actions.contains(X, standardiser.action_to_standard(action))[0] == allowed


def test_steps_survive_their_description(stepped):
    actions, _ = stepped
    assert actions.steps == {0: 10.0, 1: 0.25}
    assert set(actions.integer) == {0, 1, 4, 5}
    again = ActionSet(**actions.describe())
    assert again.steps == actions.steps
    np.testing.assert_array_equal(again.step_sizes(6), [10.0, 0.25, 1.0, 1.0, 1.0, 1.0])
    assert actions.for_response().steps == actions.steps


@pytest.mark.parametrize("steps", [{2: 1.0}, {0: 0.0}, {0: -1.0}, {0: np.inf}, {0: np.nan}])
def test_steps_without_sense_are_refused(steps):
    with pytest.raises(ParameterError, match="steps"):
        ActionSet(integer=[0], steps=steps)


def test_columns_of_a_group_move_together(stepped):
    actions, standardiser = stepped
    assert actions.groups == ((4, 5),)
    X = standardiser.transform(np.array([[13.0, 7.1, 3.3, 4.0, 1.0, 0.0]]))
    for move, allowed in (((-1.0, 1.0), True), ((-1.0, 0.0), False), ((0.0, 1.0), False)):
        action = np.array([[0.0, 0.0, 0.0, 0.0, *move]])
        assert actions.contains(X, standardiser.action_to_standard(action))[0] == allowed
