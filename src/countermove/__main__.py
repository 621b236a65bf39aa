"""``python -m countermove``: the run command without Kedro's project discovery."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from kedro.framework.cli.project import run
from kedro.framework.project import configure_project

import countermove.cli  # noqa: F401  (errors are said in one sentence)


def main(*args: Any, **kwargs: Any) -> Any:
    """Configure the project and run a pipeline."""
    configure_project(Path(__file__).parent.name)
    kwargs.setdefault("standalone_mode", not hasattr(sys, "ps1"))
    return run(*args, **kwargs)


if __name__ == "__main__":
    main()
