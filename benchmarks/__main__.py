"""Run every benchmark and write its tables into docs/benchmarks.md.

The page shows the first table of each; all that it printed lies beside it in docs/benchmarks.
"""

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


def printed_by(name: str) -> str:
    """Run one benchmark and return what it prints."""
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        importlib.import_module(f"benchmarks.{name}").main()
    return printed.getvalue().strip()


def section(name: str, printed: str) -> str:
    """Return a benchmark's section of the page: its first table, and a link where there is more."""
    title = (importlib.import_module(f"benchmarks.{name}").__doc__ or name).splitlines()[0]
    first, ended, rest = printed.partition("|\n\n")
    more = f" ([all of it](benchmarks/{name}.txt))" if rest else ""
    shown = f"{first}|" if ended else first
    return f"## {title.rstrip('.')}\n\n`python -m benchmarks.{name}`{more}\n\n{shown}\n"


def main() -> None:
    """Run them all; the page is replaced only when all have run."""
    outputs = {}
    for name in sorted(path.stem for path in HERE.glob("bench_*.py")):
        print(f"running {name}", flush=True)
        outputs[name] = printed_by(name)
    whole = PAGE.with_suffix("")
    whole.mkdir(exist_ok=True)
    for name, printed in outputs.items():
        (whole / f"{name}.txt").write_text(f"{printed}\n")
    sections = [section(name, printed) for name, printed in outputs.items()]
    head = HEAD.format(day=date.today().isoformat(), cores=os.cpu_count())
    partial = PAGE.with_suffix(".partial")
    partial.write_text("\n".join([head, *sections]))
    partial.replace(PAGE)
    print(f"wrote {PAGE.relative_to(HERE.parent)}")


if __name__ == "__main__":
    main()
