"""What the YAML says reaches the library's objects, nested settings too."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from countermove.data.schema import Schema
from countermove.errors import ParameterError
from countermove.params import GROUPS, PaperParameters, RecourseParameters, SermParameters
from countermove.recourse.advise import AdviceTerms
from countermove.recourse.phrases import FILE

PAPER = sorted((Path(__file__).parents[2] / "conf" / "paper").glob("*.yml"))


def built(**experiment):
    return PaperParameters.model_validate({"experiment": experiment}).build()


def test_settings_in_a_mapping_are_built():
    fico = built(kind="fico", lenders={"strict": {"penalty": "l1", "inverse_strength": 0.5}})
    assert fico.lenders["strict"].penalty == "l1"
    assert fico.lenders["strict"].inverse_strength == 0.5
    assert fico.dynamics.decision_effect == 0.01


def test_recourse_has_terms_of_the_promise_and_of_the_words():
    own = str(FILE)
    said = RecourseParameters(phrase_file=own, options=3, causal_tolerance=0.1, miss_rate=0.1)
    assert said.advice() == AdviceTerms(own, 3, 0.1, digits=2, confidence=0.9)
    assert said.build().miss_rate == 0.1
    with pytest.raises(ParameterError, match="no file fr of phrases"):
        RecourseParameters(phrase_file="fr").advice()


def test_a_table_of_a_recourse_experiment_has_its_own_training():
    parts = {"train": 5, "selection": 4, "calibration": 3, "test": 2, "actions": {"age": "up"}}
    made = built(
        kind="recourse",
        cases={"town": parts | {"training": {"max_epochs": 9, "class_weight": [1, 3]}}},
        rules=[{"kind": "promise", "miss_rate": 0.1}, {"kind": "fixed", "at": 0.4}],
        training={"hidden": [4]},
    )
    case = made.cases["town"]
    # Without patience of its own, training takes all of its epochs.
    weights = {-1.0: 1.0, 1.0: 3.0}
    assert case.training == {"max_epochs": 9, "patience": 9, "class_weight": weights}
    assert made.training == {"hidden": (4,)}
    assert [rule.name for rule in made.rules] == ["promise_0.1_0.05", "fixed_0.4"]


def test_causes_are_what_a_causal_model_reads():
    parts = {"train": 5, "selection": 4, "calibration": 3, "test": 2, "actions": {"age": "up"}}
    causal = {"income": {"causes": ["age"]}}
    made = built(kind="recourse", cases={"town": parts | {"causal": causal}})
    assert made.cases["town"].causal == causal


def test_the_curves_of_a_trade_off_are_built():
    made = built(
        kind="tradeoff",
        curves=[{"strengths": {"lowest": 0.1, "highest": 10.0, "points": 3}, "settle": True}],
        cost={"kind": "quadratic", "scale": 2.0},
        tolerance=0.02,
    )
    assert made.curves[0].strengths == pytest.approx([0.1, 1.0, 10.0])
    assert made.curves[0].training == "intercept settled"
    assert (made.cost.scale, made.tolerance) == (2.0, 0.02)
    assert made.shares == {"train": 0.5, "validation": 0.25, "test": 0.25}


def test_texts_say_their_network_and_its_training():
    made = built(kind="text", training={"hidden": [8], "max_epochs": 3})
    assert made.training["hidden"] == (8,)
    assert made.training["max_epochs"] == 3
    assert made.training["dropout"] == 0.3


@pytest.mark.parametrize("path", PAPER, ids=lambda path: path.stem)
def test_plain_settings_of_a_paper_arrive_unchanged(path):
    ((group, given),) = yaml.safe_load(path.read_text())["run"]["params"].items()
    made = GROUPS[group].model_validate(given).build()
    for name, value in (given.get("experiment") or given).items():
        if isinstance(value, int | float | str) and hasattr(made, name) and name != "kind":
            assert getattr(made, name) == value


def test_a_chain_needs_history_for_a_recurrent_score_and_a_sweep_does_not():
    schema = Schema.from_mapping(
        "firms",
        {
            "label": {"column": "ok", "favourable": 1},
            "features": {"debt": {"kind": "numeric", "change": "both"}},
            "series": {"entity": "firm", "time": "year"},
        },
    )
    recurrent = {"kind": "recurrent", "width": 3}
    with pytest.raises(ParameterError, match="no history to read"):
        SermParameters(score=recurrent).build_score(schema, None, 0)
    sweep = GROUPS["sweep"].model_validate({"score": recurrent}).build()
    assert sweep.score(schema, 0).kind == "recurrent"


def test_a_network_may_be_climbed_by_people_of_whom_some_never_move():
    climbers = {"kind": "population", "kinds": [{"kind": "ascent"}], "never": 0.3}
    SermParameters.model_validate({"score": {"kind": "mlp"}, "response": climbers})
    closed = climbers | {"kinds": [{"kind": "best"}]}
    with pytest.raises(ValueError, match="people of kind best have no closed"):
        SermParameters.model_validate({"score": {"kind": "mlp"}, "response": closed})
