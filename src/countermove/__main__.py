"""``python -m countermove``: the run command without Kedro's project discovery."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from kedro.framework.cli.utils import find_run_command
from kedro.framework.project import configure_project


def main(*args: Any, **kwargs: Any) -> Any:
    """Configure the project and run a pipeline."""
    package_name = Path(__file__).parent.name
    configure_project(package_name)
    kwargs.setdefault("standalone_mode", not hasattr(sys, "ps1"))
    return find_run_command(package_name)(*args, **kwargs)


if __name__ == "__main__":
    main()
