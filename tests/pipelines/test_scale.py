"""Every command of the page on scale, run against a real scheduler with TLS on loopback."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import pandas as pd
import pytest
import yaml
from tests.conftest import ROOT
from tests.execution.clusters import free_port
from tests.pipelines.test_parts import REPORT, bring_parts, facts

PAGE = (ROOT / "docs" / "scale.md").read_text()
PATH = {"PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
"""The environment's own programs first, as once it is activated."""


def commands(port):
    """Return the page's commands by their program, the host and its port replaced."""
    blocks = re.findall(r"^```\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)
    found = {"dask scheduler": [], "dask worker": [], "kedro run": []}
    for line in (line for block in blocks for line in block.splitlines()):
        words = shlex.split(line.replace("host:8786", f"127.0.0.1:{port}"), comments=True)
        first = next(place for place, word in enumerate(words) if "=" not in word)
        variables = dict(word.split("=", 1) for word in words[:first])
        words = ["tls://127.0.0.1" if word == "tls://host" else word for word in words[first:]]
        words = [str(port) if word == "8786" else word for word in words]
        found[" ".join(words[:2])].append((variables, words))
    return found


@contextmanager
def in_background(project, variables, words):
    """Run a command that does not end by itself, and end it with all its processes."""
    process = subprocess.Popen(
        words,
        cwd=project.path,
        env=os.environ | PATH | variables,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        yield
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait(30)


def certify(folder):
    """Make an authority, and a key with a certificate of it for 127.0.0.1."""
    name = ["-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1"]
    make = ["openssl", "req", "-newkey", "rsa:2048", "-nodes", *name, "-days", "2", "-x509"]
    subprocess.run(
        [*make, "-keyout", "authority.key", "-out", "ca.pem"],
        cwd=folder, check=True, capture_output=True,
    )  # fmt: skip
    subprocess.run(
        [*make, "-CA", "ca.pem", "-CAkey", "authority.key", "-keyout", "key.pem",
         "-out", "cert.pem"],
        cwd=folder, check=True, capture_output=True,
    )  # fmt: skip


@pytest.mark.slow
def test_the_commands_of_the_page_run_here_and_on_a_cluster_with_the_same_result(project):
    conf = project.path / "conf"
    small = yaml.safe_load((conf / "test" / "parameters.yml").read_text())["ingest"]
    for env in ("local", "cluster"):
        shutil.copy(conf / "test" / "globals.yml", conf / env)
        (conf / env / "parameters_ingest.yml").write_text(yaml.safe_dump({"ingest": small}))
    bring_parts(project)
    certify(conf / "local")
    found = commands(free_port())
    assert {program: len(lines) for program, lines in found.items()} == {
        "dask scheduler": 1, "dask worker": 1, "kedro run": 3
    }  # fmt: skip
    results = []
    with ExitStack() as running:
        for program in ("dask scheduler", "dask worker"):
            running.enter_context(in_background(project, *found[program][0]))
        for variables, words in found["kedro run"]:
            done = subprocess.run(
                words,
                cwd=project.path,
                env=os.environ | PATH | variables,
                capture_output=True,
                text=True,
                check=False,
            )
            assert done.returncode == 0, done.stderr
            advised = pd.read_parquet(project.path / "data/07_model_output/tiny/advised")
            results.append((facts(json.loads((project.path / REPORT).read_text())), advised))
    here, *others = results
    assert len(here[1]) > 0
    for there in others:
        assert there[0] == here[0]
        assert there[1].equals(here[1])
