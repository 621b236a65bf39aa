"""Workers of a Dask cluster: processes of this machine, or of many.

Dask reruns what a lost worker was doing; an item that kills several workers is given
up, with advice. The only file that imports Dask.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlsplit

from countermove.errors import ClusterError
from countermove.execution._mapping import (
    AHEAD,
    Done,
    Execution,
    Mapper,
    Package,
    Work,
    cores,
    run_item,
)

logger = logging.getLogger(__name__)

LOOPBACK = ("127.0.0.1", "localhost", "::1")
LARGE = 500_000
"""Bytes beyond which what is shared does not travel with every item."""
ENVIRONMENT = "distributed.nanny.pre-spawn-environ"
WORKERS = {
    "MALLOC_TRIM_THRESHOLD_": 1 << 27,
    "MALLOC_MMAP_THRESHOLD_": 1 << 25,
    "DASK_LOGGING__DISTRIBUTED": "error",
}
"""Environment of local workers. Freed memory (128 MB) is kept for the next block: with Dask's own
setting (64 kB) every array is new pages from the system, and responses take twice as long. That
a worker comes or goes is not logged: its process does not see how this one logs."""


class DaskMapper(Mapper):
    """Gives items to the workers of a Dask scheduler."""

    def __init__(self, execution: Execution) -> None:
        self._execution = execution
        self._client = self._connect()
        self.workers = self._count()

    def map(self, work: Work, items: Sequence[Any], shared: Any = None) -> Iterator[Done]:
        """Yield results as they are done; what a lost worker had is done again by another."""
        from distributed import as_completed

        package: Any = Package.of(shared)
        if len(package.content) > LARGE:
            # Dask hands it from worker to worker; a list, because scatter opens mappings.
            with self._connected():
                [package] = self._client.scatter([package], broadcast=True, hash=False)
        indices: dict[Any, int] = {}
        running = as_completed(loop=self._client.loop)
        ahead = AHEAD * self.workers
        failed: tuple[int, BaseException] | None = None

        def start(index: int) -> None:
            with self._connected():
                given = (run_item, work, package, index, items[index])
                future = self._client.submit(*given, pure=False)
            indices[future.key] = index
            running.add(future)

        for index in range(min(ahead, len(items))):
            start(index)
        following = ahead
        for future in running:
            index = indices.pop(future.key)
            if future.status == "finished":
                yield self._result(future)
                if failed is None and following < len(items):
                    start(following)
                    following += 1
            elif failed is None or index < failed[0]:
                failed = index, self._why(future)
        if failed is not None:
            raise failed[1]

    def close(self) -> None:
        """Leave the cluster; one that this process started ends with the process."""
        self._client.close()

    def _connect(self) -> Any:
        import dask

        # Read when distributed is first imported: workers that come and go are its business.
        dask.config.set({"logging": {"distributed": "error"}})
        from distributed import Client

        wanted = self._execution
        if wanted.scheduler is None:
            memory = wanted.memory_per_worker or "auto"
            if wanted.host not in LOOPBACK:
                logger.warning(
                    "local Dask workers listen on %s (execution.host): anyone who reaches the "
                    "machine there can run code on it and read the rows",
                    wanted.host,
                )
            return Client(_local_cluster(wanted.workers or cores(), memory, wanted.host))
        _warn_if_open(wanted)
        try:
            return Client(wanted.scheduler, timeout=wanted.timeout, security=self._security())
        except (OSError, TimeoutError, ValueError) as error:
            raise ClusterError(
                f"no Dask scheduler answers at {wanted.scheduler} within {wanted.timeout:g} s "
                f"({error}); start one with 'dask scheduler', correct execution.scheduler, or "
                "leave it out to use this machine. Nothing was written"
            ) from error

    def _security(self) -> Any:
        from distributed import Security

        tls = self._execution.tls
        if tls is None:
            return None
        return Security(
            tls_ca_file=str(tls.ca_file),
            tls_client_cert=str(tls.cert),
            tls_client_key=str(tls.key),
            require_encryption=True,
        )

    def _count(self) -> int:
        """Return the number of threads that work, once there is one."""
        wanted = self._execution
        try:
            self._client.wait_for_workers(1, timeout=wanted.timeout)
        except TimeoutError as error:
            self.close()
            raise ClusterError(
                f"the scheduler at {wanted.scheduler} has had no worker for {wanted.timeout:g} s; "
                "start one with 'dask worker <address>'. Nothing was written"
            ) from error
        with self._connected():
            return sum(self._client.nthreads().values())

    def _result(self, future: Any) -> Done:
        with self._connected():
            result: Done = future.result()  # It is finished: what is raised here is the network's.
        return result

    @contextmanager
    def _connected(self) -> Iterator[None]:
        """Say in a sentence that the scheduler was lost, however Dask puts it."""
        from distributed.client import FutureCancelledError

        try:
            yield
        except (FutureCancelledError, OSError, TimeoutError) as error:  # CommClosedError is one.
            raise ClusterError(_gone(self._execution)) from error

    def _why(self, future: Any) -> BaseException:
        """Return the item's own error, or what became of its workers."""
        from distributed import KilledWorker

        if future.status != "error":
            return ClusterError(_gone(self._execution))
        with self._connected():
            error: BaseException = future.exception()
        if not isinstance(error, KilledWorker):
            return error
        return ClusterError(
            f"{error.allowed_failures + 1} workers were lost one after the other with the same "
            "part: most often it is too large for a worker's memory. Use fewer rows per part, "
            "raise execution.memory_per_worker or use fewer workers. Parts that were finished "
            "are kept; the next run does the rest"
        )


_RUNNING: dict[tuple[int, str, str], Any] = {}


def _local_cluster(workers: int, memory: str, host: str) -> Any:
    """Return processes on this machine, started once: every node of a run works with the same."""
    import dask
    from distributed import LocalCluster

    wanted = workers, memory, host
    for other in [key for key in _RUNNING if key != wanted]:
        _RUNNING.pop(other).close()
    if wanted not in _RUNNING:
        with dask.config.set({f"{ENVIRONMENT}.{name}": value for name, value in WORKERS.items()}):
            _RUNNING[wanted] = LocalCluster(
                n_workers=workers,
                threads_per_worker=1,
                processes=True,
                host=host,
                # On its own (":0") the dashboard would listen on every address of the machine.
                dashboard_address=f"{host}:0",
                memory_limit=memory,
                silence_logs=logging.ERROR,
            )
    return _RUNNING[wanted]


def _gone(execution: Execution) -> str:
    where = execution.scheduler or "this machine"
    return (
        f"the connection to the Dask scheduler ({where}) was lost while parts were under way; "
        "parts that were finished are kept, the next run does the rest"
    )


def _warn_if_open(execution: Execution) -> None:
    """Say when anybody who reaches the scheduler could run code on its workers."""
    address = urlsplit(execution.scheduler or "")
    if execution.tls is None and address.hostname not in LOOPBACK:
        logger.warning(
            "the Dask scheduler at %s does not authenticate clients: anyone who reaches its port "
            "can run code on every worker and read the rows. Set execution.tls (ca_file, cert, "
            "key) and a tls:// address, or keep the port inside a closed network",
            execution.scheduler,
        )
