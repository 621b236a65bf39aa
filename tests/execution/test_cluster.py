"""A real scheduler and real workers on loopback: same results, and loud, harmless failure."""

import logging
import os
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from countermove.data.partitions import Partitions
from countermove.errors import ClusterError, DataError, ParameterError, PartError
from countermove.execution import Execution, Tls, map_parts

from . import work
from .clusters import ROOT, RunningCluster, free_port


@pytest.fixture(scope="module")
def cluster():
    with RunningCluster() as running:
        yield running


def test_every_item_is_done_once_by_other_processes(cluster):
    with cluster.execution().open() as mapper:
        assert mapper.workers >= 1
        done = list(mapper.map(work.double, range(20), 10))
        assert sorted((one.index, one.value) for one in done) == [(i, 10 * i) for i in range(20)]
        pids = {one.value for one in mapper.map(work.own_process, range(8))}
    assert os.getpid() not in pids


def test_an_items_error_arrives_with_its_rows(cluster):
    with cluster.execution().open() as mapper, pytest.raises(DataError, match="three") as caught:
        list(mapper.map(work.fail_at_three, range(50)))
    assert caught.value.rows == (3,)


def test_parts_on_a_cluster_are_parts_here(cluster, tmp_path):
    frame = pd.DataFrame({"id": np.arange(1000), "x": np.random.default_rng(0).normal(size=1000)})
    frame.to_parquet(tmp_path / "in.parquet", index=False, row_group_size=100)
    table = Partitions((tmp_path / "in.parquet",), rows_per_part=100)
    with Execution().open() as mapper:
        here = map_parts(work.AddTask(1.0), table, tmp_path / "here", mapper).result().read()
    with cluster.execution().open() as mapper:
        there = map_parts(work.AddTask(1.0), table, tmp_path / "there", mapper)
        assert there.result().read().equals(here)
        with pytest.raises(PartError, match="part "):
            map_parts(work.AddTask(1.0, limit=2.0), table, tmp_path / "poison", mapper)
    assert there.times["worker"].nunique() >= 1


def test_an_unreachable_scheduler_is_reported_within_seconds():
    port = free_port()
    started = time.monotonic()
    with pytest.raises(ClusterError, match=f"127.0.0.1:{port} within 2 s.*Nothing was written"):
        Execution("dask", scheduler=f"tcp://127.0.0.1:{port}", timeout=2.0).open()
    assert time.monotonic() - started < 20.0


def listening(processes):
    """Return the addresses on which some processes listen, as the kernel has them."""
    open_sockets = {}
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        for line in Path(table).read_text().splitlines()[1:]:
            fields = line.split()
            if fields[3] == "0A":
                open_sockets[f"socket:[{fields[9]}]"] = fields[1].partition(":")[0]
    links = (link for each in processes for link in Path(f"/proc/{each}/fd").iterdir())
    found = set()
    for link in links:
        with suppress(OSError):
            found.add(open_sockets.get(os.readlink(link)))
    return found - {None}


@pytest.mark.skipif(not Path("/proc/net/tcp").exists(), reason="reads Linux's table of sockets")
def test_local_workers_and_their_dashboard_listen_on_loopback_only():
    code = (
        "import os, sys; from countermove.execution import Execution\n"
        "if __name__ == '__main__':\n"
        "    from tests.execution import work\n"
        "    with Execution('dask', workers=1).open() as mapper:\n"
        "        (other,) = mapper.map(work.own_process, range(1))\n"
        "        print(os.getpid(), other.value, flush=True); sys.stdin.read()\n"
    )
    run = subprocess.Popen(
        [sys.executable, "-c", code], cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        text=True,
    )  # fmt: skip
    with run:
        assert listening(run.stdout.readline().split()) == {"0100007F"}
        run.stdin.close()
    assert run.returncode == 0


def test_another_host_is_warned_about(caplog, monkeypatch):
    def nothing(**given):
        raise ClusterError(given["host"])

    monkeypatch.setattr("distributed.LocalCluster", nothing)
    with caplog.at_level(logging.WARNING), pytest.raises(ClusterError, match=r"0\.0\.0\.0"):
        Execution("dask", workers=1, host="0.0.0.0").open()
    assert "execution.host" in caplog.text


def test_a_scheduler_that_is_lost_is_told_in_a_sentence(monkeypatch):
    from distributed.comm import CommClosedError

    with RunningCluster(workers=1) as own, own.execution().open() as mapper:
        monkeypatch.setattr(type(mapper._client), "submit", raiser(CommClosedError("raw words")))
        with pytest.raises(ClusterError, match=r"was lost while .* finished are kept") as lost:
            list(mapper.map(work.double, range(3), 1))
    assert "raw words" not in str(lost.value)


def raiser(error):
    def raise_it(*_, **__):
        raise error

    return raise_it


def test_tls_files_must_be_there(tmp_path):
    with pytest.raises(ParameterError, match=r"tls.ca_file: .*ca.pem is not a file"):
        Tls(tmp_path / "ca.pem", tmp_path / "cert.pem", tmp_path / "key.pem")


def test_an_open_scheduler_is_warned_about(caplog):
    with caplog.at_level(logging.WARNING), pytest.raises(ClusterError):
        Execution("dask", scheduler="tcp://192.0.2.1:8786", timeout=0.2).open()
    assert "does not authenticate clients" in caplog.text
