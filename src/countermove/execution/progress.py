"""A progress bar over parts or cells, on a terminal only."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager


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
    with Progress(*columns, console=console, disable=not console.is_terminal) as bar:
        task = bar.add_task(what, total=total, completed=done)
        yield lambda: bar.advance(task)
