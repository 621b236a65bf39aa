"""A Kedro runner that gives whole nodes to a Dask cluster.

For pipelines with many independent nodes. What is heavy here runs *inside* nodes
(``execution.engine: dask``), so the sequential runner is the usual choice.
"""

from __future__ import annotations

import os
from concurrent.futures import Executor, Future
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from kedro.io import MemoryDataset
from kedro.runner import AbstractRunner

from countermove.errors import ParameterError, shown

if TYPE_CHECKING:
    from kedro.io import CatalogProtocol
    from kedro.pipeline import Pipeline
    from kedro.pipeline.node import Node
    from kedro.runner.task import Task
    from pluggy import PluginManager

SCHEDULER = "COUNTERMOVE_SCHEDULER"
"""Names the scheduler; without it, workers are started on this machine."""


class DaskRunner(AbstractRunner):
    """Run nodes on a Dask cluster, as soon as their inputs are there.

    ``kedro run --runner=countermove.pipelines.dask_runner.DaskRunner``. Workers read and write
    the catalog's files themselves: they need the same folder, and every dataset between two
    nodes must be in the catalog.
    """

    def _run(
        self,
        pipeline: Pipeline,
        catalog: CatalogProtocol[Any, Any],
        hook_manager: PluginManager | None = None,
        run_id: str | None = None,
    ) -> None:
        passed = pipeline.all_outputs() & pipeline.all_inputs()
        lost = sorted(name for name in passed if isinstance(catalog.get(name), MemoryDataset))
        if lost:
            raise ParameterError(
                f"workers share files, not memory: {shown(lost)} must be in the catalog"
            )
        super()._run(pipeline, catalog, hook_manager, run_id)

    def _get_executor(self, max_workers: int) -> Executor:
        from countermove.execution import Execution
        from countermove.execution.cluster import DaskMapper

        address = os.environ.get(SCHEDULER)
        return NodeExecutor(DaskMapper(Execution("dask", scheduler=address)))


class NodeExecutor(Executor):
    """Sends nodes to workers; hooks stay behind and are made again there.

    Parameters
    ----------
    mapper
        Connected to a cluster.
    """

    def __init__(self, mapper: Any) -> None:
        self._mapper, self._executor = mapper, mapper.executor()

    def submit(self, task: Task, /, *_: Any, **__: Any) -> Future[Node]:  # type: ignore[override]
        """Send one node; the future holds ours, which is not sent back."""
        from kedro.framework.project import PACKAGE_NAME

        node: Future[Node] = Future()
        local, task.hook_manager = task.node, None

        def settle(done: Future[None]) -> None:
            error = done.exception()
            if error is None:
                node.set_result(local)
            else:
                node.set_exception(error)

        sent = self._executor.submit(run_node, PACKAGE_NAME, os.getcwd(), task)
        sent.add_done_callback(settle)
        return node

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Leave the cluster."""
        self._mapper.close()


def run_node(package: str, folder: str, task: Task) -> None:
    """Do one node in a worker, in the project's folder."""
    os.chdir(folder)
    task.hook_manager = _hooks(package)
    task()


@lru_cache(maxsize=1)
def _hooks(package: str) -> PluginManager:
    """Make the project and its own hooks known to this worker; Kedro takes that once only."""
    from kedro.framework.hooks.manager import _create_hook_manager, _register_hooks
    from kedro.framework.project import configure_project, settings

    configure_project(package)
    manager = _create_hook_manager()
    _register_hooks(manager, settings.HOOKS)
    return manager
