"""A retraining's decision in MLflow, for teams who follow all their models there (extra: mlflow).

The registry stays the truth: MLflow is informed after everything is decided, and if it
does not answer, the run is as good as it was.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any

from kedro.framework.hooks import hook_impl

from countermove.errors import MissingPartError

if TYPE_CHECKING:
    from kedro.framework.context import KedroContext
    from kedro.io import DataCatalog
    from kedro.pipeline import Pipeline

logger = logging.getLogger(__name__)


class MlflowHook:
    """Log each decision as one MLflow run, if ``retrain.mlflow`` says where."""

    def __init__(self) -> None:
        self._dataset, self._experiment = "", ""
        self._client: Any = None

    @hook_impl
    def after_context_created(self, context: KedroContext) -> None:
        """Open the client, so that a missing package is reported before anything is trained."""
        from countermove.params import RetrainParameters

        params = context.config_loader["parameters"]
        said = RetrainParameters.model_validate(params.get("retrain", {})).mlflow
        self._client = None
        if said is not None:
            self._dataset, self._experiment = str(params["dataset"]), said.experiment
            self._client = client_of(said.tracking_uri)

    @hook_impl
    def after_pipeline_run(self, pipeline: Pipeline, catalog: DataCatalog) -> None:
        """Log the decision, if one was made."""
        if self._client is None or "decision" not in pipeline.all_outputs():
            return
        decision = catalog.load("decision")
        try:
            run = log_decision(self._client, self._experiment, self._dataset, decision)
        except Exception as error:  # noqa: BLE001  (a client of a remote server raises anything)
            logger.warning("decision %s was not logged to MLflow: %s", decision["version"], error)
        else:
            logger.info("MLflow run %s holds decision %s", run, decision["version"])


def client_of(tracking_uri: str | None) -> Any:
    """Return an MLflow client; None: where MLFLOW_TRACKING_URI says.

    Raises
    ------
    MissingPartError
        If MLflow is not installed.
    """
    try:
        mlflow = import_module("mlflow")
    except ImportError as error:
        raise MissingPartError(
            f"retrain.mlflow is set and MLflow is not installed ({error}): "
            "`pip install countermove[mlflow]` brings it, or set retrain.mlflow to null"
        ) from error
    return mlflow.MlflowClient(tracking_uri=tracking_uri)


def log_decision(client: Any, experiment: str, dataset: str, decision: Mapping[str, Any]) -> str:
    """Write a decision as one finished run; return its id.

    Tags say what was decided (``dataset``, ``version``, ``kind``, ``outcome``,
    ``champion_before``, ``champion_after``); metrics are accuracies on the hold-out by rule and
    response, and what each gate measured.
    """
    found = client.get_experiment_by_name(experiment)
    place = client.create_experiment(experiment) if found is None else found.experiment_id
    keys = ("version", "kind", "outcome", "champion_before", "champion_after")
    tags = {f"countermove.{key}": str(decision[key]) for key in keys}
    tags |= {
        "countermove.dataset": dataset,
        "mlflow.note.content": "\n".join(decision["reasons"]),
    }
    run: str = client.create_run(place, run_name=decision["version"], tags=tags).info.run_id
    for name, value in metrics_of(decision["facts"]).items():
        client.log_metric(run, name, value)
    client.set_terminated(run)
    return run


def metrics_of(facts: Mapping[str, Any]) -> dict[str, float]:
    """Return the numbers of a decision by name.

    >>> metrics_of({"gates": [{"name": "flip_rate", "value": 0.1}]})
    {'gate.flip_rate': 0.1}
    """
    accuracies = facts.get("judgement", {}).get("accuracy", {})
    found = {
        f"accuracy.{rule}.{response}": float(value)
        for rule, by_response in accuracies.items()
        for response, value in by_response.items()
    }
    for gate in facts.get("gates", []):
        if gate["value"] is not None:
            found[f"gate.{gate['name']}"] = float(gate["value"])
    if "forecast" in facts:
        found["forecast.error"] = float(facts["forecast"]["error"])
    return found
