"""What a Kedro engineer types, beside `kedro run --pipeline`: all of it works here."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from tests.conftest import Project, copy_project

pytestmark = pytest.mark.slow
ROOT = Path(__file__).parents[2]
TYPED = "data/02_intermediate/tiny/typed.parquet"


@pytest.fixture(scope="module")
def ingested(tmp_path_factory: pytest.TempPathFactory) -> Project:
    project = copy_project(tmp_path_factory.mktemp("ingested"))
    assert project.run("--pipeline=ingest", "--env=test").returncode == 0
    return project


def completed(said: str) -> list[str]:
    return re.findall(r"Completed node: (\S+)", said)


@pytest.mark.parametrize(
    ("options", "nodes"),
    [
        (["--to-outputs=typed"], ["ingest.clean_table"]),
        (
            ["--from-nodes=ingest.split", "--to-nodes=ingest.fit_standardiser"],
            ["ingest.split", "ingest.fit_standardiser"],
        ),
        (["--nodes=ingest.fit_standardiser"], ["ingest.fit_standardiser"]),
        (["--only-missing-outputs", "--namespaces=ingest"], []),
    ],
    ids=lambda value: value[0] if value else "none",
)
def test_a_part_of_the_chain_runs_by_itself(ingested, options, nodes):
    ran = ingested.run("--pipeline=serm", "--env=test", *options)
    assert ran.returncode == 0, ran.stderr
    assert completed(ran.stderr) == nodes


def test_a_missing_output_is_made_again_and_lines_of_the_log_bear_the_time(ingested):
    (ingested.path / TYPED).unlink()
    ran = ingested.run("--pipeline=ingest", "--env=test", "--only-missing-outputs")
    assert "ingest.clean_table" in completed(ran.stderr)
    assert (ingested.path / TYPED).exists()
    logged = [line for line in ran.stderr.splitlines() if "Completed" in line]
    assert all(re.match(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d", line) for line in logged)


@pytest.mark.parametrize("runner", ["ThreadRunner", "ParallelRunner"])
def test_another_runner_leaves_the_same_table(ingested, runner):
    before = (ingested.path / TYPED).read_bytes()
    ran = ingested.run("--pipeline=ingest", "--env=test", f"--runner={runner}")
    assert ran.returncode == 0, ran.stderr
    assert (ingested.path / TYPED).read_bytes() == before


def test_the_catalog_describes_itself(ingested):
    patterns = ingested.kedro("catalog", "list-patterns", "--env=test").stdout
    assert {"{split}_table", "{stage}_model", "{split}_rows"} <= set(yaml.safe_load(patterns))
    described = ingested.kedro("catalog", "describe-datasets", "--pipeline=ingest", "--env=test")
    assert "typed" in described.stdout
    resolved = ingested.kedro("catalog", "resolve-patterns", "--pipeline=ingest", "--env=test")
    assert "data/03_primary/tiny/train.parquet" in resolved.stdout


def test_ipython_has_catalog_context_and_pipelines(ingested):
    code = "print('seen', catalog.load('typed').shape[0], context.env, 'serm' in pipelines)"
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    ran = subprocess.run(
        [sys.executable, "-m", "kedro", "ipython", "--env=test", "-c", code],
        cwd=ingested.path,
        env=os.environ | {"PATH": path, "DO_NOT_TRACK": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert "seen 240 test True" in ran.stdout, ran.stderr


def test_own_nodes_parameters_entries_and_schemas_live_beside_ours(ingested):
    """A group of parameters, a catalog entry and a schema of an environment of one's own."""
    conf = ingested.path / "conf" / "ours"
    (conf / "schemas").mkdir(parents=True)
    schema = (ingested.path / "conf/base/schemas/tiny.yml").read_text()
    (conf / "schemas" / "tiny.yml").write_text(schema)
    (conf / "parameters.yml").write_text("dataset: tiny\nour_bank: {branch: 7}\n")
    entry = {"our_table": {"type": "pandas.CSVDataset", "filepath": "data/ours.csv"}}
    (conf / "catalog.yml").write_text(yaml.safe_dump(entry))
    ran = ingested.run("--pipeline=ingest", "--env=ours", "--params", "our_bank.branch=8")
    assert ran.returncode == 0, ran.stderr
    explained = ingested.kedro("countermove", "explain", "ingest", "--env=ours").stdout
    assert "conf/ours/schemas/tiny.yml" in explained
    assert re.search(r"dataset +tiny +conf/ours/parameters.yml", explained)


def test_the_wheel_runs_outside_the_project(tmp_path):
    """`kedro package` leaves a wheel and an archive of conf; together they are enough."""
    source, place, site = tmp_path / "source", tmp_path / "elsewhere", tmp_path / "site"
    place.mkdir()
    names = ["src", "conf", "requirements", "pyproject.toml", "README.md", "LICENSE", ".telemetry"]
    subprocess.run(
        f"mkdir {source} && tar cf - -C {ROOT} --exclude=__pycache__ {' '.join(names)} "
        f"| tar xf - -C {source}",
        shell=True,
        check=True,
    )
    quiet = os.environ | {"DO_NOT_TRACK": "1"}
    package = [sys.executable, "-m", "kedro", "package"]
    subprocess.run(package, cwd=source, env=quiet, check=True, capture_output=True)
    [wheel], [conf] = (source / "dist").glob("*.whl"), (source / "dist").glob("conf-*.tar.gz")
    install = [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--no-index"]
    subprocess.run([*install, "--target", site, wheel], check=True, capture_output=True)
    run = [sys.executable, "-m", "countermove", f"--conf-source={conf}", "--pipeline=ingest"]
    ran = subprocess.run(
        [*run, "--env=test"],
        cwd=place,
        env=quiet | {"PYTHONPATH": str(site)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    assert (place / TYPED).exists()


def test_the_doctor_finds_the_installation_sound(project):
    # As a user starts it: the processes that Dask starts read the same script.
    script = Path(sys.executable).with_name("kedro")
    command = [str(script), "countermove", "doctor"]
    looked = subprocess.run(command, cwd=project.path, capture_output=True, text=True, check=False)
    assert "ok        packages that running needs" in looked.stdout
    assert "Dask: a process on loopback works" in looked.stdout
    assert "Start worker" not in looked.stderr
    listed = project.kedro("countermove")
    assert listed.returncode == 0
    assert "schema data/01_raw/my.csv" in listed.stdout
