"""What goes wrong on a cluster, made to go wrong: nothing is lost, and the message helps."""

import logging
import os
import shutil
import signal
import subprocess
import threading
import time

import numpy as np
import pandas as pd
import pytest

from countermove.data.partitions import Partitions
from countermove.errors import ClusterError
from countermove.execution import Execution, Tls, map_parts

from . import work
from .clusters import RunningCluster

pytestmark = pytest.mark.fault
N, PART = 1000, 100


@pytest.fixture
def table(tmp_path):
    frame = pd.DataFrame({"id": np.arange(N), "x": np.random.default_rng(0).normal(size=N)})
    frame.to_parquet(tmp_path / "in.parquet", index=False, row_group_size=PART)
    return Partitions((tmp_path / "in.parquet",), rows_per_part=PART)


def run(task, table, folder, execution=None):
    with (execution or Execution()).open() as mapper:
        return map_parts(task, table, folder, mapper)


def expected(table, tmp_path):
    return run(work.AddTask(1.0), table, tmp_path / "expected").result().read()


def test_a_worker_killed_under_way_changes_nothing(table, tmp_path):
    task = work.StubbornTask(1.0, first_row=300, flag=tmp_path / "died")
    with RunningCluster() as cluster:
        done = run(task, table, tmp_path / "out", cluster.execution())
    assert (tmp_path / "died").exists()
    assert done.result().read().equals(expected(table, tmp_path))


def test_a_part_that_kills_every_worker_is_given_up_with_advice(table, tmp_path):
    out = tmp_path / "out"
    with RunningCluster() as cluster:
        with pytest.raises(ClusterError, match=r"workers were lost one after the other.*memory"):
            run(work.StubbornTask(1.0, first_row=300), table, out, cluster.execution())
        assert not out.exists()
        done = run(work.AddTask(1.0), table, out, cluster.execution())
    assert done.kept > 0
    assert done.result().read().equals(expected(table, tmp_path))


def test_a_memory_starved_worker_stops_with_advice(table, tmp_path):
    hungry = ["--memory-limit", "400MB"]
    with (
        RunningCluster(workers=1, worker_options=hungry) as cluster,
        pytest.raises(ClusterError, match="fewer rows per part"),
    ):
        run(work.HungryTask(1.0), table, tmp_path / "out", cluster.execution())
    assert not (tmp_path / "out").exists()


def test_a_memory_starved_worker_spills_and_gives_the_same_result(tmp_path, monkeypatch):
    size, items = 4_000_000, range(6)  # 32 MB a result, two of them wait at the worker.
    monkeypatch.setenv("DASK_DISTRIBUTED__WORKER__MEMORY__TARGET", "0.1")
    starved = ["--memory-limit", "500MB", "--local-directory", str(tmp_path / "scratch")]
    spilled, found = 0, {}
    with (
        RunningCluster(workers=1, worker_options=starved) as cluster,
        cluster.execution().open() as mapper,
    ):
        for one in mapper.map(work.large_numbers, items, size):
            found[one.index] = one.value
            until = time.monotonic() + 5.0  # Meanwhile the worker fills up.
            while spilled <= 8 * size and time.monotonic() < until:
                time.sleep(0.1)
                files = (tmp_path / "scratch").rglob("storage/*")
                spilled = max([spilled, *map(size_of, files)])
    assert spilled > 8 * size
    for item in items:
        np.testing.assert_array_equal(found[item], work.large_numbers(size, item))


def size_of(path):
    try:
        return path.stat().st_size
    except FileNotFoundError:  # Read back meanwhile.
        return 0


def test_a_lost_scheduler_is_reported_and_the_next_run_does_the_rest(table, tmp_path):
    out = tmp_path / "out"
    with RunningCluster(workers=1) as cluster:

        def kill():
            while len(list(tmp_path.glob(".out.partial/*.parquet"))) < 2:
                time.sleep(0.05)
            os.kill(cluster.scheduler.pid, signal.SIGKILL)

        killer = threading.Thread(target=kill)
        killer.start()
        with pytest.raises(ClusterError, match="was lost while parts were under way"):
            run(work.SlowTask(1.0), table, out, cluster.execution())
        killer.join()
    assert not out.exists()
    done = run(work.SlowTask(1.0), table, out)
    assert done.kept >= 2
    assert done.result().read().equals(expected(table, tmp_path))


def test_a_cluster_behind_tls_authenticates_its_clients(table, tmp_path, caplog):
    if shutil.which("openssl") is None:
        pytest.skip("openssl is not installed: certificates cannot be made")
    ca, key = certificate(tmp_path)
    options = ["--tls-ca-file", str(ca), "--tls-cert", str(ca), "--tls-key", str(key)]
    with RunningCluster(scheme="tls", options=options) as cluster, caplog.at_level(logging.WARNING):
        done = run(
            work.AddTask(1.0), table, tmp_path / "out", cluster.execution(tls=Tls(ca, ca, key))
        )
        assert done.result().read().equals(expected(table, tmp_path))
        plain = cluster.address.replace("tls://", "tcp://")
        with pytest.raises(ClusterError, match="no Dask scheduler answers"):
            Execution("dask", scheduler=plain, timeout=3.0).open()
    assert "does not authenticate" not in caplog.text


def certificate(folder):
    """Make a certificate that is its own authority."""
    cert, key = folder / "cert.pem", folder / "key.pem"
    subprocess.run(
        [
            "openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "1",
            "-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1",
            "-keyout", str(key), "-out", str(cert),
        ],
        check=True,
        capture_output=True,
    )  # fmt: skip
    return cert, key
