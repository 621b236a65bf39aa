"""A progress bar over epochs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from countermove.execution import watched
from countermove.training.history import EpochRecord


@contextmanager
def epoch_bar(total: int, done: int = 0) -> Iterator[Callable[[EpochRecord], None]]:
    """Yield a function that moves the bar by one epoch; silent where nobody watches."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

    columns = (
        TextColumn("epoch"),
        MofNCompleteColumn(),
        BarColumn(),
        TextColumn("validation accuracy after response {task.fields[accuracy]}"),
    )
    console = Console(stderr=True)
    with Progress(*columns, console=console, disable=not watched(console)) as bar:
        task = bar.add_task("training", total=total, completed=done, accuracy="-")

        def advance(record: EpochRecord) -> None:
            accuracy = f"{record.validation_accuracy:.4f}"
            bar.update(task, advance=1, accuracy=accuracy)

        yield advance
