"""One run at a time: a lock that ends with its process, however that ends."""

from __future__ import annotations

import fcntl
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from countermove.errors import RunningError


@contextmanager
def held(path: Path, what: str) -> Iterator[None]:
    """Hold the lock of a file, or leave at once.

    The file stays behind: whoever removed it could let two runs hold a lock each. The
    system lets go of the lock when the process ends, also by a crash.

    Parameters
    ----------
    path
        The lock file; its folder is made if need be.
    what
        What is at work, for the message.

    Raises
    ------
    RunningError
        If another process holds it; says which.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a+") as stream:
        try:
            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            stream.seek(0)
            who = stream.read().strip() or "another process"
            raise RunningError(
                f"{what} is under way already ({who}); nothing was done. Wait for it to end, or "
                "stop it: what it had finished is kept"
            ) from error
        stream.truncate(0)
        stream.write(f"process {os.getpid()} on {socket.gethostname()}")
        stream.flush()
        yield
