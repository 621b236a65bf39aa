"""Decisions in MLflow: with the extra they are there, without it the run says what is missing."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys

import pytest

from countermove.errors import MissingPartError
from countermove.pipelines.retrain.mlflow_logging import client_of, metrics_of

INSTALLED = importlib.util.find_spec("mlflow") is not None
LIST = """
import json, sys
from mlflow import MlflowClient
client = MlflowClient(tracking_uri=sys.argv[1])
place = client.get_experiment_by_name("nightly").experiment_id
runs = client.search_runs([place], order_by=["attribute.start_time ASC"])
print(json.dumps([[run.info.status, run.data.tags, run.data.metrics] for run in runs]))
"""


def test_numbers_of_a_decision_have_names():
    facts = {
        "judgement": {"accuracy": {"challenger": {"best": 0.8, "none": 0.7}}},
        "gates": [{"name": "flip_rate", "value": None}, {"name": "transfer_bound", "value": 0.4}],
        "forecast": {"error": 0.2},
    }
    assert metrics_of(facts) == {
        "accuracy.challenger.best": 0.8,
        "accuracy.challenger.none": 0.7,
        "gate.transfer_bound": 0.4,
        "forecast.error": 0.2,
    }


@pytest.mark.skipif(INSTALLED, reason="MLflow is installed")
def test_without_the_extra_the_error_says_how_to_get_it():
    with pytest.raises(MissingPartError, match=r"countermove\[mlflow\]"):
        client_of("sqlite:///runs.db")


@pytest.mark.slow
@pytest.mark.skipif(INSTALLED, reason="MLflow is installed")
def test_a_run_without_the_extra_stops_before_it_trains(working):
    ran = working.retrain("--params=retrain.mlflow.experiment=nightly")
    assert ran.returncode == 1
    assert "MissingPartError: retrain.mlflow is set" in ran.stderr
    assert "Completed node" not in ran.stderr


@pytest.mark.slow
@pytest.mark.skipif(not INSTALLED, reason="the extra mlflow is not installed: make test-mlflow")
def test_each_decision_is_one_run(working):
    store = f"sqlite:///{working.path / 'runs.db'}"
    said = f"retrain.mlflow.tracking_uri={store},retrain.mlflow.experiment=nightly"
    for number in (1, 2):
        working.bring_batch(f"batch{number}", seed=number)
        ran = working.retrain(f"--params={said}")
        assert ran.returncode in (0, 3), ran.stderr
        assert "MLflow run" in ran.stderr
    nothing_new = working.retrain(f"--params={said}")
    assert nothing_new.returncode == 0
    listed = subprocess.run(
        [sys.executable, "-c", LIST, store], env=os.environ, capture_output=True, text=True
    )
    assert listed.returncode == 0, listed.stderr
    runs = json.loads(listed.stdout.splitlines()[-1])
    decision = json.loads((working.path / "data/08_reporting/tiny/decision.json").read_text())
    assert len(runs) == 2
    status, tags, metrics = runs[-1]
    assert status == "FINISHED"
    assert tags["countermove.version"] == decision["version"]
    assert tags["countermove.outcome"] == decision["outcome"]
    assert tags["countermove.dataset"] == "tiny"
    shown = decision["facts"]["judgement"]["accuracy"]
    assert metrics["accuracy.champion.best"] == shown["champion"]["best"]


@pytest.mark.slow
@pytest.mark.skipif(not INSTALLED, reason="the extra mlflow is not installed: make test-mlflow")
def test_a_store_that_does_not_answer_changes_no_decision(working, monkeypatch):
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "0")
    working.bring_batch("batch")
    ran = working.retrain("--params=retrain.mlflow.tracking_uri=http://127.0.0.1:9")
    assert ran.returncode in (0, 3), ran.stderr
    assert "was not logged to MLflow" in " ".join(ran.stderr.split())
