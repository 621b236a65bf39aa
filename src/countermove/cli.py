"""``kedro countermove …``, and a ``kedro run`` that answers bad input with one clear message."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
from kedro.framework.cli.project import run as kedro_run
from kedro.framework.project import settings
from kedro.framework.startup import ProjectMetadata
from kedro.validation.exceptions import ParameterValidationError

from countermove.errors import CountermoveError

PRODUCTION = "prod"
IDLE_PLUGINS = ("kedro-viz", "kedro-telemetry")
"""Plugins whose hooks have no business in a scheduled run."""


def said_plainly(command: Callable[..., Any]) -> Callable[..., Any]:
    """Turn an error of ours, however deeply Kedro wrapped it, into one plain message."""

    @functools.wraps(command)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        try:
            return command(*args, **kwargs)
        except ParameterValidationError as error:
            raise click.ClickException(str(error)) from error
        except Exception as error:
            ours = _ours(error)
            if ours is None:
                raise
            raise click.ClickException(f"{type(ours).__name__}: {ours}") from error

    return wrapped


def _ours(error: BaseException | None) -> CountermoveError | None:
    while error is not None and not isinstance(error, CountermoveError):
        error = error.__cause__
    return error


def _run(pipeline: str | None, pipelines: list[str], env: str | None, **options: Any) -> Any:
    # `--pipeline=x` is how users know it; Kedro's newer spelling avoids its deprecation note.
    if pipeline and not pipelines:
        pipelines, pipeline = [pipeline], None
    if (env or os.environ.get("KEDRO_ENV")) == PRODUCTION:
        settings.set("DISABLE_HOOKS_FOR_PLUGINS", IDLE_PLUGINS)
    options["env"] = env
    return kedro_run.callback(pipeline=pipeline, pipelines=pipelines, **options)  # type: ignore[misc]


@click.group(name="countermove")
def cli() -> None:
    """Commands of the project."""


run = click.Command(
    name="run", params=kedro_run.params, callback=said_plainly(_run), help=kedro_run.help
)
cli.add_command(run)


@cli.group()
def countermove() -> None:
    """Look after datasets and models."""


@countermove.command()
@click.pass_obj
def datasets(metadata: ProjectMetadata) -> None:
    """List the datasets that have a schema."""
    from countermove.data.names import known_datasets
    from countermove.data.schema import load_schema
    from countermove.hooks import schema_folder

    folder = schema_folder(Path(metadata.project_path))
    for name in known_datasets(folder):
        click.echo(f"{name:<12}{load_schema(name, folder).description}")
