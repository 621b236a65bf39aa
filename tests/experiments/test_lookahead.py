"""Experiments on people who look ahead: every kind runs, sums up, is drawn and stated."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import yaml
from pydantic import ValidationError

from countermove.dynamics.crowd import Crowd
from countermove.errors import ParameterError
from countermove.experiments import Measured
from countermove.experiments.lookahead.columns import ImportanceExperiment
from countermove.experiments.lookahead.people import LookaheadTable, lookahead_facts
from countermove.experiments.lookahead.retraining import (
    BeliefsExperiment,
    RatesExperiment,
    RetrainingExperiment,
)
from countermove.params import LookaheadParameters

ROOT = Path(__file__).parents[2]
PAPER = [
    path
    for path in sorted((ROOT / "conf" / "paper").glob("lookahead_*.yml"))
    if "figure_2" not in path.stem and "figure_3" not in path.stem and "figure_4" not in path.stem
]
SMALL = {
    "figure_1": {"rounds": 2, "seeds": [0, 1]},
    "theorem_3": {"response_strengths": [0.5], "rounds": 30, "penalty": 0.05},
    "beliefs": {"response_strength": 0.2, "believed_rows": [100], "seeds": [0, 1]},
    "figure_5": {"seeds": [0, 1]},
}


@pytest.fixture(scope="module")
def people() -> LookaheadTable:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 3))
    y = (rng.random(300) < 1.0 / (1.0 + np.exp(-X @ np.array([1.0, -0.7, 0.4])))).astype(float)
    return LookaheadTable(Crowd(X, y), ("income", "age", "noise"), ("income", "noise"))


def said(kind: str) -> LookaheadParameters:
    experiment = {"kind": kind, **SMALL[kind]}
    return LookaheadParameters.model_validate({"dataset": "town", "experiment": experiment})


@pytest.mark.parametrize("kind", SMALL)
def test_every_kind_is_measured_summed_up_drawn_and_stated(kind, people, tmp_path):
    experiment = said(kind).build()
    experiment.cells(people, 0).to_csv(tmp_path / "cells.csv", index=False)
    read = pd.read_csv(tmp_path / "cells.csv")  # as the next node meets it
    means = experiment.means(read)
    assert 0 < len(means) <= len(read)
    found = Measured(read)
    page = experiment.page(found, means, experiment.figure(found, means, "small_run"))
    assert "Small run" in page
    assert str(means.columns[0]) in page
    facts = lookahead_facts(people, means, said(kind).model_dump(mode="json"), 0)
    stated = json.loads(json.dumps(facts, allow_nan=False))
    assert stated["people"] == 300
    assert stated["experiment"]["kind"] == kind
    assert len(stated["results"]) == len(means)


@pytest.mark.parametrize("kind", ["figure_1", "beliefs", "figure_5"])
def test_the_same_seed_gives_the_same_cells(kind, people):
    one, other = (said(kind).build().cells(people, 3) for _ in range(2))
    pd.testing.assert_frame_equal(one, other)
    assert not one.equals(said(kind).build().cells(people, 4))


@pytest.mark.parametrize("path", PAPER, ids=lambda path: path.stem)
def test_configurations_of_the_paper_are_what_they_are_called(path):
    run = yaml.safe_load(path.read_text())["run"]
    assert run["pipelines"] == "lookahead"
    parameters = LookaheadParameters.model_validate(run["params"]["lookahead"])
    assert parameters.name == path.stem
    parameters.build()


def test_exact_shares_need_no_seeds(people):
    cells = RetrainingExperiment(groups="weights", rounds=2).cells(people, 0)
    assert cells["seed"].unique().tolist() == [0]


def test_measured_and_predicted_rates_agree_and_level_0_moves_the_model(people):
    cells = RatesExperiment(response_strengths=(2.0,), penalty=0.05, rounds=99).cells(people, 0)
    known = cells.dropna(subset=["predicted"])
    assert len(known) == 6
    assert (known["status"] == "stable").all()
    slow = known[known["predicted"] > 1e-2]
    assert len(slow) >= 3
    assert np.allclose(slow["measured"], slow["predicted"], rtol=2e-2)
    assert np.allclose(slow["radius"], slow["predicted"], rtol=2e-2)
    assert (known["distance"] < 1e-10).all()
    with_zero = cells[cells["mixture"].str.contains("level 0")]
    assert (with_zero["distance"] > 1e-3).all()


def test_only_deep_thinkers_have_beliefs(people):
    with pytest.raises(ParameterError, match="only people of level 2 or more look ahead"):
        BeliefsExperiment(shares={1: 1.0}).cells(people, 0)
    with pytest.raises(ParameterError, match="no column 'aeg'; did you mean 'age'"):
        BeliefsExperiment(respond_below="aeg").cells(people, 0)


def test_the_column_that_decides_is_the_one_missed(people):
    means = ImportanceExperiment(seeds=(0, 1, 2, 3)).means(
        ImportanceExperiment(seeds=(0, 1, 2, 3)).cells(people, 0)
    )
    assert means["column"].iloc[0] == "income"
    with pytest.raises(ParameterError, match=r"in \(0, 1\)"):
        ImportanceExperiment(test_share=1.0)


@pytest.mark.parametrize(
    ("change", "where"),
    [
        ({"kind": "figure_1", "mixtures": [{-1: 1.0}]}, "mixtures"),
        ({"kind": "figure_1", "solver": "sloppy"}, "solver"),
        ({"kind": "figure_1", "seed": 3}, "seed"),
        ({"kind": "figure_9"}, "figure_9"),
    ],
)
def test_settings_that_make_no_sense_are_named(change, where):
    with pytest.raises(ValidationError, match=where):
        LookaheadParameters.model_validate({"dataset": "town", "experiment": change})


def test_columns_nobody_can_change_are_refused(people):
    with pytest.raises(ParameterError, match="the learner's constant"):
        RetrainingExperiment(columns=("constant",)).cells(people, 0)
    with pytest.raises(ParameterError, match="no column 'incom'; did you mean 'income'"):
        RetrainingExperiment(columns=("incom",)).cells(people, 0)
    fixed = LookaheadTable(people.crowd, people.names)
    with pytest.raises(ParameterError, match="at least one column"):
        RetrainingExperiment().cells(fixed, 0)
