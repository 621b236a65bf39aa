"""Trade-off curves over splits and populations, their choices and their figure."""

from __future__ import annotations

import pandas as pd
import pytest

from countermove.errors import ParameterError, UnknownNameError
from countermove.experiments import Measured, Sources
from countermove.experiments.serm.tradeoff import TradeOff, TradeOffCurve
from countermove.learning import SocialBurden
from countermove.params.serm_experiments import TradeoffParameters
from countermove.people import QuadraticCost

from .test_sweep import tables


def plan(**changes) -> TradeOff:
    brief = {"optimiser": "adam", "max_epochs": 2}
    standard = {
        "datasets": ["tiny"],
        "splits": 2,
        "regulariser": SocialBurden(),
        "curves": [TradeOffCurve("best", [0.1, 1.0], brief), TradeOffCurve("smooth", [0.1], brief)],
        "cost": QuadraticCost(1.0),
        "shares": {"train": 0.5, "validation": 0.25, "test": 0.25},
    }
    return TradeOff(**(standard | changes))


@pytest.fixture(scope="module")
def points():
    return plan().cells(Sources(tables), seed=0)


def test_every_strength_of_every_curve_is_there_once(points):
    found = list(points[["split", "response", "strength"]].itertuples(index=False, name=None))
    best, smooth = [("best", s) for s in (0.0, 0.1, 1.0)], [("smooth", s) for s in (0.0, 0.1)]
    assert found == [(split, *point) for split in (0, 1) for point in (*best, *smooth)]


def test_two_trainings_for_the_same_people_are_two_curves():
    said = {
        "curves": [
            {
                "strengths": [0.1],
                "training": {"optimiser": "adam", "max_epochs": 2},
                "epochs": 1,
                "settle": settle,
            }
            for settle in (True, False)
        ],
        "cost": {"kind": "quadratic", "scale": 1.0},
        "datasets": ["tiny"],
    }
    made = TradeoffParameters.model_validate(said).build()
    points = made.cells(Sources(tables), seed=0)
    words = ["intercept settled"] * 2 + ["intercept as trained"] * 2
    assert points["training"].tolist() == words
    choices = made.means(points)
    assert choices["training"].tolist() == words[::2] * 2
    figure = made.figure(Measured(points), choices, "t")
    assert [note.text for note in figure.layout.annotations] == [
        "best response, intercept settled",
        "best response, intercept as trained",
    ]


def test_every_left_axis_says_what_is_measured(points):
    several = pd.concat([points.assign(dataset=name) for name in ("one", "two")])
    figure = plan().figure(Measured(several), several, "t")
    hard, smoothed = (button["args"][1] for button in figure.layout.updatemenus[0].buttons)
    assert set(hard) == set(smoothed) == {"yaxis.title.text", "yaxis3.title.text"}
    assert figure.layout.yaxis3.title.text == figure.layout.yaxis.title.text


def test_one_point_of_every_curve_is_chosen(points):
    assert (points.groupby(["split", "response"])["chosen"].sum() == 1).all()
    assert points.groupby(["split", "response"])["front"].any().all()


def test_choices_stand_beside_the_unregularised_rule_per_split_and_for_all(points):
    choices = plan().means(points)
    assert choices["split"].astype(str).value_counts().to_dict() == {"0": 2, "1": 2, "all": 2}
    joint = choices[(choices["split"] == "all") & (choices["response"] == "best")].iloc[0]
    plain = points[(points["strength"] == 0.0) & (points["response"] == "best")]
    assert joint["test_burden_plain"] == pytest.approx(plain["test_burden"].mean())
    assert joint["validation_accuracy"] >= joint["validation_accuracy_plain"] - 0.01 - 1e-12


def test_the_figure_marks_front_and_choice_and_switches_measures(points):
    figure = plan().figure(Measured(points), points, "t")
    names = [trace.name for trace in figure.data]
    assert any("Pareto" in name for name in names)
    assert any("chosen" in name for name in names)
    shown = [trace.visible for trace in figure.data]
    hard, smoothed = (b["args"][0]["visible"] for b in figure.layout.updatemenus[0].buttons)
    assert shown == hard
    assert [not visible for visible in hard] == smoothed


def test_the_page_says_what_the_choice_bought(points):
    found, choices = Measured(points), plan().means(points)
    page = plan().page(found, choices, plan().figure(found, choices, "t"))
    assert "tiny: best response" in page.replace("<wbr>", "")
    assert "at most 0.01 of" in page


def test_a_missing_table_is_reported():
    with pytest.raises(UnknownNameError):
        plan(datasets=["spam"]).cells(Sources(tables), seed=0)
    with pytest.raises(ParameterError, match="none of the tables"):
        plan(datasets=["spam"], skip_missing=True).cells(Sources(tables), seed=0)


@pytest.mark.parametrize(
    ("said", "message"),
    [
        ({"shares": {"train": 0.9}}, "sum to 1"),
        ({"curves": [{"strengths": {"lowest": 2, "highest": 1}}]}, "above highest"),
        ({"curves": [{"strengths": [-1]}]}, "greater than or equal to 0"),
        ({"regulariser": {"kind": "l2"}}, "utility.*burden.*recourse"),
        ({"tolerance": -0.1}, "greater than or equal to 0"),
    ],
)
def test_nonsense_is_refused(said, message):
    with pytest.raises(ValueError, match=message):
        TradeoffParameters.model_validate(said)


def test_a_range_of_strengths_is_geometric():
    said = {"curves": [{"strengths": {"lowest": 0.1, "highest": 10, "points": 3}}]}
    strengths = TradeoffParameters.model_validate(said).build().curves[0].strengths
    assert strengths == pytest.approx([0.1, 1.0, 10.0])
