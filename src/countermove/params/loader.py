"""Configuration in which every environment can override everything, schemas and ``dataset`` too.

conf/base shows the settings of the chosen kinds. An environment, a file given by ``--config`` or
``--params`` that names another kind starts from that kind's defaults. kedro-viz looks at the
dataset that was run last.
"""

from __future__ import annotations

import copy
import logging
import shutil
import sys
import weakref
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

from kedro.config import OmegaConfigLoader
from omegaconf import DictConfig, OmegaConf
from omegaconf.resolvers import oc

from countermove.errors import ParameterError, UnknownNameError, meant

logger = logging.getLogger(__name__)
VIZ = "kedro_viz.integrations.kedro.data_loader"
"""The module by which kedro-viz, and nothing else, loads a project."""
EXPERIMENTS = "paper"
"""The folder of conf that is no environment: its files are given by ``--config``."""
ARCHIVES = (".tar.gz", ".tgz", ".tar", ".zip")


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


def _check_environment(env: str | None, conf: Path) -> None:
    """Refuse an environment that has no folder, with the nearest name."""
    found = [path.name for path in conf.iterdir() if path.is_dir()] if conf.is_dir() else []
    known = [name for name in found if name != EXPERIMENTS and not name.startswith(".")]
    if env is not None and known and env not in known:
        raise UnknownNameError(f"there is no environment {env!r} in {conf}{meant(env, known)}")


def schema_folders(conf: str | Path, env: str, base: str = "base") -> list[Path]:
    """Return the folders of schemas: that of an environment, if it has one, then that of base."""
    own = [Path(conf, name, "schemas") for name in {env, base} - {base}]
    return [folder for folder in own if folder.is_dir()] + [Path(conf, base, "schemas")]


class SettingsLoader(OmegaConfigLoader):
    """Kedro's loader, with `without_other_kinds` wherever parameters are merged.

    The catalog may ask for ``${settings:<name>}``, any setting of a run, whichever environment or
    ``--params`` it comes from (``${runtime_params:…}`` would see ``--params`` only): ``dataset``,
    ``lookahead.name`` …; ``paper.kind`` and ``paper.name``, by which files of an experiment are
    called; ``schema``, the file of the dataset's schema; ``schemas``, the folders of schemas. Every
    file may ask for ``${oc.env:<VARIABLE>}``.
    """

    def __init__(
        self,
        conf_source: str,
        env: str | None = None,
        runtime_params: dict[str, Any] | None = None,
        **more: Any,
    ) -> None:
        given = dict(runtime_params or {})
        conf = self._unpacked(conf_source)
        last = last_run(conf.parent) if VIZ in sys.modules else None
        if last is not None and "dataset" not in given:
            logger.info("kedro-viz shows the dataset that was run last: %s", last)
            given["dataset"] = last
        _check_environment(env, conf)
        if not (conf / more.get("default_run_env", "")).is_dir():
            more["default_run_env"] = more.get("base_env")
        self._files: Any = None
        self._merged: dict[str, Any] | None = None
        self._parameters: dict[str, Any] = {}
        # Kedro resolves variables of the environment in credentials only, unless it is given this.
        more["custom_resolvers"] = {"oc.env": oc.env} | more.get("custom_resolvers", {})
        super().__init__(str(conf), env=env, runtime_params=given, **more)

    def __setitem__(self, key: str, value: Any) -> None:
        """Set a part of the configuration: what was merged before may have read it."""
        self._merged = None
        self.__dict__.pop("_dataset", None)
        super().__setitem__(key, value)

    def __getitem__(self, key: str) -> dict[str, Any]:
        """Return a part of the configuration by name."""
        if key == "catalog":
            self._parameters = self["parameters"]
        OmegaConf.register_new_resolver("settings", self._setting, replace=True)
        if key != "parameters" or key in self:
            found: dict[str, Any] = super().__getitem__(key)
            return found
        # A run asks for them several times, and merging them takes longer than copying.
        if self._merged is None:
            self._merged = super().__getitem__(key)
        return copy.deepcopy(self._merged)

    @property
    def groups_in_files(self) -> set[str]:
        """Names of all groups of parameters that files have, whoever reads them."""
        base, environment, *_ = self._read_raw_config("parameters")
        return {
            str(name) for files in (base, environment) for each in files.values() for name in each
        }

    @property
    def schema_folders(self) -> list[Path]:
        """Where schemas lie: those of the environment come before those of conf/base."""
        return schema_folders(self.conf_source, self.env or self.default_run_env, self.base_env)

    def _setting(self, name: str) -> Any:
        """Return what ``${settings:<name>}`` stands for."""
        if name == "dataset":
            return self._dataset
        if name == "schemas":
            return [str(folder) for folder in self.schema_folders]
        if name == "schema":
            paths = [folder / f"{self._dataset}.yml" for folder in self.schema_folders]
            return str(next((path for path in paths if path.is_file()), paths[-1]))
        if name.startswith("paper."):
            paper = self._parameters.get("paper") or {}
            kind = (paper.get("experiment") or {}).get("kind", "replicator")
            return {"kind": kind, "name": paper.get("name") or kind}[name.removeprefix("paper.")]
        found: Any = self._parameters
        for step in name.split("."):
            found = found.get(step) if isinstance(found, dict) else None
        if found is None and name == "collective.name":  # By its table.
            return self._setting("collective.dataset")
        if found is None:
            raise ParameterError(
                f"${{settings:{name}}} in the catalog: no such setting has a value"
            )
        return found

    @cached_property
    def _dataset(self) -> str:
        """Return the dataset: of ``--params``, else of the environment, else of globals.yml."""
        if "dataset" in (self.runtime_params or {}):
            return str(self.runtime_params["dataset"])
        base, environment, *_ = self._read_raw_config("parameters")
        named = [each for files in (environment, base) for each in files.values()]
        return str(next((each["dataset"] for each in named if "dataset" in each), ""))

    def _read_raw_config(self, key: str) -> Any:
        """Read files of parameters once: a run asks for them several times."""
        if key != "parameters":  # Merging, as Kedro does it, destroys what was read.
            return super()._read_raw_config(key)
        if self._files is None:
            self._files = super()._read_raw_config(key)
        return self._files

    def _check_duplicates(self, key: str, config: dict[Path, Any]) -> None:
        for path, content in config.items():
            if not isinstance(content, DictConfig):
                raise ParameterError(f"{path} must hold names with values, as in `seed: 1`")
        super()._check_duplicates(key, config)

    def _unpacked(self, conf_source: str) -> Path:
        """Return the folder of the configuration; `kedro package` leaves an archive of it."""
        if not str(conf_source).endswith(ARCHIVES):
            return Path(conf_source)
        folder = Path(mkdtemp(prefix="countermove-conf-"))
        weakref.finalize(self, shutil.rmtree, folder, ignore_errors=True)
        safely: dict[str, Any] = {} if str(conf_source).endswith(".zip") else {"filter": "data"}
        shutil.unpack_archive(conf_source, folder, **safely)
        inside = [path for path in folder.iterdir() if path.is_dir()]
        return inside[0] if len(inside) == 1 else folder

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
