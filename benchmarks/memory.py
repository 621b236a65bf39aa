"""The largest memory of this process; a parent's does not count, as it does in ``ru_maxrss``."""

from __future__ import annotations

from pathlib import Path


def high_water_mark() -> int:
    """Return the bytes."""
    status = Path("/proc/self/status").read_text()
    return int(status.split("VmHWM:")[1].split()[0]) * 1024
