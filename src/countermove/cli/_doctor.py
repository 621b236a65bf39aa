"""``kedro countermove doctor``: what an installation has, what it lacks, and the remedy."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, requires, version
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from packaging.requirements import Requirement

SMALLEST_DISK = 1e9
"""Free bytes below which a run on a large table may not end."""
PROGRAMS = {
    "chromium": "only the browser tests need it (Debian: apt install chromium)",
    "make": "set-up and tests are started by it (Debian: apt install make)",
}


class Finding(NamedTuple):
    """One thing that was looked at; ``state`` is ok, optional (may be missing) or wrong."""

    state: str
    words: str


def examine(project: Path) -> Iterator[Finding]:
    """Yield what an installation has and lacks, one finding after the other."""
    yield Finding("ok", f"Python {'.'.join(map(str, sys.version_info[:3]))}")
    yield from _packages()
    yield from _threads()
    yield _kernels()
    yield from _disk(project)
    yield _dask()
    for program, words in PROGRAMS.items():
        found = shutil.which(program)
        yield (
            Finding("ok", f"{program}: {found}")
            if found
            else Finding("optional", f"{program} is not installed: {words}")
        )


def _packages() -> Iterator[Finding]:
    """Compare what is installed with what running needs, and with each extra."""
    from packaging.requirements import Requirement

    wanted: dict[str, list[Requirement]] = {}
    for line in requires("countermove") or ():
        needed = Requirement(line)
        extra = next(iter(str(needed.marker or "").split('"')[1:2]), "")
        wanted.setdefault(extra, []).append(needed)
    for extra, needed_ones in wanted.items():
        lacking = [words for each in needed_ones if (words := _lacking(each)) is not None]
        what = f"extra {extra}" if extra else "packages that running needs"
        if not lacking:
            yield Finding("ok", f"{what}: {len(needed_ones)} as required")
            continue
        listed = ", ".join(lacking[:5]) + (f" and {len(lacking) - 5} more" if lacking[5:] else "")
        remedy = f"pip install 'countermove[{extra}]'" if extra else "make setup"
        yield Finding("optional" if extra else "wrong", f"{what}: {listed}; {remedy}")


def _lacking(needed: Requirement) -> str | None:
    """Return what is wrong with a required package; None: nothing."""
    try:
        found = version(needed.name)
    except PackageNotFoundError:
        return f"{needed.name} is not installed"
    fits = needed.specifier.contains(found, prereleases=True)
    return None if fits else f"{needed.name} is {found}, required is {needed.specifier}"


def _threads() -> Iterator[Finding]:
    from countermove.execution import cores

    chosen = os.environ.get("OMP_NUM_THREADS")
    said = f"OMP_NUM_THREADS={chosen}" if chosen else "NumPy and torch have one, kernels all"
    yield Finding("ok", f"threads: {cores()} cores; {said}")


def _kernels() -> Finding:
    """Look for compiled kernels beside the sources that are newer than those."""
    import countermove

    package = Path(countermove.__file__).parent
    compiled = list(package.rglob("__pycache__/*.nbi"))
    if not compiled:
        words = "no kernel is compiled: the first run would take minutes; kedro countermove compile"
        return Finding("wrong" if os.access(package, os.W_OK) else "optional", words)
    sources = {path.parent.parent / f"{path.name.split('.')[0]}.py" for path in compiled}
    newest = max(path.stat().st_mtime for path in compiled)
    changed = [path.name for path in sources if path.exists() and path.stat().st_mtime > newest]
    if changed:
        words = f"kernels: {', '.join(sorted(changed))} changed since; kedro countermove compile"
        return Finding("wrong", words)
    return Finding("ok", f"kernels: {len(compiled)} are compiled")


def _disk(project: Path) -> Iterator[Finding]:
    for name in ("data", "logs"):
        place = next(path for path in (project / name, project) if path.is_dir())
        if not os.access(place, os.W_OK):
            yield Finding("wrong", f"{place} cannot be written to: results go there")
    free = shutil.disk_usage(project).free
    state = "ok" if free >= SMALLEST_DISK else "wrong"
    yield Finding(state, f"disk: {free / 1e9:.1f} GB are free in {project}")


def _dask() -> Finding:
    """Have a process of this machine, on loopback, do a piece of work."""
    from countermove.errors import CountermoveError
    from countermove.execution import Execution

    try:
        with Execution(engine="dask", workers=1).open() as mapper:
            [done] = mapper.map(_answer, [20], 22)
    except (CountermoveError, OSError) as error:
        return Finding("wrong", f"Dask: no process of this machine answers on loopback: {error}")
    return Finding("ok" if done.value == 42 else "wrong", "Dask: a process on loopback works")


def _answer(shared: int, item: int) -> int:
    return shared + item
