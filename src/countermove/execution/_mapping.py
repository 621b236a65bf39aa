"""One interface for many machines: give every item to a function, in any order.

What all items share (a score, a response) travels once as bytes and is unpacked
once per worker, so that nothing compiled crosses a border. Results come back as
they are done; nothing waits in memory for the slowest.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, Self, get_args

from countermove.errors import ParameterError
from countermove.execution._progress import part_bar

Engine = Literal["serial", "threads", "dask"]
Work = Callable[[Any, Any], Any]
"""Takes what all items share and one item; a function of a module: workers import it."""

FEW = 2_000_000
"""Numbers of a table whose sums one thread makes as fast as several."""
AHEAD = 2
"""Items per worker that are under way or waiting at a worker: enough to keep it busy."""


@dataclass(frozen=True)
class Done:
    """One item's result.

    Parameters
    ----------
    index
        Position of the item.
    value
        What the function returned.
    seconds
        How long it took, on its worker.
    worker
        The worker that did it.
    """

    index: int
    value: Any
    seconds: float
    worker: str

    def __sizeof__(self) -> int:
        """Count the value: a worker short of memory must know what it could write to disk."""
        return object.__sizeof__(self) + sys.getsizeof(self.value)


class Mapper(ABC):
    """Gives items to workers; a context manager that leaves nothing running behind."""

    workers: int

    @abstractmethod
    def map(self, work: Work, items: Sequence[Any], shared: Any = None) -> Iterator[Done]:
        """Yield results as they are done.

        If an item raises, no new item is started, those under way are finished and
        yielded, and then its error is raised (of several, the first item's).

        Parameters
        ----------
        work
            Called as ``work(shared, item)``; a function defined in a module.
        items
            Small descriptions (a file and a range of rows), not the rows themselves.
        shared
            What every item needs; pickled once.
        """

    @abstractmethod
    def close(self) -> None:
        """Leave nothing running; the mapper is not used again."""

    def __enter__(self) -> Self:
        """Return the mapper."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close it."""
        self.close()


class SerialMapper(Mapper):
    """One item after the other, here."""

    workers = 1

    def map(self, work: Work, items: Sequence[Any], shared: Any = None) -> Iterator[Done]:
        """Yield results in the order of the items."""
        for index, item in enumerate(items):
            yield timed(work, shared, index, item)

    def close(self) -> None:
        """Nothing was started."""


class ThreadMapper(Mapper):
    """Several threads of this process; compiled kernels let each other run.

    Parameters
    ----------
    workers
        Number of threads; None: one per core this process may use.
    """

    def __init__(self, workers: int | None = None) -> None:
        self.workers = cores() if workers is None else workers
        self._pool = ThreadPoolExecutor(self.workers, thread_name_prefix="countermove")

    def map(self, work: Work, items: Sequence[Any], shared: Any = None) -> Iterator[Done]:
        """Yield results as they are done."""
        package = Package.of(shared)
        waiting = iter(enumerate(items))
        running: dict[Future[Done], int] = {}

        def start() -> None:
            for index, item in waiting:
                running[self._pool.submit(run_item, work, package, index, item)] = index
                if len(running) >= AHEAD * self.workers:
                    return

        failed: tuple[int, BaseException] | None = None
        start()
        while running:
            ready, _ = wait(running, return_when=FIRST_COMPLETED)
            for future in ready:
                index = running.pop(future)
                error = future.exception()
                if error is None:
                    yield future.result()
                elif failed is None or index < failed[0]:
                    failed = index, error
            if failed is None:
                start()
        if failed is not None:
            raise failed[1]

    def close(self) -> None:
        """Wait for what runs, drop what waits."""
        self._pool.shutdown(cancel_futures=True)


@dataclass(frozen=True)
class Tls:
    """Certificates by which both sides of a connection identify each other.

    Parameters
    ----------
    ca_file, cert, key
        Paths to the authority's certificate, our certificate and our private key (PEM).
    """

    ca_file: Path
    cert: Path
    key: Path

    def __post_init__(self) -> None:
        for name in ("ca_file", "cert", "key"):
            path = Path(getattr(self, name))
            object.__setattr__(self, name, path)
            if not path.is_file():
                raise ParameterError(f"execution.tls.{name}: {path} is not a file")


@dataclass(frozen=True)
class Execution:
    """Which machines do the work.

    Parameters
    ----------
    engine
        ``serial``: here, one after the other. ``threads``: here, at once. ``dask``: processes,
        of this machine or of a cluster.
    workers
        How many threads or processes; None: one per core this process may use. A remote
        scheduler has its own workers.
    scheduler
        Address of a running Dask scheduler (``tcp://host:8786``, ``tls://host:8786``); None
        starts processes on this machine and ends them with the run.
    memory_per_worker
        Limit of a local process, such as ``"2GB"``; None shares the machine's memory. Beyond
        it a worker writes to disk, then stops.
    host
        Address on which the processes of this machine and their dashboard listen. On any other
        than loopback, whoever reaches it can run code and read the rows.
    timeout
        Seconds to wait for a scheduler and its first worker.
    tls
        Certificates for a ``tls://`` scheduler.
    """

    engine: Engine = "serial"
    workers: int | None = None
    scheduler: str | None = None
    memory_per_worker: str | None = None
    host: str = "127.0.0.1"
    timeout: float = 10.0
    tls: Tls | None = field(default=None)

    def __post_init__(self) -> None:
        if self.engine not in get_args(Engine):
            raise ParameterError(
                f"execution.engine is one of {', '.join(get_args(Engine))}; got {self.engine!r}"
            )
        if self.workers is not None and self.workers < 1:
            raise ParameterError(f"execution.workers is at least 1, got {self.workers}")
        if not self.timeout > 0.0:
            raise ParameterError(f"execution.timeout is a number of seconds > 0: {self.timeout}")
        if self.scheduler is not None and self.engine != "dask":
            raise ParameterError(
                f"execution.scheduler is for engine 'dask'; the engine is {self.engine!r}"
            )
        if (self.scheduler or "").startswith("tls://") and self.tls is None:
            raise ParameterError(
                f"the scheduler at {self.scheduler} needs certificates: set execution.tls to the "
                "files ca_file, cert and key"
            )
        if self.scheduler is not None and self.workers is not None:
            raise ParameterError(
                "execution.workers is for workers on this machine; the scheduler at "
                f"{self.scheduler} has its own: leave one of the two out"
            )

    def open(self) -> Mapper:
        """Return the mapper, connected: a scheduler out of reach is reported here."""
        if self.engine == "serial":
            return SerialMapper()
        if self.engine == "threads":
            return ThreadMapper(self.workers)
        from countermove.execution.cluster import DaskMapper

        return DaskMapper(self)


@dataclass(frozen=True)
class Package:
    """What all items share, ready to travel: bytes, and the key by which workers know them."""

    key: str
    content: bytes

    @classmethod
    def of(cls, shared: Any) -> Package:
        """Pack an object; functions of a notebook or a script are packed too."""
        import cloudpickle

        content: bytes = cloudpickle.dumps(shared)
        return cls(sha256(content).hexdigest(), content)


_UNPACKED = threading.local()


def run_item(work: Work, package: Package, index: int, item: Any) -> Done:
    """Unpack what is shared, once, and do one item on whatever worker this is."""
    return timed(work, _unpacked(package), index, item)


def timed(work: Work, shared: Any, index: int, item: Any) -> Done:
    """Do one item and measure how long it took."""
    started = time.perf_counter()
    value = work(shared, item)
    worker = f"{os.getpid()}/{threading.current_thread().name}"
    return Done(index, value, time.perf_counter() - started, worker)


def cores() -> int:
    """Return the number of cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@contextmanager
def few_threads(numbers: int) -> Iterator[None]:
    """Let NumPy and torch work in one thread on a table of few ``numbers``.

    More of them wait for each other longer than they work, and on a busy machine many times as
    long. Where ``OMP_NUM_THREADS`` is set, and on large tables, nothing is changed.
    """
    if numbers > FEW or "OMP_NUM_THREADS" in os.environ:
        yield
        return
    import torch
    from threadpoolctl import threadpool_limits

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        with threadpool_limits(1, user_api="blas"):
            yield
    finally:
        torch.set_num_threads(before)


def _unpacked(package: Package) -> Any:
    """Return the shared object of this thread: solvers keep state, so none is used by two."""
    import pickle

    if getattr(_UNPACKED, "key", None) != package.key:
        # The bytes were packed by this run's own process.
        _UNPACKED.shared = pickle.loads(package.content)  # noqa: S301
        _UNPACKED.key = package.key
    return _UNPACKED.shared


def map_ordered(
    work: Work,
    items: Sequence[Any],
    shared: Any = None,
    mapper: Mapper | None = None,
    what: str = "cells",
) -> list[Any]:
    """Return what a function makes of every item, in order, with a progress bar on a terminal.

    Parameters
    ----------
    work, items, shared
        As in `Mapper.map`.
    mapper
        The workers; by default this process, one item after the other.
    what
        What the progress bar counts.
    """
    workers = SerialMapper() if mapper is None else mapper
    found: dict[int, Any] = {}
    with part_bar(len(items), what=what) as advance:
        for done in workers.map(work, items, shared):
            found[done.index] = done.value
            advance()
    return [found[index] for index in range(len(items))]
