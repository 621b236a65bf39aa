"""What the YAML may say, and what it may not."""

import pytest
from pydantic import ValidationError

from countermove.params import (
    EvaluationParameters,
    IngestParameters,
    RecourseParameters,
    SermParameters,
)
from countermove.people import (
    LinearCost,
    MahalanobisCost,
    MixtureCost,
    QuadraticCost,
    WeightedQuadraticCost,
)
from countermove.response import (
    AscentResponse,
    BestResponse,
    NoResponse,
    RobustResponse,
    ScalarResponse,
)


@pytest.mark.parametrize(
    ("said", "cost"),
    [
        ({"kind": "quadratic", "scale": 2}, QuadraticCost),
        ({"kind": "weighted_quadratic", "weights": [1, 2]}, WeightedQuadraticCost),
        ({"kind": "mahalanobis", "matrix": [[2, 0], [0, 1]]}, MahalanobisCost),
        ({"kind": "linear", "direction": [1, 1]}, LinearCost),
        ({"kind": "mixture", "direction": [1, 1], "gamma": 0.1}, MixtureCost),
    ],
)
def test_every_cost_is_built_by_kind(said, cost):
    assert isinstance(SermParameters(cost=said).cost.build(), cost)


@pytest.mark.parametrize(
    ("said", "response"),
    [
        ({"kind": "best"}, BestResponse),
        ({"kind": "smooth", "temperature": 0.2, "start": "stay"}, ScalarResponse),
        ({"kind": "published"}, ScalarResponse),
        ({"kind": "none"}, NoResponse),
        ({"kind": "ascent", "temperature": 0.3, "random_starts": 0}, AscentResponse),
        ({"kind": "robust", "members": [{"kind": "best"}, {"kind": "smooth"}]}, RobustResponse),
    ],
)
def test_every_response_is_built_by_kind(said, response):
    parameters = SermParameters(actions={"kind": "free"}, response=said)
    assert isinstance(parameters.build(schema=None, standardiser=None), response)


@pytest.mark.parametrize(
    "said",
    [
        {"cots": {"kind": "quadratic"}},
        {"cost": {"kind": "quadratic", "scal": 2}},
        {"cost": {"kind": "cubic"}},
        {"cost": {"scale": -1, "kind": "quadratic"}},
        {"training": {"max_epochs": 0}},
        {"score": {"kind": "forest"}},
        {"score": {"kind": "recurrent", "width": 0}},
        {"score": {"kind": "mlp", "activation": "relu"}, "response": {"kind": "ascent"}},
        {"score": {"kind": "mlp"}, "response": {"kind": "best"}},
        {"response": {"kind": "robust", "members": [{"kind": "best"}]}},
    ],
)
def test_typos_and_nonsense_are_refused(said):
    with pytest.raises(ValidationError):
        SermParameters.model_validate(said)


def test_shares_must_sum_to_one():
    with pytest.raises(ValidationError, match="sum to 1"):
        IngestParameters(split={"train": 0.9})


@pytest.mark.parametrize(
    "said",
    [
        {"miss_rate": 1.0},
        {"failure_probability": 0.0},
        {"threshold": 1.2},
        {"measure": "auc"},
        {"grid": []},
        {"grid": [0.5, 1.0]},
        {"loss": -1},
        {"largest_loss": 0},
        {"method": "guess"},
    ],
)
def test_promises_that_make_no_sense_are_refused(said):
    with pytest.raises(ValidationError, match=next(iter(said))):
        RecourseParameters.model_validate(said)


def test_terms_of_the_promise_are_built_as_said():
    said = {"groups": "Sex", "grid": [0.1, 0.2], "largest_loss": None, "measure": "f1"}
    terms = RecourseParameters.model_validate(said).build()
    assert (terms.groups, terms.grid, terms.largest_loss) == ("Sex", (0.1, 0.2), None)
    assert terms.measure == "f1"


def test_plausible_responses_start_with_those_trained_for():
    robust = {"kind": "robust", "members": [{"kind": "smooth", "temperature": 2}, {"kind": "best"}]}
    serm = SermParameters(actions={"kind": "free"}, response=robust)
    built, stated = EvaluationParameters().responses(serm, schema=None, standardiser=None)
    assert stated == ["smooth_2", "best"]
    assert list(built) == ["smooth_2", "best", "smooth_0.2", "smooth_0.5", "smooth_1", "none"]
    assert built["smooth_2"].temperature == 2


def test_a_score_without_a_slope_is_climbed_by_whoever_is_plausible():
    serm = SermParameters(
        score={"kind": "mlp"}, actions={"kind": "free"}, response={"kind": "ascent"}
    )
    built, stated = EvaluationParameters().responses(serm, schema=None, standardiser=None)
    assert stated == ["ascent_0.5"]
    assert set(built) == {"ascent_0.2", "ascent_0.5", "ascent_1", "none"}


@pytest.mark.parametrize(
    "said",
    [
        {"transfer": {"bins": 1}},
        {"transfer": {"labels": []}},
        {"transfer": {"labels": ["moved"]}},
        {"transfer": {"responses": []}},
        {"transfer": {"responses": [{"kind": "robust", "members": []}]}},
        {"transfer": {"tolerated_outside": 1.5}},
        {"failure_probability": 0},
    ],
)
def test_nonsense_about_transfer_is_refused(said):
    with pytest.raises(ValidationError):
        EvaluationParameters.model_validate(said)


def test_transfer_terms_are_built():
    said = {"failure_probability": 0.1, "transfer": {"labels": ["follow", "follow"], "bins": 4}}
    terms = EvaluationParameters.model_validate(said).build()
    assert (terms.failure_probability, terms.labels, terms.bins) == (0.1, ("follow",), 4)
