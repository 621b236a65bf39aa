"""How the kernels are compiled, and when what was compiled before is stale."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import Any

import numba


def forget_stale_kernels(folder: Path, *called: Path) -> None:
    """Drop the compiled kernels of a folder when any source has changed, or any ``called`` one."""
    # Numba looks at one file at a time, but a kernel has those it calls compiled into it, so an
    # edit elsewhere would leave it out of date.
    if not os.access(folder, os.W_OK):
        return
    sources = b"".join(path.read_bytes() for path in (*sorted(folder.glob("*.py")), *called))
    fingerprint = hashlib.sha256(sources).hexdigest()
    cache = folder / "__pycache__"
    mark = cache / "kernels.sha256"
    if mark.exists() and mark.read_text() == fingerprint:
        return
    cache.mkdir(exist_ok=True)
    for compiled in cache.glob("*.nb[ic]"):
        compiled.unlink(missing_ok=True)
    mark.write_text(fingerprint)


_HERE = Path(__file__).parent
# Kernels here call those that search whole steps, and those that read trees.
forget_stale_kernels(
    _HERE, *sorted((_HERE / "exact").glob("*.py")), _HERE.parent / "scores" / "trees.py"
)


def jit(function: Any) -> Any:
    """Compile a row kernel; no fast-math, so a row's result never depends on its neighbours."""
    return numba.njit(cache=True, error_model="numpy", nogil=True)(function)
