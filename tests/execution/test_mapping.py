"""Every engine does every item once, and failure is loud."""

import pytest
import torch
from threadpoolctl import threadpool_info, threadpool_limits

from countermove.errors import DataError, ParameterError
from countermove.execution import Execution, few_threads

from . import work

HERE = [Execution(), Execution("threads", workers=3)]


@pytest.mark.parametrize("execution", HERE, ids=lambda execution: execution.engine)
def test_every_item_is_done_once(execution):
    with execution.open() as mapper:
        done = list(mapper.map(work.double, range(20), 10))
    assert sorted((one.index, one.value) for one in done) == [(i, 10 * i) for i in range(20)]
    assert all(one.seconds >= 0.0 and one.worker for one in done)


@pytest.mark.parametrize("execution", HERE, ids=lambda execution: execution.engine)
def test_a_failing_item_stops_the_rest_but_not_those_under_way(execution):
    with execution.open() as mapper:
        done: list[int] = []
        with pytest.raises(DataError, match="three") as caught:
            done.extend(one.value for one in mapper.map(work.fail_at_three, range(100)))
    assert caught.value.rows == (3,)
    assert {0, 1, 2} <= set(done)
    assert len(done) < 20


def test_nothing_to_do_is_done_at_once():
    with Execution("threads").open() as mapper:
        assert list(mapper.map(work.double, [])) == []


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"engine": "spark"}, "serial, threads, dask; got 'spark'"),
        ({"workers": 0}, "at least 1, got 0"),
        ({"timeout": 0.0}, "seconds > 0"),
        ({"scheduler": "tcp://127.0.0.1:1"}, "engine is 'serial'"),
        ({"engine": "dask", "scheduler": "tls://127.0.0.1:1"}, "set execution.tls"),
        (
            {"engine": "dask", "scheduler": "tcp://127.0.0.1:1", "workers": 2},
            "leave one of the two out",
        ),
    ],
)
def test_settings_that_make_no_sense(settings, message):
    with pytest.raises(ParameterError, match=message):
        Execution(**settings)


def threads() -> set[int]:
    """Return how many threads torch and every BLAS library have."""
    libraries = threadpool_info()
    return {
        torch.get_num_threads(),
        *(each["num_threads"] for each in libraries if each["user_api"] == "blas"),
    }


def test_a_small_table_takes_one_thread_and_gives_the_others_back(monkeypatch):
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    before = torch.get_num_threads()
    torch.set_num_threads(3)
    with threadpool_limits(3, user_api="blas"):
        many = threads()
        with few_threads(1000):
            assert threads() == {1}
        assert threads() == many
        with pytest.raises(ZeroDivisionError), few_threads(1000):
            raise ZeroDivisionError
        assert threads() == many
        with few_threads(10**9):
            assert threads() == many
        monkeypatch.setenv("OMP_NUM_THREADS", "3")
        with few_threads(1000):
            assert threads() == many
    torch.set_num_threads(before)
