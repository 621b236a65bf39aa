"""A real scheduler and real workers on loopback: same results, and loud, harmless failure."""

import logging
import os
import time

import numpy as np
import pandas as pd
import pytest

from countermove.data.partitions import Partitions
from countermove.errors import ClusterError, DataError, ParameterError, PartError
from countermove.execution import Execution, Tls, map_parts

from . import work
from .clusters import RunningCluster, free_port


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


def test_tls_files_must_be_there(tmp_path):
    with pytest.raises(ParameterError, match=r"tls.ca_file: .*ca.pem is not a file"):
        Tls(tmp_path / "ca.pem", tmp_path / "cert.pem", tmp_path / "key.pem")


def test_an_open_scheduler_is_warned_about(caplog):
    with caplog.at_level(logging.WARNING), pytest.raises(ClusterError):
        Execution("dask", scheduler="tcp://192.0.2.1:8786", timeout=0.2).open()
    assert "does not authenticate clients" in caplog.text
