"""What happens around a run: settings are checked first, the outcome is shown last."""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from kedro.framework.hooks import hook_impl
from kedro.framework.project import pipelines

from countermove.errors import PasswordFilter, StorageError, UnknownNameError, meant

# Every command imports this: what only a run needs is imported by the run.
if TYPE_CHECKING:
    from kedro.framework.context import KedroContext
    from kedro.io import DataCatalog
    from kedro.pipeline import Pipeline
    from kedro.pipeline.node import Node

logger = logging.getLogger(__name__)
HEADLINE = ("metrics", "recourse_calibration", "summary", "report")
"""The datasets a headline is made from."""
DURATIONS = Path(".cache", "durations.json")
"""How long each node took last time, by dataset."""
AUDITED = tuple(f"audit.{name}" for name in HEADLINE)
PEOPLE = ("people", "parts_people")
"""The datasets that hold people."""


class NamesHook:
    """Refuse an unknown dataset or setting before any path is built from it; log no password."""

    @hook_impl(tryfirst=True)
    def after_context_created(self, context: KedroContext) -> None:
        """Check ``dataset`` against the schemas in conf, and the settings that the run reads."""
        from countermove.data.sources import schema_file
        from countermove.params import GROUPS
        from countermove.params.checking import COMMON, check_settings, without_effect

        # Kedro's configuration of logging may name no class of ours.
        for handler in logging.getLogger().handlers:
            if not any(isinstance(each, PasswordFilter) for each in handler.filters):
                handler.addFilter(PasswordFilter())
            _stamp(handler)
        # As loaded: `context.params` would validate every pipeline's, in pydantic's words.
        loader: Any = context.config_loader
        params, given = loader["parameters"], loader.runtime_params or {}
        schema_file(str(params["dataset"] or ""), *loader.schema_folders)
        # Who reads the user's own groups, if there are any: then every pipeline has to be made.
        own = params.keys() - {*COMMON, *GROUPS}
        read, used = groups_read(), _groups(pipelines) if own else set()
        check_settings(params, GROUPS, read | set(given), used | loader.groups_in_files)
        for sentence in without_effect(params, GROUPS, used, given, read):
            logger.warning(sentence)


def _stamp(handler: logging.Handler) -> None:
    """Have lines begin with the time where they go into a file or to another program."""
    stream = getattr(handler, "stream", None)
    if stream is not None and not stream.isatty() and handler.formatter is not None:
        form = handler.formatter._fmt or ""
        if "asctime" not in form:
            handler.setFormatter(logging.Formatter(f"%(asctime)s {form}", "%Y-%m-%dT%H:%M:%S%z"))


def groups_read() -> set[str]:
    """Return the groups of settings that the run reads: from Python, any of them."""
    from countermove.params import GROUPS

    command = click.get_current_context(silent=True)
    if command is None:
        return set(GROUPS)
    names = command.params.get("pipelines") or command.params.get("pipeline") or "__default__"
    names = [names] if isinstance(names, str) else names
    for name in names:
        if name not in pipelines:
            known = [each for each in pipelines if each != "__default__"]
            raise UnknownNameError(f"there is no pipeline {name!r}{meant(name, known)}")
    return _groups(names)


def _groups(names: Iterable[str]) -> set[str]:
    inputs = {each for name in names for each in pipelines[name].inputs()}
    return {each.removeprefix("params:").partition(".")[0] for each in inputs}


class PeopleHook:
    """Give the people of the catalog the settings of the run, to be compared on load."""

    @hook_impl
    def after_catalog_created(self, catalog: DataCatalog, parameters: dict[str, Any]) -> None:
        """Pass ``serm`` on."""
        for name in PEOPLE:
            people: Any = catalog.get(name)
            if people is not None:
                people.present = parameters.get("params:serm", {})


class ProgressHook:
    """Show which node is at work, and how long the rest takes if it takes as long as last time."""

    def __init__(self) -> None:
        self._nodes: list[str] = []
        self._last: dict[str, float] = {}
        self._took: dict[str, float] = {}
        self._started = 0.0
        self._bar = ExitStack()

    @hook_impl
    def before_pipeline_run(
        self, run_params: dict[str, Any], pipeline: Pipeline, catalog: DataCatalog
    ) -> None:
        """Read how long each node took last time on this dataset."""
        self._file = Path(run_params["project_path"]) / DURATIONS
        self._dataset = str(catalog.load("parameters").get("dataset"))
        # Where nodes run at once, no bar can say which one is at work.
        alone = "Sequential" in str(run_params.get("runner") or "SequentialRunner")
        self._nodes, self._took = [node.name for node in pipeline.nodes if alone], {}
        with suppress(OSError, ValueError):
            known = json.loads(self._file.read_text(encoding="utf-8"))
            self._last = known.get(self._dataset, {})

    @hook_impl
    def before_node_run(self, node: Node) -> None:
        """Start the bar of a node."""
        from countermove.execution import step_bar

        self._started = time.perf_counter()
        if len(self._took) >= len(self._nodes) or node.name not in self._nodes:
            return
        known = [self._last.get(name) for name in self._nodes if name not in self._took]
        before = sum(self._took.values())
        rest = None if None in known else before + sum(each or 0.0 for each in known)
        what = f"{node.name}, {len(self._took) + 1} of {len(self._nodes)}"
        self._bar.enter_context(step_bar(what, before, rest))

    @hook_impl
    def after_node_run(self, node: Node) -> None:
        """End its bar."""
        self._bar.close()
        self._took[node.name] = round(time.perf_counter() - self._started, 3)

    @hook_impl
    def on_node_error(self) -> None:
        """End its bar before the error is shown."""
        self._bar.close()

    @hook_impl
    def after_pipeline_run(self) -> None:
        """Keep how long each node took; a run does not fail for that."""
        from countermove.data.storage import replace_file

        with suppress(OSError, ValueError, StorageError):
            found = self._file.read_text(encoding="utf-8") if self._file.exists() else "{}"
            known = json.loads(found)
            known[self._dataset] = known.get(self._dataset, {}) | self._took
            replace_file(self._file, json.dumps(known, indent=1).encode())


class SummaryHook:
    """Say what a run found and where it lies."""

    @hook_impl
    def after_pipeline_run(self, pipeline: Pipeline, catalog: DataCatalog) -> None:
        """Show accuracy before and after response, what is promised, and where the page is.

        Only after a run that made them all; other runs say where their pages are. Rows set
        aside are always counted.
        """
        from countermove.reporting import terminal
        from countermove.reporting.conclusion import opening
        from countermove.reporting.words import promise_line, summary_lines

        for line in _set_aside(pipeline, catalog):
            logger.warning(line)
        made = pipeline.all_outputs()
        found = [names for names in (HEADLINE, AUDITED) if set(names) <= made]
        if not found:
            for name in sorted(made):
                if _is_page(catalog, name):
                    logger.info("page: %s", _place(catalog, name))
            return
        metrics, calibration, summary = (catalog.load(name) for name in found[0][:3])
        report, first = _place(catalog, found[0][3]), opening(summary)
        if terminal.show(metrics, calibration, first, report):
            return
        more = (*summary_lines(metrics), promise_line(calibration), f"report: {report}")
        for line in (first, *more):
            logger.info(line)


def _set_aside(pipeline: Pipeline, catalog: DataCatalog) -> Iterator[str]:
    """Yield how many rows of the table and of batches a run set aside, and where they are."""
    from countermove.data.quarantine import words

    made = pipeline.all_outputs()
    if "intake" in made:
        found = catalog.load("intake")
        if found["set_aside"]:
            count = words(found["set_aside"], found["rows"])
            yield f"{count}: see {_place(catalog, 'quarantine')}"
    for name, facts in catalog.load("batch_facts").items() if "batch_facts" in made else ():
        if facts["set_aside"]:
            count = words(facts["set_aside"], facts["rows"])
            yield f"batch {name!r}: {count}: see {_place(catalog, 'batch_quarantine')}"


def _is_page(catalog: DataCatalog, name: str) -> bool:
    """Return whether a dataset is a file to be looked at in a browser."""
    dataset = catalog.get(name)
    described = {} if dataset is None else dataset._describe()
    return str(described.get("filepath")).endswith(".html")


def _place(catalog: DataCatalog, name: str) -> str:
    """Return the path of a file of the catalog, from where the user stands if that is shorter."""
    path = Path(catalog[name]._describe()["filepath"])
    return str(path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path)
