"""Kedro settings. See conf/README.md for what each environment is for."""

import os
import warnings

# Beside other load two threads wait for each other: a run has one unless told otherwise, and more
# cores by execution.engine. NumPy and torch read it when they are first imported, below.
os.environ.setdefault("OMP_NUM_THREADS", "1")

from countermove.hooks import NamesHook, PeopleHook, ProgressHook, SummaryHook
from countermove.params.loader import SettingsLoader
from countermove.pipelines.retrain.guard import RetrainHook
from countermove.pipelines.retrain.mlflow_logging import MlflowHook

# As users know it, and as Kedro 1 takes it.
warnings.filterwarnings("ignore", "Option '--pipeline' is deprecated")

HOOKS = (NamesHook(), PeopleHook(), ProgressHook(), SummaryHook(), RetrainHook(), MlflowHook())

# Their hooks load what a run does not need.
DISABLE_HOOKS_FOR_PLUGINS = ("kedro-viz", "kedro-telemetry")

CONFIG_LOADER_CLASS = SettingsLoader
# Without the soft merge, `--env=test --params serm.cost.scale=2` would drop the rest of `serm`.
CONFIG_LOADER_ARGS = {
    "base_env": "base",
    "default_run_env": "local",
    "merge_strategy": {"parameters": "soft"},
}
