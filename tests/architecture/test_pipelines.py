"""The pipelines meet in the catalog only, and every part of the catalog is used."""

from __future__ import annotations

import ast
import inspect
import re
import typing
from graphlib import TopologicalSorter
from pathlib import Path

import pytest
import yaml
from pydantic import BaseModel

from countermove.params import GROUPS
from countermove.params.loader import SettingsLoader
from countermove.pipeline_registry import register_pipelines

ROOT = Path(__file__).parents[2]
PIPELINES = register_pipelines()
PARTS = {name: pipe for name, pipe in PIPELINES.items() if name not in ("serm", "__default__")}
NODES = [node for pipe in PARTS.values() for node in pipe.nodes]
CATALOG = SettingsLoader(
    str(ROOT / "conf"), base_env="base", default_run_env="base", merge_strategy={}
)["catalog"]


def entry_of(dataset: str) -> str | None:
    """Return the catalog entry that serves a dataset, by name or by pattern."""
    if dataset in CATALOG:
        return dataset
    for pattern in CATALOG:
        if re.fullmatch(re.sub(r"\\\{\w+\\\}", ".+", re.escape(pattern)), dataset):
            return pattern
    return None


def datasets() -> set[str]:
    names = set().union(*(pipe.datasets() for pipe in PARTS.values()))
    return {name for name in names if not name.startswith("params:")}


@pytest.mark.parametrize("name", sorted(datasets()))
def test_every_dataset_is_in_the_catalog(name):
    """Nothing in memory crosses a pipeline boundary, or any other."""
    assert entry_of(name) is not None


def tasks_by_memory(pipe) -> dict[str, set[str]]:
    """Return what comes before each task, nodes that share memory being one task."""
    task = {node.name: node.name for node in pipe.nodes}
    links = [
        (maker.name, user.name, name)
        for maker in pipe.nodes
        for name in maker.outputs
        for user in pipe.only_nodes_with_inputs(name).nodes
    ]
    for maker, user, name in links:
        if CATALOG[entry_of(name)]["type"] == "MemoryDataset":
            one, other = task[maker], task[user]
            task = {node: one if of == other else of for node, of in task.items()}
    before: dict[str, set[str]] = {of: set() for of in task.values()}
    for maker, user, _ in links:
        if task[maker] != task[user]:
            before[task[user]].add(task[maker])
    return before


@pytest.mark.parametrize("name", sorted(set(PIPELINES) - {"lookahead", "paper"}))
def test_tasks_of_nodes_that_share_memory_can_be_scheduled(name):
    """A scheduler with a process per task finds an order; experiments are not scheduled."""
    before = tasks_by_memory(PIPELINES[name])
    assert set(TopologicalSorter(before).static_order()) == set(before)


@pytest.mark.parametrize("entry", sorted(CATALOG))
def test_every_catalog_entry_is_used(entry):
    assert entry in {entry_of(name) for name in datasets()}


@pytest.mark.parametrize("entry", sorted(CATALOG))
def test_every_catalog_entry_has_a_layer(entry):
    assert CATALOG[entry]["metadata"]["kedro-viz"]["layer"]


@pytest.mark.parametrize("entry", sorted(CATALOG))
def test_nothing_is_pickled(entry):
    assert "pickle" not in CATALOG[entry]["type"].lower()


def typed_inputs():
    for node in NODES:
        hints = typing.get_type_hints(node.func)
        arguments = list(inspect.signature(node.func).parameters)
        for argument, dataset in zip(arguments, node.inputs, strict=True):
            if dataset.startswith("params:"):
                yield pytest.param(dataset, hints[argument], id=f"{node.name}-{dataset}")


@pytest.mark.parametrize(("dataset", "hint"), list(typed_inputs()))
def test_every_parameter_input_is_typed(dataset, hint):
    group = dataset.removeprefix("params:")
    plain = {"seed": int, "dataset": str}
    assert hint is (plain.get(group) or GROUPS[group])


@pytest.mark.parametrize("model", GROUPS.values(), ids=GROUPS)
def test_parameter_models_refuse_unknown_keys(model: type[BaseModel]):
    assert model.model_config["extra"] == "forbid"


def test_parameter_files_hold_the_known_groups():
    said = set()
    for path in (ROOT / "conf" / "base").glob("parameters*.yml"):
        said |= set(yaml.safe_load(path.read_text()))
    assert said == {"dataset", "seed", *GROUPS}


def test_the_chain_is_one_collapsible_namespace_per_stage():
    stages = {node.namespace for node in PIPELINES["serm"].nodes}
    assert stages == {"ingest", "training", "recourse", "evaluation", "reporting"}


@pytest.mark.parametrize("node", NODES, ids=lambda node: node.name)
def test_nodes_are_short_and_documented(node):
    assert node.func.__doc__
    written = ast.parse(inspect.getsource(node.func)).body[0].body[1:]  # after the docstring
    assert written[-1].end_lineno - written[0].lineno < 10


def test_the_list_holds_what_a_user_runs(project):
    listed = project.kedro("registry", "list").stdout
    assert {line.removeprefix("- ") for line in listed.splitlines() if line} == set(PIPELINES)
    assert {"serm", "retrain", "score", "paper", "sweep", "lookahead", "collective"} <= set(
        PIPELINES
    )
