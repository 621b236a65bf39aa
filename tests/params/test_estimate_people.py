"""What the YAML may say about an estimate, and about estimated people."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from countermove.params import EstimatePeopleParameters, SermParameters


@pytest.mark.parametrize("said", [{"level": 1.0}, {"cost": "cubic"}, {"matchd": True}])
def test_nonsense_is_refused(said):
    with pytest.raises(ValidationError, match=next(iter(said))):
        EstimatePeopleParameters.model_validate(said)


def test_members_of_a_robust_response_may_have_costs_and_shares_of_their_own():
    costly = {"kind": "best", "cost": {"kind": "quadratic", "scale": 3.0}}
    said = {"kind": "robust", "members": [costly, {"kind": "none"}], "weights": [0.7, 0.3]}
    people = SermParameters(actions={"kind": "free"}, response=said)
    built = people.build(schema=None, standardiser=None)
    assert float(built.members[0].cost.scale) == 3.0
    assert built.weights == (0.7, 0.3)


@pytest.mark.parametrize("weights", [[0.7, 0.7], [1.0], [1.5, -0.5]])
def test_shares_must_sum_to_one(weights):
    members = [{"kind": "best"}, {"kind": "none"}]
    with pytest.raises(ValidationError, match="weights"):
        SermParameters(response={"kind": "robust", "members": members, "weights": weights})
