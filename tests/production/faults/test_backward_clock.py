"""A clock that goes backwards: numbers order everything, times are for people."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml

from countermove.production.history import DecisionHistory
from countermove.production.registry import Registry

CONF = Path(__file__).parents[3] / "conf" / "base"
CLOCK = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <time.h>
#include <sys/time.h>
static long shift(void) { const char *by = getenv("CLOCK_SHIFT"); return by ? atol(by) : 0; }
int clock_gettime(clockid_t id, struct timespec *t) {
    static int (*real)(clockid_t, struct timespec *);
    if (!real) real = dlsym(RTLD_NEXT, "clock_gettime");
    int code = real(id, t);
    if (id == CLOCK_REALTIME) t->tv_sec += shift();
    return code;
}
time_t time(time_t *t) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (t) *t = now.tv_sec;
    return now.tv_sec;
}
"""


def test_decisions_and_history_keep_their_order(forker, tmp_path):
    # The scenarios run under a clock that only goes backwards.
    for scenario in ("promote", "promote", "keep", "rollback"):
        assert forker.order(scenario, tmp_path)["code"] == 0
    registry = Registry(str(tmp_path / "registry"))
    decisions = registry.decisions()
    times = [decision.at for decision in decisions]
    assert times == sorted(times, reverse=True)
    assert [decision.sequence for decision in decisions] == [1, 2, 3, 4]
    champion = registry.champion()
    assert champion is not None
    assert champion.version == decisions[0].version
    history = DecisionHistory(f"sqlite:///{tmp_path / 'history.db'}", "credit")
    listed = history.decisions()["version"].tolist()
    assert listed == [decision.version for decision in decisions]


def test_no_dataset_of_the_pipeline_is_versioned_by_time():
    from countermove.pipelines import ingest, retrain

    steps = ingest.create_pipeline() + retrain.create_pipeline()
    entries = {}
    for path in CONF.glob("catalog_*.yml"):
        entries |= yaml.safe_load(path.read_text())
    versioned = {
        name
        for name, entry in entries.items()
        if isinstance(entry, dict) and entry.get("versioned")
    }
    assert versioned
    for name in steps.datasets():
        assert name not in versioned
        assert not any(
            name.endswith(entry.partition("}")[2]) for entry in versioned if "{" in entry
        )


@pytest.mark.slow
@pytest.mark.fault
def test_whole_runs_under_a_clock_set_back_a_year(working, tmp_path, monkeypatch):
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("no C compiler to build a clock with")
    library = tmp_path / "clock.so"
    source = tmp_path / "clock.c"
    source.write_text(CLOCK)
    build = [compiler, "-shared", "-fPIC", "-o", str(library), str(source), "-ldl"]
    subprocess.run(build, check=True)
    monkeypatch.setenv("LD_PRELOAD", str(library))
    registry = Registry(str(working.path / "data/06_models/tiny"))
    for years in (1, 2):
        monkeypatch.setenv("CLOCK_SHIFT", str(-years * 365 * 86400))
        working.bring_batch(f"batch{years}", seed=years)
        ran = working.retrain()
        assert ran.returncode in (0, 3), ran.stderr
        decided = json.loads((working.path / "data/08_reporting/tiny/decision.json").read_text())
        assert decided["version"] == registry.decisions()[-1].version
        assert f"batch{years}" in decided["facts"]["batches"]
    decisions = registry.decisions()
    assert [decision.sequence for decision in decisions] == [1, 2, 3]
    assert decisions[0].at > decisions[1].at > decisions[2].at
    listed = working.kedro("countermove", "history", "--env=test").stdout
    places = [listed.index(decision.version) for decision in decisions]
    assert places == sorted(places)
