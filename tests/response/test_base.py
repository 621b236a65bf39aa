"""What all responses share."""

import json

import numpy as np
import pytest
import torch

from countermove.errors import DataError, ParameterError, UnknownNameError
from countermove.people import ActionSet, QuadraticCost
from countermove.response import BestResponse, NoResponse, RobustResponse, named_response
from countermove.response.response_set import members_of


def test_nobody_moves_under_no_response(make_score):
    score, X = make_score([1.0, -1.0], 0.2), np.random.default_rng(0).normal(size=(5, 2))
    found = NoResponse().respond(score, X)
    np.testing.assert_array_equal(found.x_new, X)
    assert not found.moved.any()
    tensor = NoResponse().respond(score, torch.from_numpy(X))
    assert torch.equal(tensor.x_new, torch.from_numpy(X))
    np.testing.assert_array_equal(
        NoResponse().decisions_after(score, X), X @ [1.0, -1.0] + 0.2 >= 0
    )
    with pytest.raises(DataError):
        NoResponse().respond(score, X[:, :1])


@pytest.mark.parametrize("name", ["best", "smooth", "published", "none"])
def test_populations_by_name_respond_and_describe_themselves(make_score, name):
    response = named_response(name, QuadraticCost(0.5), ActionSet(immutable=[1]), 0.3)
    assert response.name == name
    assert json.loads(json.dumps(response.describe()))["kind"] == name
    found = response.respond(make_score([1.0, 1.0], -0.1), np.zeros((3, 2)))
    assert (found.x_new[:, 1] == 0.0).all()
    assert found.x_new.dtype == np.float64


def test_unknown_populations_name_the_nearest():
    with pytest.raises(UnknownNameError, match="best"):
        named_response("bset")


def test_a_robust_response_is_its_members(make_score):
    members = [BestResponse(), NoResponse()]
    robust = RobustResponse(members)
    assert members_of(robust) == tuple(members)
    assert members_of(members[0]) == (members[0],)
    assert [member["kind"] for member in robust.describe()["members"]] == ["best", "none"]
    for ask in (robust.respond, robust.scores_after, robust.decisions_after):
        with pytest.raises(ParameterError, match="members"):
            ask(make_score([1.0], 0.0), torch.zeros(1, 1))
    with pytest.raises(ParameterError, match="two"):
        RobustResponse(members[:1])


def test_whole_numbers_and_lists_are_people_too(make_score):
    score = make_score([1.0, 1.0], -1.5)
    found = BestResponse(QuadraticCost(0.1)).respond(score, np.array([[0, 1], [1, 1]]))
    assert found.moved.tolist() == [True, False]


def test_importing_the_package_brings_no_solver():
    import subprocess
    import sys

    code = "import sys, countermove.response; print('numba' in sys.modules, 'cvxpy' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "False"]
