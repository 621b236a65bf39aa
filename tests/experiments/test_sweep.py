"""A sweep is a loop over one comparison; its grid is what the YAML says."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import yaml
from pydantic import ValidationError

from countermove.data.cleaning import clean
from countermove.data.schema import load_schema
from countermove.data.synthetic import fabricate
from countermove.errors import ModelFileError, ParameterError, UnknownNameError
from countermove.execution import Execution
from countermove.experiments import Measured, Sources
from countermove.experiments.cell_store import CellStore
from countermove.experiments.serm.sweep import Grid
from countermove.experiments.tables import make_split
from countermove.params import GROUPS
from countermove.params.serm_experiments import SweepParameters
from countermove.people import MixtureCost, QuadraticCost

ROOT = Path(__file__).parents[2]


def tables(name):
    if name != "tiny":
        raise UnknownNameError(f"no {name}")
    schema = load_schema("tiny", ROOT / "conf" / "base" / "schemas")
    return clean(fabricate("tiny"), schema), schema


def grid(**changes) -> Grid:
    standard = {
        "datasets": ["tiny"],
        "splits": 2,
        "settings": {"optimiser": "adam", "selection": "none", "max_epochs": 3},
    }
    return Grid(**(standard | {"costs": [QuadraticCost(1.0), QuadraticCost(5.0)]} | changes))


def run_sweep(plan: Grid, tables, seed: int, mapper=None, store=None):
    return plan.cells(Sources(tables, store=store), seed, mapper)


@pytest.fixture(scope="module")
def cells():
    return run_sweep(grid(), tables, seed=0)


def test_every_cell_of_the_grid_is_there_once(cells):
    found = list(cells[["dataset", "split", "scale"]].itertuples(index=False, name=None))
    assert found == [("tiny", split, scale) for split in (0, 1) for scale in (1.0, 5.0)]


def test_the_benchmark_knows_no_cost(cells):
    assert (cells.groupby("split")["benchmark"].nunique() == 1).all()


def test_same_seed_same_cells(cells):
    again = run_sweep(grid(), tables, seed=0)
    assert again.drop(columns="seconds").equals(cells.drop(columns="seconds"))


def test_the_people_of_a_cell_may_differ():
    cost = QuadraticCost(5.0)
    assert grid().people(cost) == "best"
    people = grid(never=0.3, log_sd=0.5, settings={"temperature": 0.2}).people(cost)
    assert (people.never, people.log_sd, people.kinds[0].name) == (0.3, 0.5, "best")
    assert people.cost is cost
    said = {"response": {"kind": "smooth", "temperature": 0.2, "never": 0.1, "log_sd": 0.4}}
    built = SweepParameters(**said).build()
    assert (built.response, built.never, built.log_sd) == ("smooth", 0.1, 0.4)
    assert built.people(cost).kinds[0].temperature == 0.2
    assert SweepParameters().build().settings["eval_temperature"] is None
    with pytest.raises(ValidationError, match="judged as trained"):
        SweepParameters(response=said["response"] | {"eval_temperature": 1.0})


def test_splits_are_standardised_on_their_training_rows_and_balanced():
    split = make_split(grid(divide_by_root_d=False), tables("tiny"), seed=3)
    X, y = split.train
    assert np.abs(X.mean(axis=0)).max() < 1e-12
    assert np.abs(X.std(axis=0) - 1).max() < 1e-12
    assert abs(y.mean()) < 0.05


def test_hardts_rule_stands_beside_a_mixture():
    d = len(load_schema("tiny", ROOT / "conf" / "base" / "schemas").feature_names)
    cost = MixtureCost(np.ones(d), gamma=0.5)
    cells = run_sweep(grid(costs=[cost], splits=1), tables, seed=0)
    assert cells["hardt"].between(0, 1).all()
    assert cells["gamma"].tolist() == [0.5]


def test_missing_table_stops_the_sweep_unless_told_otherwise(caplog):
    with pytest.raises(UnknownNameError):
        run_sweep(grid(datasets=["tiny", "spam"]), tables, seed=0)
    few = run_sweep(grid(datasets=["spam", "tiny"], skip_missing=True, splits=1), tables, seed=0)
    assert set(few["dataset"]) == {"tiny"}
    assert "left out spam" in caplog.text
    with pytest.raises(ParameterError, match="none of the tables"):
        run_sweep(grid(datasets=["spam"], skip_missing=True), tables, seed=0)


def test_figure_has_a_line_per_rule(cells):
    lines = {line.name for line in grid().figure(Measured(cells), cells, "t").data}
    assert {"blind", "strategic"} <= lines


@pytest.mark.parametrize(
    "path", sorted((ROOT / "conf" / "paper").glob("*.yml")), ids=lambda path: path.stem
)
def test_paper_configurations_are_valid(path):
    said = yaml.safe_load(path.read_text())["run"]
    group = said["pipelines"]
    assert list(said["params"]) == [group]
    parameters = GROUPS[group].model_validate(said["params"][group])
    assert parameters.name == path.stem
    built = parameters.build()
    for name in ("dataset", "datasets", "experiment"):
        if hasattr(parameters, name) and hasattr(built, name):
            assert getattr(built, name) == getattr(parameters, name)


def without_times(cells):
    return cells.drop(columns="seconds")


def test_a_sweep_in_threads_is_the_same_sweep(cells):
    with Execution("threads", workers=2).open() as mapper:
        found = run_sweep(grid(), tables, 0, mapper)
    assert without_times(found).equals(without_times(cells))


def test_a_sweep_that_was_stopped_goes_on_where_it_was(cells, tmp_path, caplog):
    store = CellStore(tmp_path / "cells")
    run_sweep(grid(splits=1, costs=[QuadraticCost(1.0)]), tables, 0, store=store)
    assert len(list(store.folder.iterdir())) == 1
    caplog.clear()
    with caplog.at_level("INFO"):
        found = run_sweep(grid(), tables, 0, store=store)
    assert caplog.text.count("strategic") == 3
    assert without_times(found).equals(without_times(cells))
    caplog.clear()
    with caplog.at_level("INFO"):
        again = run_sweep(grid(), tables, 0, store=store)
    assert "strategic" not in caplog.text
    assert again.equals(found)


@pytest.mark.parametrize(
    "changes",
    [
        {"settings": {"optimiser": "adam", "selection": "none", "max_epochs": 2}},
        {"response": "smooth"},
        {"divide_by_root_d": False},
        {"costs": [QuadraticCost(2.0)]},
    ],
    ids=str,
)
def test_a_cell_is_known_only_by_everything_that_decides_it(changes, tmp_path):
    store = CellStore(tmp_path)
    run_sweep(grid(splits=1, costs=[QuadraticCost(1.0)]), tables, 0, store=store)
    run_sweep(
        grid(**({"splits": 1, "costs": [QuadraticCost(1.0)]} | changes)), tables, 0, store=store
    )
    assert len(list(tmp_path.iterdir())) == 2


def test_other_rows_are_another_cell(tmp_path):
    def changed(name, steps=None):
        typed, schema = tables(name)
        return typed.iloc[1:], schema

    store, small = CellStore(tmp_path), grid(splits=1, costs=[QuadraticCost(1.0)])
    run_sweep(small, tables, 0, store=store)
    run_sweep(small, changed, 0, store=store)
    assert len(list(tmp_path.iterdir())) == 2


def test_a_damaged_cell_is_named(tmp_path):
    store, small = CellStore(tmp_path), grid(splits=1, costs=[QuadraticCost(1.0)])
    run_sweep(small, tables, 0, store=store)
    (path,) = tmp_path.iterdir()
    path.write_text("{")
    with pytest.raises(ModelFileError, match=f"{path.name} is no finished cell.*delete it"):
        run_sweep(small, tables, 0, store=store)
