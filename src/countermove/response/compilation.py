"""How kernels are compiled, when what was compiled before is stale, and how many rows at once."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypeVar

import numba

from countermove.execution import in_turn, pieces

Item = TypeVar("Item")
Made = TypeVar("Made")

ROWS_A_THREAD = 500
"""Fewer are done before a thread has started."""
ROWS_AT_ONCE = 1_000
"""No more are done before a progress bar moves."""


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


_UNSEEN = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}


def jit(function: Any) -> Any:
    """Compile a row kernel; no fast-math, so a row's result never depends on its neighbours."""
    return numba.njit(cache=True, error_model="numpy", nogil=True)(function)


def inlined(function: Any) -> Any:
    """Compile a small part of a kernel into the kernel itself."""
    return numba.njit(error_model="numpy", nogil=True, forceinline=True)(function)


def lean(function: Any) -> Any:
    """Compile what works on arrays of others only: counting who holds them would take half."""
    return numba.njit(cache=True, error_model="numpy", nogil=True, _nrt=False)(function)


def part(function: Any) -> Any:
    """Compile a part of a kernel: into the kernel that calls it, which is what is stored."""
    return numba.njit(error_model="numpy", nogil=True, **_UNSEEN)(function)


def lean_part(function: Any) -> Any:
    """Compile a part that works on arrays of others only."""
    return numba.njit(error_model="numpy", nogil=True, _nrt=False, **_UNSEEN)(function)


def over_rows(n: int, work: Callable[[slice], Any]) -> None:
    """Let a kernel work on n rows, some at a time on every core (or on NUMBA_NUM_THREADS).

    A kernel lets go of the interpreter, and a row's result does not depend on its neighbours;
    nobody waits for another thread, so a busy machine is no reason for fewer.
    """
    threads = min(numba.config.NUMBA_NUM_THREADS, n // ROWS_A_THREAD)
    if threads < 2:
        for some in pieces(n):
            work(some)
        return
    # Some people take longer than others: whoever is done early takes the next rows.
    size = min(-(-n // (4 * threads)), ROWS_AT_ONCE)
    rows = [slice(start, min(start + size, n)) for start in range(0, n, size)]
    with ThreadPoolExecutor(threads) as pool:
        for done in in_turn([pool.submit(work, some) for some in rows]):
            done.result()


def at_once(n: int, work: Callable[[Item], Made], items: Iterable[Item]) -> list[Made]:
    """Return what is made of every item, in order; of many rows ``n`` on every core at a time.

    For work that kernels do most of. What keeps state is to be used by one item alone.
    """
    threads = numba.config.NUMBA_NUM_THREADS if n >= 2 * ROWS_A_THREAD else 1
    if threads < 2:
        return [work(item) for item in items]
    with ThreadPoolExecutor(threads) as pool:
        return list(pool.map(work, items))
