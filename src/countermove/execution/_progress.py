"""Progress bars over the steps of a run, over parts or cells; on a terminal only."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress


_AROUND: list[Progress] = []
"""The bar of the step that is at work; two bars at once would overwrite each other."""


def watched(console: Console) -> bool:
    """Return whether a person looks at this console: a terminal, and not that of a CI job.

    Who asks is about to draw there: the bar of the step that is at work makes room.
    """
    while _AROUND:
        _AROUND.pop().stop()
    job = os.environ.get("CI", "").lower() not in ("", "0", "false")
    return bool(console.is_terminal) and not job


@contextmanager
def part_bar(total: int, done: int = 0, what: str = "parts") -> Iterator[Callable[[], None]]:
    """Yield a function that moves the bar by one; silent where nobody watches."""
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeRemainingColumn,
    )

    console = Console(stderr=True)
    columns = (TextColumn(what), MofNCompleteColumn(), BarColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, disable=not watched(console)) as bar:
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
    from rich.console import Console
    from rich.progress import BarColumn, Progress, Task, TextColumn, TimeElapsedColumn

    class Left(TextColumn):
        """The time left, read off the clock whenever it is drawn."""

        def render(self, task: Task) -> Any:
            task.completed = min(before + (task.elapsed or 0.0), total or 0.0)
            minutes, seconds = divmod(round((total or 0.0) - task.completed), 60)
            task.fields["left"] = f"{minutes}:{seconds:02d} left" if total else ""
            return super().render(task)

    console = Console(stderr=True)
    columns = (Left("{task.fields[left]}"), BarColumn(), TimeElapsedColumn(), TextColumn(what))
    shown = watched(console)
    bar = Progress(
        *columns, console=console, disable=not shown, transient=True, refresh_per_second=2
    )
    with bar:
        bar.add_task(what, total=total, left="")
        if shown:
            _AROUND.append(bar)
        try:
            yield
        finally:
            _AROUND.clear()
