"""``kedro countermove …``, and a ``kedro run`` that answers bad input with one clear message."""

from __future__ import annotations

import sys
from types import TracebackType

import click

from countermove.cli import _champion, _project, _tables  # noqa: F401  (they add their commands)
from countermove.cli._failures import sentence
from countermove.cli._listing import countermove
from countermove.cli._running import run
from countermove.errors import ours

__all__ = ["cli", "countermove", "run"]


@click.group(name="countermove")
def cli() -> None:
    """Commands of the project."""


cli.add_command(run)
cli.add_command(countermove)


def _excepthook(
    kind: type[BaseException], error: BaseException, trace: TracebackType | None
) -> None:
    """Say errors of ours in one sentence where Kedro's own commands meet them, as in a run."""
    if ours(error) is None or "--debug" in sys.argv:
        sys.__excepthook__(kind, error, trace)
    else:
        click.echo(f"Error: {sentence(error)}", err=True)


sys.excepthook = _excepthook
