"""What the tests notice: one changed token at a time, and the test that fails of it.

``python tests/architecture/mutants.py [number]`` makes each change of ``mutants.yml`` (or the first
so many) in a copy of the sources and runs the test that is said to notice. Changes were drawn at
random per room, with a fixed seed; those that the room's nearest tests did not notice say so.
Kernels are run without being compiled.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).parents[2]
TABLE = yaml.safe_load(Path(__file__).with_name("mutants.yml").read_text("utf-8"))


def noticed(mutant: dict[str, Any], sources: Path) -> bool:
    """Say whether the mutant's test fails once its line is changed in a copy of the sources."""
    path = sources / "countermove" / mutant["file"]
    text = path.read_text("utf-8")
    path.write_text(text.replace(mutant["line"], mutant["becomes"]), "utf-8")
    environment = os.environ | {"PYTHONPATH": str(sources), "OMP_NUM_THREADS": "1"}
    if mutant.get("kernel"):
        environment["NUMBA_DISABLE_JIT"] = "1"
    # Where the change makes a loop endless, that is noticed too.
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider"]
    try:
        ran = subprocess.run(
            [*command, mutant["noticed_by"]],
            cwd=ROOT,
            env=environment,
            capture_output=True,
            check=False,
            timeout=300,
        )
    except subprocess.TimeoutExpired:
        return True
    else:
        return ran.returncode == 1
    finally:
        path.write_text(text, "utf-8")


def main(most: int) -> None:
    """Print every mutant that its test does not notice any more."""
    known = [mutant for mutant in TABLE if mutant["noticed_by"]][:most]
    with tempfile.TemporaryDirectory() as folder:
        sources = Path(shutil.copytree(ROOT / "src", Path(folder) / "src"))
        lost = [mutant for mutant in known if not noticed(mutant, sources)]
    lines = [
        f"{mutant['file']}: {mutant['line']} -> {mutant['becomes']}: {mutant['noticed_by']}"
        for mutant in lost
    ]
    lines.append(f"{len(known) - len(lost)} of {len(known)} are noticed")
    sys.stdout.write("\n".join(lines) + "\n")
    sys.exit(1 if lost else 0)


if __name__ == "__main__":
    main(int(sys.argv[1]) if sys.argv[1:] else len(TABLE))
