"""``kedro countermove …``: commands that look after tables and champions.

`kedro run` is Kedro's own. Whatever stops one of its commands or ours is said in one sentence, and
ends the process with the code that `countermove.production.endings` lists.
"""

from __future__ import annotations

import sys
from types import TracebackType

import click
from kedro.framework.cli.utils import KedroCliError

from countermove.cli._champion import CHAMPION_COMMANDS
from countermove.cli._failures import keep_traceback, sentence
from countermove.cli._tables import TABLE_COMMANDS
from countermove.errors import NothingNewError, ours
from countermove.production.endings import ending_of_error

__all__ = ["cli", "countermove"]


@click.group(name="countermove")
def cli() -> None:
    """Commands of the project."""


@cli.group()
def countermove() -> None:
    """Look after tables, kernels and the champion."""


for command in (*TABLE_COMMANDS, *CHAMPION_COMMANDS):
    countermove.add_command(command)


def _show(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    """Say what stopped a command, keep where it came from, and end with the code it has."""
    if not isinstance(error, Exception):
        sys.__excepthook__(kind, error, trace)
        return
    stopped = ours(error) or error
    if isinstance(stopped, NothingNewError):
        click.echo(str(stopped), err=True)
    else:
        click.echo(f"Error: {sentence(error)}", err=True)
        keep_traceback(error)
    sys.exit(ending_of_error(stopped).code)


sys.excepthook = _show
# Kedro's own reads sys.exc_info(), which click has cleared by then, and says "NoneType: None".
KedroCliError.show = click.ClickException.show  # type: ignore[method-assign]
