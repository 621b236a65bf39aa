"""``--env=prod``: secrets from the environment reach registry and history, and no message."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

from countermove.errors import StorageError
from countermove.production.registry import Registry, Store

SECRET = "geheim-4711"
TINY = "--params=dataset=tiny"
pytestmark = pytest.mark.slow


def production(project, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "kedro", "run", "--pipeline=retrain", "--env=prod", *arguments],
        cwd=project.path,
        env=os.environ | {"OMP_NUM_THREADS": "1"} | environment,
        capture_output=True,
        text=True,
        check=False,
    )


def test_a_history_from_the_environment_and_a_registry_with_options(project, tmp_path):
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (project.path / "conf/prod/globals.yml").write_text("registry: dir:/\n")
    # So few rows need their own shares.
    shutil.copy(project.path / "conf/test/parameters.yml", project.path / "conf/prod")
    credentials = project.path / "conf/prod/credentials.yml"
    target = "target_protocol: file, target_options: {auto_mkdir: true}"
    options = '{path: "${oc.env:REGISTRY_FOLDER}", ' + target + "}"
    credentials.write_text(credentials.read_text().replace("registry: {}", f"registry: {options}"))
    database = elsewhere / "runs.db"
    ran = production(
        project,
        TINY,
        COUNTERMOVE_HISTORY_URL=f"sqlite:///{database}",
        REGISTRY_FOLDER=str(elsewhere / "models"),
    )
    # 240 rows bear no bound on the error that production would allow: a cold start is refused.
    assert ran.returncode == 6, ran.stderr
    assert database.exists()
    assert not (project.path / "data/06_models/history.db").exists()
    registry = Registry(str(elsewhere / "models/tiny"))
    assert len(registry.decisions()) == 1
    assert len(registry.versions()) == 1


def test_no_message_holds_the_password(project):
    url = f"postgresql+psycopg://risk:{SECRET}@127.0.0.1:9/history"
    ran = production(project, TINY, COUNTERMOVE_HISTORY_URL=url)
    assert ran.returncode == 1
    assert "StorageError: cannot open the history" in ran.stderr
    assert SECRET not in ran.stdout + ran.stderr
    unreadable = production(project, TINY, COUNTERMOVE_HISTORY_URL=url.replace("@127", "@x:y@127"))
    assert unreadable.returncode == 1
    assert SECRET not in unreadable.stdout + unreadable.stderr


@pytest.mark.parametrize("url", ["zip://models", "github://org:repo@main/models"])
def test_no_message_holds_the_options_of_a_store(url):
    with pytest.raises(StorageError, match="with the options fo, token") as refused:
        Store(url, {"fo": SECRET, "token": SECRET})
    assert SECRET not in str(refused.value)


def test_the_wheel_retrains_from_a_folder_of_its_own(project, tmp_path_factory):
    root = Path(__file__).parents[2]
    # Beside every project: Kedro takes the nearest one above the working folder.
    source, installed, place = (
        tmp_path_factory.mktemp(name) for name in ("source", "installed", "place")
    )
    for name in ("pyproject.toml", "README.md", "LICENSE", ".telemetry"):
        shutil.copy(root / name, source / name)
    for name in ("src", "conf", "requirements"):
        shutil.copytree(root / name, source / name, ignore=shutil.ignore_patterns("__pycache__"))
    made = subprocess.run(
        [sys.executable, "-m", "kedro", "package"],
        cwd=source,
        capture_output=True,
        text=True,
        check=False,
    )
    if made.returncode and "setuptools" in made.stdout + made.stderr:
        pytest.skip("kedro package needs a package index for setuptools")
    assert made.returncode == 0, made.stdout + made.stderr
    [wheel] = (source / "dist").glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(installed)
    with tarfile.open(source / "dist" / "conf-countermove.tar.gz") as archive:
        archive.extractall(place, filter="data")
    environment = os.environ | {"PYTHONPATH": str(installed), "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-m", "countermove", "--pipeline=retrain", "--env=test"]

    def night() -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            command, cwd=place, env=environment, capture_output=True, text=True, check=False
        )

    first = night()
    assert first.returncode == 0, first.stderr
    assert (place / "data/06_models/tiny/champion.json").exists()
    second = night()
    assert second.returncode == 0, second.stderr
    assert "no new batch" in second.stderr
    type(project)(place).bring_batch("one")
    assert night().returncode in (0, 3)
    shown = "import countermove; print(countermove.__file__)"
    where = subprocess.run(
        [sys.executable, "-c", shown], env=environment, cwd=place, capture_output=True, text=True
    )
    assert str(installed) in where.stdout
