"""Two whole suites never run at once on one machine."""

from __future__ import annotations

import subprocess
import sys
import time

from .locked import main

SCRIPT = """
import sys, pathlib
sys.path.insert(0, {folder!r})
from locked import main
sys.exit(main([sys.executable, "-c", {body!r}], pathlib.Path({lock!r})))
"""


def start(tmp_path, body):
    from pathlib import Path

    folder = str(Path(__file__).parent)
    script = SCRIPT.format(folder=folder, body=body, lock=str(tmp_path / "lock"))
    return subprocess.Popen([sys.executable, "-c", script], stderr=subprocess.PIPE, text=True)


def test_the_second_run_waits_for_the_first(tmp_path):
    began, go_on, second = (str(tmp_path / name) for name in ("began", "go_on", "second"))
    first = start(
        tmp_path,
        f"import pathlib, time\npathlib.Path({began!r}).touch()\n"
        f"while not pathlib.Path({go_on!r}).exists(): time.sleep(0.05)\n",
    )
    while not (tmp_path / "began").exists():
        time.sleep(0.05)
    waiting = start(tmp_path, f"import pathlib; pathlib.Path({second!r}).touch()")
    assert "waiting for it to end" in waiting.stderr.readline()
    assert not (tmp_path / "second").exists()
    (tmp_path / "go_on").touch()
    assert first.wait() == 0
    assert waiting.wait() == 0
    assert (tmp_path / "second").exists()
    first.stderr.close()
    waiting.stderr.close()


def test_the_command_s_exit_code_is_kept(tmp_path):
    failing = [sys.executable, "-c", "raise SystemExit(3)"]
    assert main(failing, tmp_path / "lock") == 3
