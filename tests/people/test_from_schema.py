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
