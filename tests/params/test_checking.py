"""What a user reads after a slip of the pen."""

from __future__ import annotations

import pytest

from countermove.errors import ParameterError
from countermove.params import GROUPS
from countermove.params.checking import check_settings


def robust(second: dict[str, object]) -> dict[str, object]:
    return {"serm": {"response": {"kind": "robust", "members": [{"kind": "best"}, second]}}}


def cost(**settings: object) -> dict[str, object]:
    return {"serm": {"cost": settings}}


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        (
            cost(kind="quadratic", scal=2),
            "there is no setting serm.cost.scal; did you mean 'serm.cost.scale'?",
        ),
        (
            cost(kind="quadratic", scale="abc"),
            "serm.cost.scale should be a valid number, unable to parse string as a number, got "
            "'abc'",
        ),
        (
            cost(kind="quadratic", scale=0),
            "serm.cost.scale should be greater than 0, got 0",
        ),
        (
            cost(kind="quadratc"),
            "serm.cost has no kind 'quadratc'; did you mean 'quadratic'?",
        ),
        (
            cost(scale=2),
            "serm.cost needs a kind, as in {kind: …}",
        ),
        (
            cost(kind="linear"),
            "serm.cost.direction is not set, and has no default",
        ),
        (
            cost(kind="quadratic", direction=[1]),
            "there is no setting serm.cost.direction; there are kind, scale",
        ),
        (
            cost(kind="own", function="a:b", arguments={"x": None}),
            "serm.cost.arguments.x should be a valid number, got None",
        ),
        (
            robust({"kind": "smooth", "temperatur": 1}),
            "there is no setting serm.response.members.1.temperatur; did you mean "
            "'serm.response.members.1.temperature'?",
        ),
        (
            robust({"kind": "smooth", "temperature": 0}),
            "serm.response.members.1.temperature should be greater than 0, got 0",
        ),
        (
            {"serm": {"regulariser": {"kind": "burdn"}}},
            "serm.regulariser has no kind 'burdn'; did you mean 'burden'?",
        ),
        (
            {"serm": {"regulariser": {"kind": "burden", "strength": -1}}},
            "serm.regulariser.strength should be greater than or equal to 0, got -1",
        ),
        ({"serm": {"cots": {}}}, "there is no setting serm.cots; did you mean 'serm.cost'?"),
        ({"serm": 3}, "serm should be a mapping of settings, got 3"),
        ({"smer": {}}, "there is no setting smer; did you mean 'serm'?"),
        ({"sead": 1}, "there is no setting sead; did you mean 'seed'?"),
        (
            {"retrain": {"gates": {"flip_rate": {"larges": 1}}}},
            "there is no setting retrain.gates.flip_rate.larges; did you mean "
            "'retrain.gates.flip_rate.largest'?",
        ),
        (
            {"score": {"batch": "../x"}},
            "score.batch must be letters, digits, '.', '_' and '-' only, got '../x'",
        ),
        (
            {"ingest": {"split": {"train": 0.9}}},
            "ingest.split: the shares of train, validation, calibration and test must sum to 1, "
            "got 1.4",
        ),
        (
            {"recourse": {"grid": [0.5, 2]}},
            "recourse.grid.1 should be less than 1, got 2",
        ),
        *[
            (
                {"seed": wrong},
                f"seed must be a whole number of at least 0 and at most 4294967295, got {wrong!r}",
            )
            for wrong in ("abc", -1, float("inf"), 1.5, True, None, 2**32)
        ],
    ],
)
def test_one_sentence_names_the_setting_and_the_remedy(given, sentence):
    with pytest.raises(ParameterError) as refused:
        check_settings(given, GROUPS)
    assert str(refused.value) == sentence


def test_of_several_slips_the_unknown_name_comes_first():
    with pytest.raises(ParameterError, match=r"no setting serm\.cost\.directoin; did you mean"):
        check_settings(cost(kind="linear", directoin=[1]), GROUPS)


def test_pydantics_error_is_not_shown_below_ours():
    with pytest.raises(ParameterError) as refused:
        check_settings(cost(kind="quadratic", scale="abc"), GROUPS)
    assert refused.value.__cause__ is None
    assert refused.value.__context__ is None


def test_sound_settings_pass():
    check_settings({"dataset": "tiny", "seed": 3, "serm": {}, "score": {"batch": 7}}, GROUPS)
