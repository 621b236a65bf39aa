"""A progress bar over epochs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from countermove.training.history import EpochRecord


@contextmanager
def epoch_bar(total: int, done: int = 0) -> Iterator[Callable[[EpochRecord], None]]:
    """Yield a function that moves the bar by one epoch and shows its accuracy."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

    columns = (
        TextColumn("epoch"),
        MofNCompleteColumn(),
        BarColumn(),
        TextColumn("validation accuracy after response {task.fields[accuracy]}"),
    )
    with Progress(*columns) as bar:
        task = bar.add_task("training", total=total, completed=done, accuracy="-")

        def advance(record: EpochRecord) -> None:
            accuracy = f"{record.validation_accuracy:.4f}"
            bar.update(task, advance=1, accuracy=accuracy)

        yield advance
