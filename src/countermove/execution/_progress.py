"""A progress bar over parts or cells, on a terminal only."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console


def watched(console: Console) -> bool:
    """Return whether a person looks at this console: a terminal, and not that of a CI job."""
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
