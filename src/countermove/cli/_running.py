"""A ``kedro run`` that knows its names and answers bad input with one clear message."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from copy import copy
from typing import Any

import click
from kedro.framework.cli.project import run as kedro_run
from kedro.framework.cli.utils import KedroCliError
from kedro.framework.project import pipelines, settings
from yaml import YAMLError

from countermove.cli._failures import debug_option, first_line, plain_errors
from countermove.errors import UnknownNameError, meant
from countermove.params.renamed import renamed_run

PRODUCTION = "prod"
IDLE_PLUGINS = ("kedro-viz", "kedro-telemetry")
"""Plugins whose hooks have no business in a scheduled run."""
RUNNERS = ("SequentialRunner", "ThreadRunner", "ParallelRunner")


def known_pipeline(name: str) -> None:
    """Refuse a pipeline that is not registered, with the nearest name."""
    known = [each for each in pipelines if each != "__default__"]
    if name not in pipelines:
        raise UnknownNameError(f"there is no pipeline {name!r}{meant(name, known)}")


def check_names(names: Sequence[str], options: Mapping[str, Any]) -> None:
    """Refuse pipelines, nodes, datasets, tags, namespaces and runners that do not exist."""
    for name in names:
        known_pipeline(name)
    chosen = [pipelines[name] for name in names or ("__default__",)]
    nodes = [node for pipeline in chosen for node in pipeline.nodes]
    where = f"in pipeline {', '.join(names) or 'serm'}"
    node_names = [node.name for node in nodes]
    datasets = {name for pipeline in chosen for name in pipeline.datasets()}
    spaces = {node.namespace for node in nodes if node.namespace}
    for option in ("node_names", "from_nodes", "to_nodes"):
        _check("node", options.get(option), node_names, where)
    for option in ("from_inputs", "to_outputs", "load_versions"):
        _check("dataset", options.get(option), datasets, where)
    _check("namespace", options.get("namespaces"), spaces, where)
    tags = {tag for node in nodes for tag in node.tags}
    if options.get("tags") and not tags:
        raise UnknownNameError(
            f"there is no tag {options['tags'][0]!r}: no node {where} has a tag; parts of it are "
            f"chosen by --namespaces: {', '.join(sorted(spaces)) or 'none'}"
        )
    _check("tag", options.get("tags"), tags, where)
    runner = options.get("runner")
    if runner and "." not in runner:
        _check("runner", [runner], RUNNERS, "of Kedro")


def _check(what: str, given: Iterable[str] | None, known: Iterable[str], where: str) -> None:
    for name in given or ():
        if name not in known:
            raise UnknownNameError(f"there is no {what} {name!r} {where}{meant(name, known)}")


def _run(pipeline: str | None, pipelines: list[str], env: str | None, **options: Any) -> Any:
    if pipeline and pipelines:
        raise click.UsageError("give --pipeline or --pipelines, not both")
    # `--pipeline=x` is how users know it; Kedro's newer spelling avoids its deprecation note.
    if pipeline is not None:
        pipelines = [pipeline]
    pipelines, options["params"], renamed = renamed_run(pipelines, options["params"] or {})
    if renamed:
        click.echo(renamed, err=True)
    check_names(pipelines, options)
    if (env or os.environ.get("KEDRO_ENV")) == PRODUCTION:
        settings.set("DISABLE_HOOKS_FOR_PLUGINS", IDLE_PLUGINS)
    options["env"] = env
    result = kedro_run.callback(pipeline=None, pipelines=pipelines, **options)  # type: ignore[misc]
    if "retrain_outcome" in result:
        code = result["retrain_outcome"].load()["code"]
        if code:
            click.get_current_context().exit(code)
    return result


def _plain(option: click.Parameter) -> click.Parameter:
    """Return an option of Kedro's that refuses what it cannot read as click does."""
    kept, read = copy(option), option.callback
    if read is None:
        return kept

    def callback(context: click.Context, given: click.Parameter, value: Any) -> Any:
        try:
            return read(context, given, value)
        except (
            ValueError,
            TypeError,
            AttributeError,
            LookupError,
            RecursionError,
            YAMLError,
        ) as error:
            raise click.BadParameter(f"{value!r} cannot be read: {first_line(error)}") from error
        except KedroCliError as error:
            raise click.BadParameter(error.message) from error

    kept.callback = callback
    return kept


run = click.Command(
    name="run",
    params=[*map(_plain, kedro_run.params), debug_option()],
    callback=plain_errors(_run),
    help=kedro_run.help,
)
