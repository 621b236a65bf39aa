"""What happens around a run: the dataset's name is checked first, the outcome is told last."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

from kedro.framework.context import KedroContext
from kedro.framework.hooks import hook_impl
from kedro.io import DataCatalog

from countermove.data.names import check_dataset_name
from countermove.errors import ParameterError, nearest
from countermove.params import GROUPS
from countermove.reporting.tables import promise_line, summary_lines

logger = logging.getLogger(__name__)
KNOWN = ("dataset", "seed", *GROUPS)


class NamesHook:
    """Refuse an unknown dataset or parameter before any path is built from its name."""

    @hook_impl
    def after_context_created(self, context: KedroContext) -> None:
        """Check ``dataset`` against the schemas in conf, and the names of parameter groups."""
        check_dataset_name(str(context.params["dataset"]), schema_folder(context.project_path))
        for group in context.params:
            if group not in KNOWN:
                raise ParameterError(f"there is no parameter {group!r}: {nearest(group, KNOWN)}")


class SummaryHook:
    """Say what a run found and where it lies."""

    @hook_impl
    def after_pipeline_run(self, run_params: dict[str, Any], catalog: DataCatalog) -> None:
        """Log accuracy before and after response, and what is promised."""
        if run_params.get("pipeline_names") != ["serm"]:
            return
        for line in summary_lines(catalog.load("metrics")):
            logger.info(line)
        logger.info(promise_line(catalog.load("recourse_calibration")))


def schema_folder(project_path: Path) -> Path:
    """Return where the schemas of a project lie."""
    return Path(project_path) / "conf" / "base" / "schemas"
