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
            "serm.cost.scale must be a number above 0, got 'abc'",
        ),
        (
            cost(kind="quadratic", scale=0),
            "serm.cost.scale must be a number above 0, got 0",
        ),
        (
            cost(kind="quadratc"),
            "serm.cost is of kind quadratic, weighted_quadratic, mahalanobis, linear, mixture, "
            "own, not 'quadratc'; did you mean 'quadratic'?",
        ),
        (
            cost(scale=2),
            "serm.cost needs a kind: quadratic, weighted_quadratic, mahalanobis, linear, mixture, "
            "own",
        ),
        (
            cost(kind="linear"),
            "serm.cost.direction is not set; it must be a list, each a number",
        ),
        (
            cost(kind="quadratic", direction=[1]),
            "there is no setting serm.cost.direction for kind quadratic; it belongs to kind "
            "linear, mixture",
        ),
        (
            cost(kind="own", function="a:b", arguments={"x": None}),
            "serm.cost.arguments.x must be a number or a list, each a number or text or true or "
            "false, got None",
        ),
        (
            robust({"kind": "smooth", "temperatur": 1}),
            "there is no setting serm.response.members.1.temperatur; did you mean "
            "'serm.response.members.1.temperature'?",
        ),
        (
            robust({"kind": "smooth", "temperature": 0}),
            "serm.response.members.1.temperature must be a number above 0, got 0",
        ),
        (
            {"serm": {"regulariser": {"kind": "burdn"}}},
            "serm.regulariser is of kind none, l2, utility, burden, recourse, not 'burdn'; did you "
            "mean 'burden'?",
        ),
        (
            {"serm": {"regulariser": {"kind": "burden", "strength": -1}}},
            "serm.regulariser.strength must be a number of at least 0, got -1",
        ),
        ({"serm": {"cots": {}}}, "there is no setting serm.cots; did you mean 'serm.cost'?"),
        ({"serm": 3}, "serm must be a mapping of settings, got 3"),
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
            "recourse.grid.1 must be a number above 0 and below 1, got 2",
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
