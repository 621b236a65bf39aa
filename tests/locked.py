"""Run a command while no other suite of this project runs on the machine.

``python tests/locked.py pytest …`` waits for the lock, says so, and ends as the command ends.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

from filelock import FileLock, Timeout

LOCK = Path(tempfile.gettempdir(), "countermove-tests.lock")


def main(command: list[str], path: Path = LOCK) -> int:
    """Run ``command`` under the lock; return its exit code."""
    lock = FileLock(path, mode=0o666)
    try:
        lock.acquire(timeout=0)
    except Timeout:
        print(f"another test run holds {path}; waiting for it to end", file=sys.stderr, flush=True)  # noqa: T201
        lock.acquire()
    with lock:
        return subprocess.run(command, check=False).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
