"""Another kind does not inherit the settings of the one in conf/base."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import yaml

from countermove.params import SermParameters
from countermove.params.loader import VIZ, SettingsLoader, without_other_kinds
from countermove.settings import CONFIG_LOADER_ARGS, CONFIG_LOADER_CLASS

BASE = Path(__file__).parents[2] / "conf" / "base" / "parameters_serm.yml"


def loaded(folder: Path, env: dict[str, Any] | None = None, **runtime: Any) -> dict[str, Any]:
    """Return ``serm`` as a run reads it: base, an environment, then --params or --config."""
    for name in ("base", "local"):
        (folder / name).mkdir()
    (folder / "base" / "parameters_serm.yml").write_text(BASE.read_text())
    (folder / "base" / "globals.yml").write_text("seed: 0\n")
    if env is not None:
        (folder / "local" / "parameters.yml").write_text(yaml.safe_dump({"serm": env}))
    given = {"serm": runtime} if runtime else None
    loader = SettingsLoader(str(folder), runtime_params=given, **CONFIG_LOADER_ARGS)
    serm: dict[str, Any] = loader["parameters"]["serm"]
    SermParameters.model_validate(serm)
    return serm


LINEAR = {"kind": "linear", "direction": [1.0, 2.0]}
ROBUST = {"kind": "robust", "members": [{"kind": "best"}, {"kind": "smooth", "temperature": 0.2}]}


def test_the_project_uses_it():
    assert CONFIG_LOADER_CLASS is SettingsLoader


@pytest.mark.parametrize("by", ["environment", "run"])
@pytest.mark.parametrize(
    ("axis", "given"),
    [
        ("cost", LINEAR),
        ("response", {"kind": "smooth"}),
        ("response", {"kind": "smooth", "cost": LINEAR}),
        ("response", {"kind": "none"}),
        ("response", ROBUST),
        ("regulariser", {"kind": "burden", "strength": 0.06}),
        ("score", {"kind": "partly_linear", "hidden": [4]}),
    ],
)
def test_another_kind_stands_alone(tmp_path, by, axis, given):
    serm = (
        loaded(tmp_path, {axis: given})
        if by == "environment"
        else loaded(tmp_path, **{axis: given})
    )
    assert serm[axis] == given
    assert serm["training"]["patience"] == 7


@pytest.mark.parametrize("by", ["environment", "run"])
def test_the_same_kind_keeps_the_rest(tmp_path, by):
    given = {"cost": {"kind": "quadratic"}, "training": {"patience": 3}}
    serm = loaded(tmp_path, given) if by == "environment" else loaded(tmp_path, **given)
    assert serm["cost"] == {"kind": "quadratic", "scale": 1.0}
    assert serm["training"]["patience"] == 3
    assert serm["training"]["max_epochs"] == 50


def test_a_run_that_switches_back_has_the_settings_of_base(tmp_path):
    serm = loaded(tmp_path, {"cost": LINEAR}, cost={"kind": "quadratic"})
    assert serm["cost"] == {"kind": "quadratic", "scale": 1.0}


def test_a_run_changes_a_setting_of_the_kind_that_the_environment_chose(tmp_path):
    environment = {"response": {"kind": "smooth", "start": "stay"}}
    serm = loaded(tmp_path, environment, response={"temperature": 0.2})
    assert serm["response"] == {"kind": "smooth", "start": "stay", "temperature": 0.2}


def test_a_run_that_names_a_third_kind_drops_both(tmp_path):
    serm = loaded(tmp_path, {"cost": LINEAR}, cost={"kind": "own", "function": "a:b"})
    assert serm["cost"] == {"kind": "own", "function": "a:b"}


def test_members_of_a_robust_response_replace_those_of_the_environment(tmp_path):
    other = {"members": [{"kind": "none"}, {"kind": "best", "cost": LINEAR}]}
    serm = loaded(tmp_path, {"response": ROBUST}, response=other)
    assert serm["response"] == {"kind": "robust", **other}


def test_the_cost_of_a_response_may_change_its_kind_inside_the_same_kind(tmp_path):
    mixture = {"kind": "mixture", "direction": [1.0], "gamma": 0.5}
    environment = {"response": {"kind": "best", "cost": mixture}}
    serm = loaded(tmp_path, environment, response={"cost": {"kind": "quadratic"}})
    assert serm["response"] == {"kind": "best", "cost": {"kind": "quadratic"}}


def test_settings_without_a_kind_are_merged():
    below, above = {"a": {"x": 1, "y": 2}, "b": None}, {"a": {"x": 3}, "b": {"z": 1}}
    assert without_other_kinds(below, above) == below


def test_kedro_viz_looks_at_the_dataset_that_was_run_last(tmp_path, monkeypatch):
    conf, reports = tmp_path / "conf", tmp_path / "data" / "08_reporting"
    (conf / "base").mkdir(parents=True)
    for age, name in enumerate(["german", "credit"]):
        (reports / name).mkdir(parents=True)
        (reports / name / "summary.json").write_text("{}")
        os.utime(reports / name / "summary.json", (1000 - age, 1000 - age))
    assert not SettingsLoader(str(conf), **CONFIG_LOADER_ARGS).runtime_params
    monkeypatch.setitem(sys.modules, VIZ, ModuleType(VIZ))
    assert SettingsLoader(str(conf), **CONFIG_LOADER_ARGS).runtime_params == {"dataset": "german"}
    named = SettingsLoader(str(conf), runtime_params={"dataset": "credit"}, **CONFIG_LOADER_ARGS)
    assert named.runtime_params == {"dataset": "credit"}
    other = tmp_path / "elsewhere" / "conf"
    (other / "base").mkdir(parents=True)
    assert not SettingsLoader(str(other), **CONFIG_LOADER_ARGS).runtime_params
