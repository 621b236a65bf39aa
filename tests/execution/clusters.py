"""Real schedulers and workers on loopback, in processes of their own."""

import os
import signal
import socket
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

from countermove.execution import Execution

ROOT = Path(__file__).parents[2]


class RunningCluster:
    """A scheduler and workers as their commands start them, ended on the way out."""

    def __init__(self, workers=2, scheme="tcp", options=(), worker_options=()):
        self.workers, self.scheme = workers, scheme
        self.options, self.worker_options = options, worker_options

    def __enter__(self):
        port = free_port()
        host = f"{self.scheme}://127.0.0.1"
        self.address = f"{host}:{port}"
        where = ["--host", host, "--port", str(port), "--no-dashboard"]
        self.scheduler = start("scheduler", *where, *self.options)
        self.processes = [self.scheduler]
        for _ in range(self.workers):
            self.processes.append(
                start(
                    "worker", self.address, "--nthreads", "1", "--no-dashboard", *self.options,
                    *self.worker_options,
                )
            )  # fmt: skip
        return self

    def __exit__(self, *_):
        for process in reversed(self.processes):
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)  # A worker's nanny and child with it.
            process.wait(30)

    def execution(self, **settings):
        """Return the settings by which a run finds this cluster."""
        return Execution("dask", scheduler=self.address, timeout=60.0, **settings)


def start(what, *options):
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(ROOT), *sys.path])}
    return subprocess.Popen(
        [sys.executable, "-m", f"distributed.cli.dask_{what}", *options],
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )


def free_port():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]
