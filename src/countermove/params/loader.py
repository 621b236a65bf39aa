"""Configuration in which another ``kind`` does not inherit the old kind's settings.

conf/base shows the settings of the chosen kinds. An environment, a file given by ``--config`` or
``--params`` that names another kind starts from that kind's defaults. Experiments under their old
names are ``paper``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kedro.config import OmegaConfigLoader
from omegaconf import DictConfig, OmegaConf

from countermove.params.renamed import renamed_settings, results_of


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
