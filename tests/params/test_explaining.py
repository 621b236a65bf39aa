"""Every effective setting with where it comes from, then nodes and datasets."""

from __future__ import annotations

import shutil
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import yaml

from countermove.params.explaining import DEFAULT, RUN, explain
from countermove.params.loader import SettingsLoader
from countermove.pipeline_registry import register_pipelines
from countermove.settings import CONFIG_LOADER_ARGS

ROOT = Path(__file__).parents[2]
PIPELINES = register_pipelines()


@pytest.fixture(scope="module")
def copied(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("project")
    shutil.copytree(ROOT / "conf", folder / "conf", ignore=shutil.ignore_patterns("local"))
    (folder / "conf" / "local").mkdir()
    return folder


def lines(folder: Path, pipeline: str, env: str | None = None, **params: Any) -> list[str]:
    source = str(folder / "conf")
    loader = SettingsLoader(source, env=env, runtime_params=params, **CONFIG_LOADER_ARGS)
    context = SimpleNamespace(project_path=folder, config_loader=loader)
    return list(explain(PIPELINES[pipeline], context))


def setting(shown: list[str], name: str) -> tuple[str, str]:
    """Return value and origin of a setting."""
    line = next(line for line in shown if line.split()[:1] == [name])
    _, value, origin = line.split(maxsplit=2)
    return value, origin


@pytest.mark.parametrize(
    "pipeline",
    [
        "serm",
        "retrain",
        *(pytest.param(name, marks=pytest.mark.slow) for name in ("score", "serm_parts")),
        pytest.param("estimate_people", marks=pytest.mark.slow),
    ],
)
def test_every_node_and_dataset_is_told_with_its_file(copied, pipeline):
    shown = lines(copied, pipeline)
    for node in PIPELINES[pipeline].nodes:
        assert f"  {node.name}" in shown
    for name in PIPELINES[pipeline].datasets():
        if not name.startswith("params:"):
            assert any(line.split()[1:2] == [name] and len(line.split()) > 2 for line in shown), (
                name
            )


def test_base_environment_run_and_default_are_told_apart(copied):
    given = {"cost": {"kind": "mixture", "direction": [1.0], "gamma": 0.5}}
    shown = lines(copied, "serm", "test", serm=given)
    assert setting(shown, "dataset") == ("tiny", "conf/base/parameters.yml")
    assert setting(shown, "serm.cost.gamma") == ("0.5", RUN)
    # Base says scale as well, of another kind.
    assert setting(shown, "serm.cost.scale") == ("1.0", DEFAULT)
    assert setting(shown, "serm.training.patience") == ("7", "conf/base/parameters_serm.yml")
    assert setting(shown, "ingest.split.train") == ("0.4", "conf/test/parameters.yml")
    assert setting(shown, "recourse.largest_loss") == ("0.02", "conf/base/parameters_recourse.yml")


def test_retrain_with_a_setting_of_the_environment(copied):
    shown = lines(copied, "retrain", "test")
    limit = setting(shown, "retrain.gates.transfer_bound.limit")
    assert limit == ("0.9", "conf/test/parameters_retrain.yml")
    bound = setting(shown, "retrain.gates.transfer_bound.bound")
    assert bound == ("worst_case_direct_upper", "conf/base/parameters_retrain.yml")


def test_production_is_told_without_its_secrets(copied, monkeypatch):
    monkeypatch.setenv("COUNTERMOVE_HISTORY_URL", "postgresql://user:secret@host/db")
    shown = lines(copied, "retrain", "prod")
    assert not any("secret" in line for line in shown)
    assert any(line.split()[1:] == ["history", "data/06_models/history.db"] for line in shown)


def test_a_part_that_base_leaves_out_is_told_as_default(copied):
    shown = lines(copied, "retrain", retrain={"mlflow": {"tracking_uri": "here"}})
    assert setting(shown, "retrain.mlflow.tracking_uri") == ("here", RUN)
    assert setting(shown, "retrain.mlflow.experiment") == ("countermove", DEFAULT)


def test_local_settings_are_told(copied):
    local = copied / "conf" / "local" / "parameters.yml"
    local.write_text(yaml.safe_dump({"score": {"method": "gradient"}}))
    shown = lines(copied, "score", score={"batch": "b1"})
    local.unlink()
    assert setting(shown, "score.method") == ("gradient", "conf/local/parameters.yml")
    assert setting(shown, "score.batch") == ("b1", RUN)


def test_the_command_prints_it_and_refuses_in_one_sentence(project):
    done = project.kedro("countermove", "explain", "score", "--env=test", "--params=score.batch=b1")
    assert done.returncode == 0, done.stderr
    assert setting(done.stdout.splitlines(), "score.batch") == ("b1", RUN)
    assert "data/08_reporting/tiny/score.json" in done.stdout
    wrong = project.kedro("countermove", "explain", "score", "--params=score.bach=b1")
    assert wrong.returncode == 1
    assert "there is no setting score.bach; did you mean 'score.batch'?" in wrong.stderr
    assert "Traceback" not in wrong.stderr


@pytest.mark.slow
def test_an_unknown_pipeline_is_answered_with_the_nearest(project):
    unknown = project.kedro("countermove", "explain", "scoer")
    assert "did you mean 'score'" in unknown.stderr
    assert "Traceback" not in unknown.stderr


def test_a_config_file_may_choose_another_kind(project):
    file = project.path / "other.yml"
    params = {"dataset": "tiny", "serm": {"cost": {"kind": "linear"}}}
    file.write_text(yaml.safe_dump({"run": {"pipelines": "ingest", "params": params}}))
    refused = project.run("--config", str(file))
    assert refused.returncode == 1
    # Not "no setting scale": that of base went with its kind.
    assert "serm.cost.direction is not set" in refused.stderr
