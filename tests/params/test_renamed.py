"""Experiments under their old names: pipelines, groups of settings and the files of a kind."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from countermove.params import PaperParameters
from countermove.params.loader import SettingsLoader
from countermove.params.renamed import FOLDERS, OLD, paper_group, renamed_run, renamed_settings
from countermove.pipeline_registry import register_pipelines

ROOT = Path(__file__).parents[2]
FILES = {
    "recourse": ("cells.csv", "means.csv", "figure.json", "page.html", "examples.csv"),
    "text": ("cells.csv", "means.csv", "figure.json", "page.html", "advice.csv"),
    "stylised": ("cells.csv", "means.csv", "figure.json", "figure.html", "picture.json"),
    "run_times": ("run_times.csv", "means.csv", "run_times.json", "run_times.html", None),
    "tradeoff": ("points.csv", "choices.csv", "tradeoff.json", "tradeoff.html", None),
    "fico": ("cells.csv", "means.csv", "figure.json", "page.html", None),
}


def loader(env: str = "base", **runtime) -> SettingsLoader:
    return SettingsLoader(
        str(ROOT / "conf"), env=env, runtime_params=runtime, base_env="base",
        default_run_env="base", merge_strategy={"parameters": "soft"},
    )  # fmt: skip


@pytest.mark.parametrize("old", sorted(OLD))
def test_an_old_pipeline_runs_as_paper_with_one_sentence(old):
    pipelines, params, said = renamed_run([old], {"seed": 3})
    assert pipelines == ["paper"]
    assert params["seed"] == 3
    assert said.startswith(f"pipeline {old!r} is now 'paper' with paper.experiment.kind=")
    assert said.endswith("; running that")
    assert old not in register_pipelines()
    group = loader(**params)["parameters"]["paper"]
    assert group["name"] == old
    assert FOLDERS[PaperParameters.model_validate(group).experiment.kind] == old


def test_other_pipelines_pass_unchanged():
    assert renamed_run(["serm"], {"seed": 3}) == (["serm"], {"seed": 3}, None)


@pytest.mark.parametrize(
    ("old", "group", "experiment"),
    [
        ("tradeoff", {"splits": 2}, {"kind": "tradeoff", "splits": 2}),
        ("stylised", {"experiment": "unknown"}, {"kind": "stylised", "picture": "unknown"}),
        ("recourse_text", {"dataset": "films"}, {"kind": "text", "dataset": "films"}),
        ("transfer_experiments", {"experiment": {"kind": "fico"}}, {"kind": "fico"}),
        ("transfer_experiments", {}, {"kind": "replicator"}),
    ],
)
def test_old_groups_are_the_group_paper(old, group, experiment):
    assert paper_group(old, group) == {"name": old, "experiment": experiment}
    assert paper_group(old, group | {"name": "mine"})["name"] == "mine"


def test_settings_of_an_old_group_come_from_every_place_they_came_from():
    """The environment's file and ``--params tradeoff.splits=2`` are merged as before."""
    _, params, _ = renamed_run(["tradeoff"], {"tradeoff": {"splits": 2}})
    experiment = loader("test", **params)["parameters"]["paper"]["experiment"]
    assert experiment["splits"] == 2
    assert experiment["datasets"] == ["tiny"]
    assert "shares" not in experiment


def test_old_groups_of_other_runs_are_let_be():
    assert renamed_settings({"tradeoff": {"splits": 2}, "seed": 0}) == {"seed": 0}
    assert set(loader("test")["parameters"]).isdisjoint(OLD)


@pytest.mark.parametrize("kind", FILES)
def test_files_are_called_by_the_kind_of_the_experiment(kind):
    catalog = loader(paper={"experiment": {"kind": kind}})["catalog"]
    names = [f"paper_{part}" for part in ("cells", "means", "figure", "page", "beside")]
    paths = [catalog[name].get("filepath") for name in names]
    assert tuple(path and Path(path).name for path in paths) == FILES[kind]
    folders = {Path(path).parent.name for path in paths if path}
    assert folders == {FOLDERS[kind]}


def test_a_name_is_the_folder_of_the_results():
    catalog = loader(paper={"name": "mine"})["catalog"]
    assert catalog["paper_cells"]["filepath"] == "data/08_reporting/mine/cells.csv"


@pytest.mark.parametrize("path", sorted((ROOT / "conf" / "paper").glob("*.yml")))
def test_no_configuration_of_a_paper_uses_an_old_name(path):
    run = yaml.safe_load(path.read_text())["run"]
    assert run["pipelines"] in ("paper", "sweep", "lookahead", "collective")
    assert set(run["params"]) == {run["pipelines"]}
    if run["pipelines"] == "paper":
        settings = PaperParameters.model_validate(run["params"]["paper"])
        assert settings.title == path.stem
        settings.build()
