"""People who differ, as settings: shares, prices by a column, and what is refused."""

import numpy as np
import pytest
from pydantic import ValidationError

from countermove.data.schema import Feature, Label, Schema
from countermove.data.standardise import Standardiser
from countermove.errors import ParameterError, UnknownNameError
from countermove.params import EvaluationParameters, SermParameters
from countermove.people import ActionSet, QuadraticCost
from countermove.response import BestResponse, Population, RobustResponse
from countermove.response.named import price_by_column

SCHEMA = Schema(
    name="town",
    label=Label("good"),
    features=(
        Feature("income", "numeric", "up"),
        Feature("age", "numeric"),
        Feature("region", "onehot", categories=("east", "north", "west")),
        Feature("owner", "binary", categories=("no", "yes")),
        Feature("school", "ordered", categories=("low", "middle", "high")),
    ),
)
UNITS = Standardiser(
    np.array([30.0, 40.0, 0.5, 0.3, 0.2, 0.4, 1.0]),
    np.array([10.0, 12.0, 0.5, 0.46, 0.4, 0.49, 0.8]),
    SCHEMA.feature_names,
)


def built(**said):
    parameters = SermParameters(
        cost={"kind": "quadratic", "scale": 2.0}, response={"kind": "population", **said}
    )
    return parameters.build(SCHEMA, UNITS)


def prices(people, *rows):
    """Return the price of people given in original units."""
    import torch

    X = torch.from_numpy(UNITS.transform(np.array(rows)))
    kind = people.kinds[0]
    return (float(kind.cost.scale) * kind.prices(X)).tolist()


def test_a_population_is_built_with_its_shares_and_prices():
    people = built(
        kinds=[{"kind": "best"}, {"kind": "smooth", "temperature": 0.2}],
        shares=[0.7, 0.3],
        never=0.2,
        log_sd=0.4,
        nodes=5,
    )
    assert isinstance(people, Population)
    assert [kind.name for kind in people.kinds] == ["best", "smooth"]
    assert (people.shares, people.never, people.log_sd, people.nodes) == ((0.7, 0.3), 0.2, 0.4, 5)
    assert float(people.kinds[1].cost.scale) == 2.0
    assert isinstance(built().kinds[0], BestResponse)


def test_prices_by_group_are_factors_on_the_cost():
    people = built(price_by={"column": "region", "factors": {"east": 1.5, "west": 0.5}})
    east, north, west = (
        [20.0, 50.0, *(float(name == place) for name in ("east", "north", "west")), 1.0, 2.0]
        for place in ("east", "north", "west")
    )
    assert prices(people, east, north, west) == pytest.approx([3.0, 2.0, 1.0])


def test_prices_by_a_binary_column_are_factors_too():
    people = built(price_by={"column": "owner", "factors": {"0": 2.0, "1": 3.0}})
    no, yes = ([20.0, 50.0, 1.0, 0.0, 0.0, owner, 2.0] for owner in (0.0, 1.0))
    assert prices(people, no, yes) == pytest.approx([4.0, 6.0])


def test_prices_along_a_number_are_per_standard_deviation():
    people = built(price_by={"column": "age", "log_price": 0.3})
    mean, above = ([20.0, age, 1.0, 0.0, 0.0, 1.0, 2.0] for age in (40.0, 52.0))
    assert prices(people, mean, above) == pytest.approx([2.0, 2.0 * np.exp(0.3)])


@pytest.mark.parametrize(
    ("price_by", "error", "message"),
    [
        ({"column": "income", "log_price": 0.3}, ParameterError, "income, which the schema lets"),
        ({"column": "regoin", "log_price": 0.3}, UnknownNameError, "regoin"),
        ({"column": "region", "factors": {"south": 2.0}}, UnknownNameError, "no level 'south'"),
        ({"column": "owner", "factors": {"yes": 2.0}}, UnknownNameError, "no level 'yes'"),
        ({"column": "age", "factors": {"1": 2.0}}, ParameterError, "numeric: give log_price"),
        ({"column": "school", "factors": {"low": 2.0}}, ParameterError, "ordered"),
    ],
)
def test_prices_by_what_does_not_stay_are_refused(price_by, error, message):
    with pytest.raises(error, match=message):
        built(price_by=price_by)


def test_prices_by_a_column_need_a_schema_and_positive_factors():
    with pytest.raises(ParameterError, match="built from a schema"):
        price_by_column(BestResponse(), "age", log_price=0.3)
    known = BestResponse(QuadraticCost(), ActionSet.from_schema(SCHEMA, UNITS))
    with pytest.raises(ParameterError, match="either"):
        price_by_column(known, "age")
    with pytest.raises(ParameterError, match="positive"):
        price_by_column(known, "region", {"east": 0.0})


@pytest.mark.parametrize(
    ("said", "message"),
    [
        ({"kinds": [{"kind": "best"}, {"kind": "none"}]}, "kind: robust"),
        ({"kinds": [{"kind": "best"}, {"kind": "none"}], "shares": [0.5, 0.6]}, "sum to 1"),
        ({"kinds": [], "shares": []}, "kinds"),
        ({"kinds": [{"kind": "population"}]}, "population"),
        ({"never": 1.0}, "never"),
        ({"never": -0.1}, "never"),
        ({"log_sd": -1.0}, "log_sd"),
        ({"nodes": 0}, "nodes"),
        ({"log_sds": 1.0}, "log_sds"),
        ({"price_by": {"column": "age"}}, "either factors or log_price"),
        ({"price_by": {"column": "region", "factors": {"east": -1.0}}}, "factors"),
    ],
)
def test_bad_populations_are_refused_before_a_run(said, message):
    with pytest.raises(ValidationError, match=message):
        SermParameters(response={"kind": "population", **said})


def test_several_populations_may_be_plausible():
    members = [{"kind": "population", "never": share} for share in (0.1, 0.3)]
    serm = SermParameters(response={"kind": "robust", "members": members})
    built_response = serm.build(SCHEMA, UNITS)
    assert isinstance(built_response, RobustResponse)
    assert [member.never for member in built_response.members] == [0.1, 0.3]
    responses, stated = EvaluationParameters().responses(serm, SCHEMA, UNITS)
    assert stated == ["population", "population_2"]
    assert [responses[name].never for name in stated] == [0.1, 0.3]
    asked = EvaluationParameters(transfer={"responses": [{"kind": "population", "never": 0.4}]})
    plain, stated = asked.responses(SermParameters(), SCHEMA, UNITS)
    assert stated == ["best"]
    assert plain["population"].never == 0.4
