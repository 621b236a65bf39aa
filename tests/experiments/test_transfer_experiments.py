"""Experiments on transferability: every kind runs and is drawn; searches are as published."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import yaml
from pydantic import ValidationError

from countermove.errors import DataError, UnknownNameError
from countermove.experiments import Measured, Sources
from countermove.experiments.transfer.fico import FicoExperiment, Lender
from countermove.experiments.transfer.published import (
    DrawnScores,
    coded_upper_covariate,
    published_search,
)
from countermove.params import PaperParameters

ROOT = Path(__file__).parents[2]
PAPER = sorted((ROOT / "conf" / "paper").glob("transfer_*.yml"))

SMALL = {
    "lemma": {"draws": 20_000, "thresholds": [0.5]},
    "dag": {"cases": ["CS1", "TS2"], "seeds": [0], "candidates": 5, "large": 2_000},
    "fico": {"seeds": [0], "steps": 2, "candidates": 10},
    "replicator": {"shares": [0.4, 0.6]},
    "bandit": {"deployments": 20, "runs": 2},
    "tightness": {"populations": 5},
}


def tables(name: str):
    """Give people with scores, as the fetched table has them."""
    if name != "fico":
        raise UnknownNameError(name)
    rng = np.random.default_rng(0)
    races = rng.choice(["white", "black", "hispanic", "asian"], 800)
    return pd.DataFrame({"score": rng.uniform(1.0, 99.0, 800), "race": races}), None


def said(kind: str) -> PaperParameters:
    experiment = {"kind": kind, **SMALL[kind]}
    return PaperParameters.model_validate({"experiment": experiment})


@pytest.mark.parametrize("kind", SMALL)
def test_every_kind_is_measured_summed_up_and_drawn(kind, tmp_path):
    experiment = said(kind).build()
    cells = experiment.cells(Sources(tables), 0)
    cells.to_csv(tmp_path / "cells.csv", index=False)
    read = pd.read_csv(tmp_path / "cells.csv")  # as the next node meets it
    means = experiment.means(read)
    assert 0 < len(means) <= len(cells)
    found = Measured(read)
    page = experiment.page(found, means, experiment.figure(found, means, "small_run"))
    assert "Small run" in page
    assert str(means.columns[0]) in page


@pytest.mark.parametrize("kind", ["dag", "fico", "bandit"])
def test_the_same_seed_gives_the_same_cells(kind):
    one, other = (said(kind).build().cells(Sources(tables), 3) for _ in range(2))
    pd.testing.assert_frame_equal(one, other)


@pytest.mark.parametrize("path", PAPER, ids=lambda path: path.stem)
def test_configurations_of_the_paper_are_what_they_are_called(path):
    run = yaml.safe_load(path.read_text())["run"]
    assert run["pipelines"] == "paper"
    parameters = PaperParameters.model_validate(run["params"]["paper"])
    assert parameters.name == path.stem
    parameters.build()


def test_every_figure_of_the_paper_has_a_configuration():
    names = {path.stem for path in PAPER}
    figures = {f"transfer_figure_{number}" for number in (3, 4, 5, 6, 7)}
    assert names == figures | {"transfer_lemma_a3", "transfer_appendix_e", "transfer_appendix_g"}


@pytest.mark.parametrize(
    "experiment",
    [
        {"kind": "dag", "cases": ["CS3"]},
        {"kind": "lemma", "budget": 0.0},
        {"kind": "lemma", "thresholds": [1.0]},
        {"kind": "replicator", "shares": [1.0]},
        {"kind": "replicator", "utilities": {"a": [[1.0, -1.0], [0.0, 1.0]]}},
        {"kind": "fico", "lenders": {"a": {"penalty": "l3"}}},
        {"kind": "fico", "dynamics": {"decision_effect": 1.0}},
        {"kind": "figure_3"},
    ],
)
def test_nonsense_is_refused_before_anything_runs(experiment):
    with pytest.raises(ValidationError):
        PaperParameters.model_validate({"experiment": experiment})


def test_the_least_of_many_noisy_errors_is_too_low():
    """Two hundred coin flips a threshold, and nothing to find: the search still finds .08."""
    rng = np.random.default_rng(0)
    people = DrawnScores(rng.random(200), rng.random(200) < 0.5)
    searches = [
        published_search(people, lambda _: DrawnScores(rng.random(200), rng.random(200) < 0.5))
        for _ in range(30)
    ]
    assert np.mean([search.loss for search in searches]) > 0.05
    assert np.mean([search.loss_again for search in searches]) == pytest.approx(0.0, abs=0.03)


def test_the_coded_variance_is_infinite_where_a_bin_is_empty():
    before = np.linspace(-1.0, 1.0, 300)[:, None]
    noisy = np.random.default_rng(0).random(300) < 0.5 + 0.4 * np.sign(before[:, 0])
    source = DrawnScores(before[:, 0], noisy, before)
    gap = np.where(before > 0, before + 1.0, before)
    search = published_search(source, lambda t: DrawnScores(gap[:, 0], gap[:, 0] > 0.3, gap))
    assert search.source.error(search.best) > 0.0
    assert coded_upper_covariate(search) == np.inf


def test_a_lender_needs_both_outcomes():
    with pytest.raises(DataError, match="both"):
        Lender().fit(np.zeros((4, 1)), np.ones(4, dtype=bool))


@pytest.mark.parametrize(
    ("table", "says", "rows"),
    [
        (pd.DataFrame({"score": [1.0]}), "no column race", ()),
        (pd.DataFrame({"score": [1.0, 2.0], "race": ["white", "green"]}), r"1 row\(s\): 1", (1,)),
    ],
)
def test_tables_without_scores_or_known_groups_are_refused(table, says, rows):
    with pytest.raises(DataError, match=says) as error:
        FicoExperiment(dataset="mine").cells(Sources(lambda name: (table, None)), 0)
    assert error.value.rows == rows


def test_strong_penalties_may_leave_one_score_for_all():
    experiment = FicoExperiment(
        lenders={"blunt": Lender("l1", 1e-4)}, seeds=(0,), steps=2, candidates=5
    )
    cells = experiment.cells(Sources(tables), 0)
    assert len(cells) == 2
    assert cells["expected"].tolist() == pytest.approx([0.0, 0.0])


@pytest.mark.slow
def test_the_pipeline_runs_as_a_user_runs_it(project):
    outcome = project.run("--pipeline=paper", "--env=test")
    assert outcome.returncode == 0, outcome.stderr
    folder = project.path / "data" / "08_reporting" / "replicator"
    assert {path.name for path in folder.iterdir()} == {
        "cells.csv",
        "means.csv",
        "figure.json",
        "page.html",
    }
