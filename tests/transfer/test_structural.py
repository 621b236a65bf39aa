"""Structural models read from mappings, and people who answer a decision."""

from __future__ import annotations

import numpy as np
import pytest

from countermove.errors import ParameterError
from countermove.transfer.structural import Shift, StructuralModel

CHAIN = {
    "x3": {"causes": {"x1^2": -1.0, "x2": 0.5}, "normal": 0.0},
    "x1": {"uniform": [-1.0, 1.0]},
    "x2": {"causes": {"x1": 2.0}, "normal": 0.3},
}


def test_causes_come_before_effects_whatever_the_order_written():
    model = StructuralModel.from_mapping(CHAIN)
    names = list(model.equations)
    assert names.index("x1") < names.index("x2") < names.index("x3")


def test_variables_follow_from_their_causes():
    model = StructuralModel.from_mapping(CHAIN)
    people, noise = model.draw(5_000, np.random.default_rng(0))
    assert people["x2"] == pytest.approx(2.0 * people["x1"] + noise["x2"])
    assert people["x3"] == pytest.approx(-(people["x1"] ** 2) + 0.5 * people["x2"])
    assert np.std(noise["x2"]) == pytest.approx(0.3, rel=0.05)


@pytest.mark.parametrize(
    ("reading", "steps"), [("paper", (-0.5, 0.0)), ("released", (-0.25, 0.25))]
)
def test_a_decision_moves_one_variable_and_what_follows_from_it(reading, steps):
    model = StructuralModel.from_mapping(CHAIN)
    people, noise = model.draw(1_000, np.random.default_rng(0))
    decision = np.where(people["x1"] > 0, 1.0, -1.0)
    after = model.answered(people, decision, Shift("x1", 0.25, reading), noise)
    refused, accepted = decision < 0, decision > 0
    moved = after["x1"] - people["x1"]
    assert moved[refused] == pytest.approx(steps[0])
    assert moved[accepted] == pytest.approx(steps[1])
    # The noise was kept, so the effect is exactly twice the cause.
    assert after["x2"] - people["x2"] == pytest.approx(2.0 * moved)


@pytest.mark.parametrize(
    ("mapping", "says"),
    [
        ({"a": {"causes": {"b": 1.0}}, "b": {"causes": {"a": 1.0}}}, "circle"),
        ({"a": {"causes": {"a": 1.0}}}, "circle"),
        ({"a": {"causes": {"bb": 1.0}}, "b": {"normal": 1.0}}, "did you mean 'b'"),
        ({"a": {"cause": {}}}, "did you mean 'causes'"),
        ({"a": {"uniform": [1.0, 0.0]}}, "low < high"),
        ({"a": {"normal": -1.0}}, "cannot be negative"),
        ({"a": {"normal": 1.0}, "b": {"causes": {"a^x": 1.0}}}, "whole power"),
    ],
)
def test_models_that_make_no_sense_are_refused(mapping, says):
    with pytest.raises(ParameterError, match=says):
        StructuralModel.from_mapping(mapping)


def test_an_unknown_variable_cannot_shift():
    model = StructuralModel.from_mapping(CHAIN)
    people, noise = model.draw(10, np.random.default_rng(0))
    with pytest.raises(ParameterError, match="no variable 'x9'"):
        model.answered(people, np.ones(10), Shift("x9", 0.1), noise)
