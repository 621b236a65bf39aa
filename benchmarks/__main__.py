"""Run every benchmark and write its tables into docs/benchmarks.md."""

from __future__ import annotations

import contextlib
import importlib
import io
import os
from datetime import date
from pathlib import Path

HERE = Path(__file__).parent
PAGE = HERE.parent / "docs" / "benchmarks.md"
HEAD = """# Benchmarks

Written by `make bench` on {day} ({cores} cores). Ratios are taken inside one run, so that they
carry over to other machines; seconds do not.
"""


def table(name: str) -> str:
    """Run one benchmark and return its section of the page."""
    module = importlib.import_module(f"benchmarks.{name}")
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        module.main()
    title = (module.__doc__ or name).splitlines()[0].rstrip(".")
    return f"## {title}\n\n`python -m benchmarks.{name}`\n\n{printed.getvalue().strip()}\n"


def main() -> None:
    """Run them all; the page is replaced only when all have run."""
    names = sorted(path.stem for path in HERE.glob("bench_*.py"))
    sections = []
    for name in names:
        print(f"running {name}", flush=True)
        sections.append(table(name))
    head = HEAD.format(day=date.today().isoformat(), cores=os.cpu_count())
    partial = PAGE.with_suffix(".partial")
    partial.write_text("\n".join([head, *sections]))
    partial.replace(PAGE)
    print(f"wrote {PAGE.relative_to(HERE.parent)}")


if __name__ == "__main__":
    main()
