"""Progress bars over the steps of a run, over parts, cells or people; on a terminal only."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress, ProgressColumn

Item = TypeVar("Item")

_AROUND: list[Progress] = []
"""The bar of the step that is at work; two bars at once would overwrite each other."""
_SEARCH: ContextVar[Progress | None] = ContextVar("_SEARCH", default=None)
"""The bar of a search that is watched; other threads have none."""
_PHASE: ContextVar[PhaseCount | None] = ContextVar("_PHASE", default=None)
"""What its loops over people report to."""
OFTEN, SOON = 0.1, 0.5
"""Seconds between moves of a bar, and before a phase inside another gets a line of its own."""


def watched(console: Console) -> bool:
    """Return whether a person looks at this console: a terminal, and not that of a CI job.

    Who asks is about to draw there: the bar of the step that is at work makes room.
    """
    while _AROUND:
        _AROUND.pop().stop()
    job = os.environ.get("CI", "").lower() not in ("", "0", "false")
    return bool(console.is_terminal) and not job


@contextmanager
def _drawn(*columns: ProgressColumn, around: bool = False, **how: Any) -> Iterator[Progress]:
    """Yield a bar on standard error that is disabled where nobody watches.

    One ``around`` others makes room for them, and vanishes at the end.
    """
    from rich.console import Console
    from rich.progress import Progress

    console = Console(stderr=True)
    # What is printed meanwhile goes above the bar, unless standard output goes elsewhere.
    above = sys.stdout is not None and sys.stdout.isatty()
    how |= {"disable": not watched(console), "transient": around, "redirect_stdout": above}
    with Progress(*columns, console=console, **how) as bar:
        if around and not bar.disable:
            _AROUND.append(bar)
        try:
            yield bar
        finally:
            if bar in _AROUND:
                _AROUND.remove(bar)


@contextmanager
def counting_bar(*more: ProgressColumn, around: bool = False) -> Iterator[Progress]:
    """Yield a bar that says what it counts, m of n and the time left; on a terminal only."""
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn

    what = TextColumn("{task.description}")
    columns = (what, MofNCompleteColumn(), BarColumn(), TimeRemainingColumn(), *more)
    with _drawn(*columns, around=around) as bar:
        yield bar


@contextmanager
def part_bar(total: int, done: int = 0, what: str = "parts") -> Iterator[Callable[[], None]]:
    """Yield a function that moves the bar by one; silent where nobody watches."""
    with counting_bar() as bar:
        task = bar.add_task(what, total=total, completed=done)
        yield lambda: bar.advance(task)


@contextmanager
def step_bar(what: str, before: float, total: float | None) -> Iterator[None]:
    """Show which step of a run is at work and the time left; silent where nobody watches.

    Parameters
    ----------
    what
        The step, such as ``"recourse.advise, 14 of 23"``.
    before
        Seconds that the steps before it took.
    total
        Seconds that the whole run took last time; None: nobody knows.
    """
    from rich.progress import BarColumn, Task, TextColumn, TimeElapsedColumn

    class Left(TextColumn):
        """The time left, read off the clock whenever it is drawn."""

        def render(self, task: Task) -> Any:
            task.completed = min(before + (task.elapsed or 0.0), total or 0.0)
            minutes, seconds = divmod(round((total or 0.0) - task.completed), 60)
            task.fields["left"] = f"{minutes}:{seconds:02d} left" if total else ""
            return super().render(task)

    columns = (Left("{task.fields[left]}"), BarColumn(), TimeElapsedColumn(), TextColumn(what))
    with _drawn(*columns, around=True, refresh_per_second=2) as bar:
        bar.add_task(what, total=total, left="")
        yield


class PhaseCount:
    """How far one phase of a search has come, as a share of its people."""

    def __init__(self, bar: Progress, what: str, people: int, outer: PhaseCount | None) -> None:
        self.bar, self.people, self.outer, self.began = bar, people, outer, time.monotonic()
        self.task = bar.add_task(what, total=people, visible=outer is None)
        self.start, self.length, self.done = 0.0, 1.0, 0.0  # of the loop at work, and so far

    def reach(self, share: float) -> None:
        """Move the bar on; a second loop over the same people moves nothing back."""
        if share > self.done:
            self.done = share
            long = self.outer is None or time.monotonic() - self.began >= SOON
            self.bar.update(self.task, completed=share * self.people, visible=long)
        if self.outer is not None:
            self.outer.reach(self.outer.start + self.outer.length * share)

    def in_turn(self, items: Sequence[Item]) -> Iterator[Item]:
        """Yield items that count alike; a loop inside one of them moves the bar within it."""
        start, length = self.start, self.length
        try:
            for at, item in enumerate(items):
                self.start, self.length = start + at * length / len(items), length / len(items)
                yield item
                self.reach(self.start + self.length)
        finally:
            self.start, self.length = start, length

    def pieces(self, n: int) -> Iterator[slice]:
        """Yield n rows in pieces, so large that the bar moves often enough."""
        first, size = 0, 1
        while first < n:
            last, began = min(first + size, n), time.monotonic()
            yield slice(first, last)
            self.reach(self.start + self.length * last / n)
            first = last
            size = 2 * size if time.monotonic() - began < OFTEN else max(1, size // 2)


@contextmanager
def search_bar(verbose: int) -> Iterator[None]:
    """Show the phases of a search, above 0 and on a terminal; inside another's bar, in that."""
    if verbose <= 0 or _SEARCH.get() is not None:
        yield
        return
    with counting_bar(around=True) as bar:
        before = _SEARCH.set(None if bar.disable else bar)
        try:
            yield
        finally:
            _SEARCH.reset(before)


@contextmanager
def phase(what: str, people: int) -> Iterator[None]:
    """Say what people are searched for, and how many; one inside another has its own line."""
    bar = _SEARCH.get()
    if bar is None:
        yield
        return
    count = PhaseCount(bar, what, people, outer=_PHASE.get())
    before = _PHASE.set(count)
    try:
        yield
        count.reach(1.0)
    finally:
        _PHASE.reset(before)
        bar.remove_task(count.task)


def in_turn(items: Sequence[Item]) -> Iterable[Item]:
    """Return items to loop over, which count alike in the phase at work if somebody watches."""
    count = _PHASE.get()
    return items if count is None else count.in_turn(items)


def pieces(n: int) -> Iterable[slice]:
    """Return n rows to be done at once, or in pieces if somebody watches."""
    count = _PHASE.get()
    return (slice(0, n),) if count is None else count.pieces(n)
