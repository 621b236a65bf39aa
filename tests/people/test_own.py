"""A cost by the dotted path of the user's function."""

from __future__ import annotations

import pytest

from countermove.errors import ParameterError
from countermove.params import SermParameters
from countermove.people import ConicCost, QuadraticCost
from countermove.people.own import own_cost


def expensive(factor: float = 1.0) -> QuadraticCost:
    return QuadraticCost(3.0 * factor)


def convex() -> ConicCost:
    return ConicCost(lambda x, x_new: x_new - x)


def nothing() -> None:
    return None


@pytest.fixture
def here(monkeypatch):
    import sys

    monkeypatch.setitem(sys.modules, "my_costs", sys.modules[__name__])
    return "my_costs"


def test_the_function_makes_the_cost(here):
    assert (
        own_cost(f"{here}:expensive", {"factor": 2.0}).describe() == QuadraticCost(6.0).describe()
    )


def test_a_run_names_it_in_its_parameters(here):
    settings = {"kind": "own", "function": f"{here}:expensive", "arguments": {"factor": 2}}
    cost = SermParameters.model_validate({"cost": settings}).cost.build()
    assert cost.describe() == QuadraticCost(6.0).describe()


@pytest.mark.parametrize(
    ("path", "arguments", "message"),
    [
        ("my_costs:cheap", {}, "no function 'my_costs:cheap'"),
        ("my_other_costs:expensive", {}, "write package.module:name"),
        ("my_costs:expensive", {"price": 1}, "unexpected keyword"),
        ("my_costs:nothing", {}, "expected a cost"),
        ("my_costs:convex", {}, "closed form"),
        ("my_costs:__doc__", {}, "is not a function"),
    ],
)
def test_what_is_no_cost_is_refused(here, path, arguments, message):
    with pytest.raises(ParameterError, match=message):
        own_cost(path, arguments)
