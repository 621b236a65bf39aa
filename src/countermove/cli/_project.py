"""Commands about the project: its pipelines, settings, kernels and installation."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
from kedro.framework.cli.utils import _split_params
from kedro.framework.startup import ProjectMetadata

from countermove.cli._listing import PROJECT, countermove
from countermove.cli._running import known_pipeline
from countermove.errors import without_passwords


@countermove.command(topic=PROJECT, example="pipelines")
def pipelines() -> None:
    """List the pipelines, a sentence for each."""
    from countermove.pipeline_registry import pipeline_sentences

    sentences = pipeline_sentences()
    width = max(map(len, sentences))
    for name, sentence in sentences.items():
        click.echo(f"{name:<{width}}  {sentence}")


@countermove.command(topic=PROJECT, example="explain serm")
@click.argument("pipeline")
@click.option("--env", help="Environment of the run.")
@click.option("--params", default="", callback=_split_params, help="As for kedro run.")
@click.pass_obj
def explain(
    metadata: ProjectMetadata, pipeline: str, env: str | None, params: dict[str, Any]
) -> None:
    """Print the settings of PIPELINE with their origin, its nodes and their datasets."""
    from kedro.framework.project import pipelines
    from kedro.framework.session import KedroSession

    from countermove.params.explaining import explain as explained

    known_pipeline(pipeline)
    session = KedroSession.create(metadata.project_path, env=env, runtime_params=params)
    for line in explained(pipelines[pipeline], session.load_context()):
        click.echo(without_passwords(line))


@countermove.command(topic=PROJECT, example="doctor")
@click.pass_context
def doctor(context: click.Context) -> None:
    """Look at the installation: packages, threads, kernels, disk, Dask, extras."""
    from countermove.cli._doctor import examine

    found = []
    for each in examine(Path(context.obj.project_path)):
        found.append(each)
        click.echo(f"{each.state:<8}  {each.words}")
    context.exit(1 if any(each.state == "wrong" for each in found) else 0)


@countermove.command("settings", topic=PROJECT, example="settings")
@click.option("--write", is_flag=True, help="Write them into conf/base.")
@click.pass_obj
def settings_shown(metadata: ProjectMetadata, write: bool) -> None:
    """Print the files of conf/base that show every setting, from the classes."""
    from countermove.params import shown

    if write:
        changed = shown.write(Path(metadata.project_path, "conf", "base"))
        click.echo(f"written: {', '.join(changed)}" if changed else "nothing to change")
        return
    for name, text in shown.files().items():
        click.echo(f"# ---- conf/base/{name}\n{text}")


@countermove.command("compile", topic=PROJECT, example="compile")
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
