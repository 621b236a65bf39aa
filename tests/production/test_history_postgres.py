"""The history keeps its word on SQLite and on a real PostgreSQL server."""

from __future__ import annotations

import os
import pwd
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from glob import glob
from pathlib import Path

import pytest

from countermove.errors import LockedError, ModelFileError, StorageError
from countermove.production.history import DecisionHistory
from countermove.production.registry import Decision

PASSWORD = "p@ss:w/rd"
QUOTED = "p%40ss%3Aw%2Frd"
ALONE = """
import sys, time
from countermove.production.history import DecisionHistory
with DecisionHistory(sys.argv[1], "credit").alone():
    sys.stdout.write("alone\\n")
    sys.stdout.flush()
    time.sleep(60)
"""


def binary(name: str) -> str | None:
    """Return where a program of PostgreSQL lies, also off the path as Debian puts it."""
    beside = sorted(glob(f"/usr/lib/postgresql/*/bin/{name}"))
    found = shutil.which(name) or (beside[-1] if beside else None)
    return None if found is None else str(Path(found).resolve())


@dataclass(frozen=True)
class Server:
    """A PostgreSQL server of this test."""

    folder: Path
    port: int
    prefix: tuple[str, ...]

    @property
    def url(self) -> str:
        return f"postgresql+psycopg://postgres:{QUOTED}@127.0.0.1:{self.port}/postgres"

    def start(self) -> None:
        """Start the server and wait until it answers."""
        said = f"-p {self.port} -k {self.folder} -c listen_addresses=127.0.0.1 -c fsync=off"
        settings = ("-D", str(self.folder / "data"), "-w", "-l", str(self.folder / "log"))
        self.run(str(binary("pg_ctl")), *settings, "-o", said, "start")

    def stop(self, mode: str) -> None:
        """Stop the server; ``immediate`` is a crash to those connected."""
        settings = ("-D", str(self.folder / "data"), "-m", mode, "-w")
        self.run(str(binary("pg_ctl")), *settings, "stop")

    def run(self, *command: str) -> None:
        """Run a program of the server as its user."""
        subprocess.run([*self.prefix, *command], check=True, capture_output=True, cwd=self.folder)


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    """A server on a free port of this machine, under a user who is not root."""
    programs = [binary(name) for name in ("postgres", "initdb", "pg_ctl")]
    if None in programs:
        pytest.skip("PostgreSQL (postgres, initdb, pg_ctl) is not installed")
    # A socket's path must be short, and an unprivileged user must reach it.
    folder = Path(tempfile.mkdtemp(prefix="countermove-", dir="/tmp"))
    prefix: tuple[str, ...] = ()
    if os.geteuid() == 0:
        nobody = pwd.getpwnam("nobody")
        os.chown(folder, nobody.pw_uid, nobody.pw_gid)
        user = ("--reuid", str(nobody.pw_uid), "--regid", str(nobody.pw_gid), "--clear-groups")
        prefix = (str(shutil.which("setpriv")), *user)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    made = Server(folder, port, prefix)
    (folder / "password").write_text(PASSWORD)
    (folder / "password").chmod(0o644)
    said = ("-U", "postgres", "-A", "scram-sha-256", "--pwfile", str(folder / "password"))
    made.run(str(programs[1]), "-D", str(folder / "data"), *said, "--no-sync", "-E", "UTF8")
    try:
        made.start()
        yield made
        made.stop("fast")
    finally:
        shutil.rmtree(folder)


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A database's URL, either kind; tests share the server, so each has a dataset of its own."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'history.db'}"
    found: str = request.getfixturevalue("server").url
    return found


@pytest.fixture
def history(url: str, request: pytest.FixtureRequest) -> DecisionHistory:
    return DecisionHistory(url, request.node.name)


def decision(number: int, outcome: str = "promoted") -> Decision:
    version = f"{number:06d}-20261116T000000Z"
    return Decision(version, "retrain", outcome, "2026-11-16", None, version, ["größer, 'better'"])  # type: ignore[arg-type]


def outcome(batch: str, held: bool = True) -> dict[str, object]:
    return {
        "champion": "000001-x",
        "batch": batch,
        "claim": "direct_upper",
        "direction": "upper",
        "forecast": 0.3,
        "level": 0.95,
        "error": 0.2,
        "people": 10,
        "held": held,
        "contradicted": False,
    }


def test_decisions_are_added_once_and_in_order(history):
    assert history.add_decisions([decision(2), decision(1)]) == 2
    assert history.add_decisions([decision(1), decision(2), decision(10, "kept")]) == 1
    listed = history.decisions()
    assert [version[:6] for version in listed["version"]] == ["000001", "000002", "000010"]
    assert listed["outcome"].tolist() == ["promoted", "promoted", "kept"]
    assert listed["reasons"].iloc[0] == "[\"gr\\u00f6\\u00dfer, 'better'\"]"
    assert listed["champion_before"].isna().all()


def test_outcomes_are_added_once_and_counted(history):
    assert history.add_outcomes([outcome("a"), outcome("b", held=False)]) == 2
    assert history.add_outcomes([outcome("a", held=False)]) == 0
    assert history.held() == {"direct_upper": {"forecasts": 2, "held": 1, "contradicted": 0}}
    assert history.outcomes()["held"].tolist() == [True, False]


def test_notes_keep_their_order(history):
    history.note("2026-11-16", ["first", "second"])
    history.note("2026-11-15", ["third"])
    history.note("2026-11-15", [])
    assert history.events()["words"].tolist() == ["first", "second", "third"]


def test_datasets_do_not_see_each_other(history, url):
    history.add_decisions([decision(1)])
    other = DecisionHistory(url, f"{history.dataset} other")
    assert len(other.decisions()) == 0
    assert other.add_decisions([decision(1)]) == 1


def test_a_half_done_write_leaves_nothing(history):
    broken = outcome("z") | {"error": None}
    with pytest.raises(StorageError, match="registry has everything"):
        history.add_outcomes([outcome("y"), broken])
    assert len(history.outcomes()) == 0
    assert history.add_outcomes([outcome("y")]) == 1


@pytest.mark.slow
def test_many_processes_open_a_new_database_at_once(tmp_path):
    command = (
        "import sys; from countermove.production.history import DecisionHistory; "
        "DecisionHistory(*sys.argv[1:])"
    )
    place = f"sqlite:///{tmp_path / 'new.db'}"
    runs = [
        subprocess.Popen([sys.executable, "-c", command, place, f"d{number}"], stderr=-1, text=True)
        for number in range(3)
    ]
    said = [run.communicate()[1] for run in runs]
    assert [run.returncode for run in runs] == [0, 0, 0], said


def test_one_machine_at_a_time(server):
    here, there = DecisionHistory(server.url, "credit"), DecisionHistory(server.url, "credit")
    other = DecisionHistory(server.url, "german")
    with here.alone():
        with pytest.raises(LockedError, match="another machine is at work on 'credit'") as refused:
            there.alone().__enter__()
        with other.alone():
            pass
    assert PASSWORD not in str(refused.value)
    assert QUOTED not in str(refused.value)
    with there.alone():
        pass
    with pytest.raises(KeyError), here.alone():
        raise KeyError("the run failed")
    with there.alone():
        pass


@pytest.mark.slow
@pytest.mark.fault
def test_a_killed_machine_s_lock_is_free(server):
    here = DecisionHistory(server.url, "credit")
    command = [sys.executable, "-c", ALONE, server.url]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == "alone\n"
        with pytest.raises(LockedError):
            here.alone().__enter__()
        other.kill()
        other.wait()
        deadline = time.monotonic() + 20
        while True:
            try:
                with here.alone():
                    break
            except LockedError:
                assert time.monotonic() < deadline
                time.sleep(0.1)


def test_a_connection_lost_in_the_middle_of_a_run(server):
    history = DecisionHistory(server.url, "lost")
    with history.alone():
        history.add_decisions([decision(1)])
        server.stop("immediate")
        with pytest.raises(StorageError, match="next run brings the history up to date"):
            history.add_decisions([decision(2)])
        server.start()
        # The next use connects again; what was written is there.
        history.add_decisions([decision(1), decision(2)])
    assert len(history.decisions()) == 2
    with history.alone():
        pass


def test_a_wrong_password_is_refused_and_none_is_shown(server):
    wrong = server.url.replace(QUOTED, "letmein")
    with pytest.raises(StorageError, match="password authentication failed") as refused:
        DecisionHistory(wrong, "credit")
    assert "letmein" not in str(refused.value)
    assert "***" in str(refused.value)


@pytest.mark.parametrize("url", [f"postgresql+psycopg://me:{PASSWORD}@host/db", "postgresql", ""])
def test_a_url_that_cannot_be_read_shows_no_part_of_a_password(url):
    with pytest.raises((ModelFileError, StorageError)) as refused:
        DecisionHistory(url, "credit")
    assert "w/rd" not in str(refused.value)
    assert "ss:w" not in str(refused.value)
    assert refused.value.__cause__ is None or "w/rd" not in str(refused.value.__cause__)
