"""What a run of a pipeline would do: every setting and where it comes from, nodes and datasets."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from countermove.params import GROUPS
from countermove.params.checking import check_group
from countermove.params.loader import SettingsLoader, without_other_kinds
from countermove.params.shown import flow

RUN = "--params"
DEFAULT = "default"
PREFIX = "params:"


class Effective(NamedTuple):
    """One setting of a run."""

    name: str
    value: Any
    origin: str


def layers(loader: SettingsLoader, root: Path) -> list[tuple[str, Mapping[str, Any]]]:
    """Return every file of parameters with what it says, and ``--params``, in order of merging."""
    from omegaconf import OmegaConf

    base, environment, *_ = loader._read_raw_config("parameters")
    found: list[tuple[str, Any]] = [
        (_relative(path, root), OmegaConf.to_container(config))
        for files in (base, environment)
        for path, config in sorted(files.items())
    ]
    return [*found, (RUN, loader.runtime_params or {})]


def origins(given: Sequence[tuple[str, Mapping[str, Any]]]) -> dict[str, str]:
    """Return the layer that each setting comes from; one that another kind dropped is in none."""
    found: dict[str, str] = {}
    for place, (name, layer) in enumerate(given):
        kept: Mapping[str, Any] = layer
        for _, above in given[place + 1 :]:
            kept = without_other_kinds(kept, above)
        found |= {leaf: name for leaf, value in _leaves(kept).items() if value != {}}
    return found


def effective(
    groups: Sequence[str], params: Mapping[str, Any], given: Sequence[tuple[str, Mapping[str, Any]]]
) -> list[Effective]:
    """Return every setting of some groups as a run would use it."""
    origin = origins(given)
    found = []
    for group in groups:
        value: Any = params[group]
        if group in GROUPS:
            value = check_group(group, GROUPS[group], value or {}).model_dump(mode="json")
        for name, leaf in _leaves({group: value}).items():
            found.append(Effective(name, leaf, origin.get(name, DEFAULT)))
    return found


def _leaves(settings: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in settings.items():
        if isinstance(value, Mapping) and value:
            found |= _leaves(value, f"{prefix}{name}.")
        else:
            found[f"{prefix}{name}"] = value
    return found


def explain(pipeline: Any, context: Any) -> Iterator[str]:
    """Yield the lines that say what a run of a pipeline would do."""
    root, loader = Path(context.project_path), context.config_loader
    inputs = {name for node in pipeline.nodes for name in node.inputs if name.startswith(PREFIX)}
    used = {name.removeprefix(PREFIX).partition(".")[0] for name in inputs}
    params = loader["parameters"]
    groups = [group for group in ("dataset", "seed", *GROUPS) if group in used | {"dataset"}]
    found = effective(groups, params, layers(loader, root))
    yield "settings"
    yield from _columns([(each.name, flow(each.value), each.origin) for each in found])
    yield ""
    yield "nodes, in order"
    paths = {name: _relative(path, root) for name, path in _paths(pipeline, loader).items()}
    for node in pipeline.nodes:
        yield f"  {node.name}"
        reads = [name for name in node.inputs if not name.startswith(PREFIX)]
        for verb, names in (("reads", reads), ("writes", node.outputs)):
            for name in names:
                yield f"    {verb:<6} {name}  {paths[name]}"


def _paths(pipeline: Any, loader: SettingsLoader) -> dict[str, str]:
    """Return where each dataset of a pipeline lies."""
    from kedro.config import MissingConfigException
    from kedro.io.catalog_config_resolver import DEFAULT_RUNTIME_PATTERN, CatalogConfigResolver

    try:
        credentials = loader["credentials"]
    except MissingConfigException:
        credentials = {}
    resolver = CatalogConfigResolver(loader["catalog"], credentials, DEFAULT_RUNTIME_PATTERN)
    return {
        name: _path(resolver.resolve_pattern(name) or {})
        for name in pipeline.datasets()
        if not name.startswith(PREFIX)
    }


def _path(entry: Mapping[str, Any]) -> str:
    for key in ("filepath", "folder", "location"):
        if key in entry:
            where = entry[key]
            path = where["path"] if isinstance(where, Mapping) else where
            return f"{path}/{entry['name']}" if "name" in entry else str(path)
    return "(in memory)"


def _columns(rows: Sequence[tuple[str, str, str]]) -> Iterator[str]:
    # Names always align; one long value does not push every origin out of sight.
    names = max(len(name) for name, _, _ in rows)
    values = min(max(len(value) for _, value, _ in rows), 24)
    for name, value, origin in rows:
        yield f"  {name:<{names}}  {value:<{values}}  {origin}"


def _relative(path: Any, root: Path) -> str:
    return str(Path(path).relative_to(root)) if Path(path).is_relative_to(root) else str(path)
