"""Configuration in which another ``kind`` does not inherit the old kind's settings.

conf/base shows the settings of the chosen kinds. An environment, a file given by ``--config`` or
``--params`` that names another kind starts from that kind's defaults. Experiments under their old
names are ``paper``. kedro-viz looks at the dataset that was run last.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from kedro.config import OmegaConfigLoader
from omegaconf import DictConfig, OmegaConf

from countermove.params.renamed import renamed_settings, results_of

logger = logging.getLogger(__name__)
VIZ = "kedro_viz.integrations.kedro.data_loader"
"""The module by which kedro-viz, and nothing else, loads a project."""


def last_run(project: Path) -> str | None:
    """Return the dataset whose decision summary is the newest; None before any run."""
    made = (project / "data" / "08_reporting").glob("*/summary.json")
    newest = max(made, key=lambda path: path.stat().st_mtime, default=None)
    return None if newest is None else newest.parent.name


def without_other_kinds(below: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings below, without those of a kind that the settings above replace."""
    if "kind" in below and "kind" in above and below["kind"] != above["kind"]:
        return {}
    return {
        name: without_other_kinds(value, above[name])
        if isinstance(value, Mapping) and isinstance(above.get(name), Mapping)
        else value
        for name, value in below.items()
    }


class SettingsLoader(OmegaConfigLoader):
    """Kedro's loader, with `without_other_kinds` wherever parameters are merged.

    The catalog may ask for ``${paper:kind}`` and ``${paper:name}``: the files of an experiment are
    called by its kind, which any environment may choose, and ``${runtime_params:…}`` would see
    ``--params`` only.
    """

    def __init__(
        self,
        conf_source: str,
        env: str | None = None,
        runtime_params: dict[str, Any] | None = None,
        **more: Any,
    ) -> None:
        given = dict(runtime_params or {})
        last = last_run(Path(conf_source).parent) if VIZ in sys.modules else None
        if last is not None and "dataset" not in given:
            logger.info("kedro-viz shows the dataset that was run last: %s", last)
            given["dataset"] = last
        super().__init__(conf_source, env=env, runtime_params=given, **more)

    def __getitem__(self, key: str) -> dict[str, Any]:
        """Return a part of the configuration by name."""
        if key == "catalog":
            results = results_of(self["parameters"].get("paper") or {})
            OmegaConf.register_new_resolver("paper", results.__getitem__, replace=True)
        found: dict[str, Any] = super().__getitem__(key)
        return renamed_settings(found) if key == "parameters" else found

    def _merge_and_resolve(self, key: str, config_per_file: Any) -> Any:
        if key == "parameters":
            config_per_file = {
                path: self._without_other_kinds(config) for path, config in config_per_file.items()
            }
        return super()._merge_and_resolve(key, config_per_file)

    def _without_other_kinds(self, config: DictConfig) -> DictConfig:
        plain: Any = OmegaConf.to_container(config)
        return OmegaConf.create(without_other_kinds(plain, self.runtime_params or {}))

    def _merge_configs(
        self, config: dict[str, Any], env_config: dict[str, Any], key: str, env_path: str
    ) -> Any:
        if key == "parameters":
            config = without_other_kinds(config, env_config)
        return super()._merge_configs(config, env_config, key, env_path)
