"""Every environment can override everything, and what is the user's own is left alone."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml
from omegaconf.errors import OmegaConfBaseException

from countermove.errors import ParameterError, UnknownNameError
from countermove.params import GROUPS
from countermove.params.checking import check_settings, without_effect
from countermove.params.loader import SettingsLoader
from countermove.settings import CONFIG_LOADER_ARGS

CONF = Path(__file__).parents[2] / "conf"


@pytest.fixture
def conf(tmp_path: Path) -> Path:
    """The project's configuration, with an environment ``own`` and an empty ``local``."""
    skipped = shutil.ignore_patterns("local", "paper")
    folder = Path(shutil.copytree(CONF, tmp_path / "conf", ignore=skipped))
    for name in ("local", "own"):
        (folder / name).mkdir()
    return folder


def load(conf: Path, env: str | None = None, **given: Any) -> SettingsLoader:
    return SettingsLoader(str(conf), env=env, runtime_params=given, **CONFIG_LOADER_ARGS)


def write(path: Path, content: dict[str, Any]) -> None:
    path.parent.mkdir(exist_ok=True)
    path.write_text(yaml.safe_dump(content))


def places(loader: SettingsLoader) -> dict[str, str]:
    """Return which files a run of the chain, of a look-ahead and of a sweep would read or write."""
    catalog = loader["catalog"]
    schemas = catalog["tables"]["schemas"]
    return {
        "typed": catalog["typed"]["filepath"],
        "schema": catalog["schema"]["filepath"],
        "registry": catalog["registry"]["schema"]["path"],
        "lookahead": catalog["lookahead_future"]["filepath"],
        "sweep": catalog["sweep_cells"]["filepath"],
        "schemas": ", ".join(Path(each).parent.name for each in schemas),
    }


@pytest.mark.parametrize("file", ["parameters.yml", "globals.yml"])
@pytest.mark.parametrize("env", ["local", "own"])
def test_the_dataset_of_an_environment_is_that_of_parameters_and_of_files(conf, env, file):
    write(conf / env / file, {"dataset": "tiny"})
    loader = load(conf, None if env == "local" else env)
    assert loader["parameters"]["dataset"] == "tiny"
    assert loader["parameters"]["lookahead"]["dataset"] == "tiny"
    found = places(loader)
    assert found["typed"] == "data/02_intermediate/tiny/typed.parquet"
    assert found["lookahead"] == "data/08_reporting/tiny/future.json"
    assert found["schema"] == str(conf / "base/schemas/tiny.yml")


def test_params_win_over_every_environment(conf):
    write(conf / "local" / "parameters.yml", {"dataset": "tiny", "sweep": {"name": "mine"}})
    found = places(load(conf, dataset="german"))
    assert found["typed"] == "data/02_intermediate/german/typed.parquet"
    assert found["sweep"] == "data/08_reporting/mine/sweep.csv"
    assert places(load(conf, sweep={"name": "x"}))["sweep"] == "data/08_reporting/x/sweep.csv"


def test_names_of_results_are_read_from_an_environment_too(conf):
    write(conf / "own" / "parameters.yml", {"lookahead": {"name": "l", "dataset": "german"}})
    catalog = load(conf, "own")["catalog"]
    assert catalog["lookahead_cells"]["filepath"] == "data/08_reporting/l/cells.csv"
    assert catalog["lookahead_facts"]["filepath"] == "data/08_reporting/german/lookahead.json"
    assert catalog["collective_facts"]["filepath"] == "data/08_reporting/credit/collective.json"


def test_a_schema_of_an_environment_wins_and_the_others_stay(conf):
    write(conf / "own" / "schemas" / "tiny.yml", {})
    found = places(load(conf, "own", dataset="tiny"))
    own = str(conf / "own/schemas/tiny.yml")
    assert (found["schema"], found["registry"], found["schemas"]) == (own, own, "own, base")
    other = places(load(conf, "own", dataset="german"))
    assert other["schema"] == str(conf / "base/schemas/german.yml")


def test_an_entry_of_the_catalog_is_replaced_and_others_stand_beside_it(conf):
    entry = {"type": "pandas.CSVDataset", "filepath": "mine.csv"}
    write(conf / "local" / "catalog.yml", {"typed": entry, "my_own_table": entry})
    write(conf / "base" / "catalog_mine.yml", {"another_of_mine": entry})
    catalog = load(conf)["catalog"]
    assert catalog["typed"] == catalog["my_own_table"] == catalog["another_of_mine"] == entry
    assert catalog["schema"]["type"] == "countermove.catalog.SchemaDataset"


def test_an_unknown_environment_is_refused_with_the_nearest(conf):
    with pytest.raises(UnknownNameError, match=r"no environment 'owm' in .*; did you mean 'own'\?"):
        load(conf, "owm")


def test_the_environment_cluster_takes_the_schedulers_address_from_the_shell(conf, monkeypatch):
    monkeypatch.setenv("COUNTERMOVE_SCHEDULER", "tls://host:8786")
    execution = load(conf, "cluster")["parameters"]["execution"]
    assert (execution["engine"], execution["scheduler"]) == ("dask", "tls://host:8786")
    assert execution["tls"]["ca_file"] == "conf/local/ca.pem"
    assert load(conf, "cluster", execution={"tls": None})["parameters"]["execution"]["tls"] is None
    monkeypatch.delenv("COUNTERMOVE_SCHEDULER")
    with pytest.raises(OmegaConfBaseException, match="COUNTERMOVE_SCHEDULER"):
        load(conf, "cluster")["parameters"]


def test_a_project_without_conf_local_reads_base(conf):
    (conf / "local").rmdir()
    assert load(conf)["parameters"]["dataset"] == "credit"


def test_configuration_may_be_the_archive_that_kedro_package_leaves(conf, tmp_path):
    archive = tmp_path / "conf.tar.gz"
    subprocess.run(["tar", "-czf", archive, "-C", conf.parent, "conf"], check=True)
    loader = load(archive, dataset="tiny")
    assert "favourable" in Path(places(loader)["schema"]).read_text()
    assert loader["parameters"]["serm"]["cost"]["kind"] == "quadratic"


def test_own_groups_are_left_alone_and_unknown_params_refused(conf):
    write(conf / "local" / "parameters.yml", {"our_bank": {"branch": 7}})
    loader = load(conf, our_bank={"branch": 8})
    params = loader["parameters"]
    assert params["our_bank"] == {"branch": 8}
    check_settings(params, GROUPS, own=loader.groups_in_files)
    params = load(conf, our_bnk={"branch": 8})["parameters"]
    with pytest.raises(ParameterError, match="no setting our_bnk; did you mean 'our_bank'"):
        check_settings(params, GROUPS, own=loader.groups_in_files)


def test_what_has_no_effect_is_said():
    said = list(
        without_effect(
            {"serm": {}, "smer": {}, "our_bank": {}, "scores": {}},
            GROUPS,
            used={"serm", "scores"},
            given={"serm", "ingest"},
            read={"ingest"},
        )
    )
    assert said == [
        "nothing reads the group smer of your configuration; did you mean serm?",
        "--params serm…: this run does not read serm, so that changes nothing",
    ]
