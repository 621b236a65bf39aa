"""What users write in configuration: YAML without code in it, and functions of their own.

A function is named by where it is: ``package.module:name``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import yaml

from countermove.errors import ParameterError, SchemaError


class _StrictLoader(yaml.SafeLoader):
    """YAML's safe loader, refusing a key that is given twice."""


def _mapping_without_repeats(loader: _StrictLoader, node: yaml.MappingNode) -> dict[Any, Any]:
    keys = [loader.construct_object(key, deep=True) for key, _ in node.value]
    twice = [str(key) for key, count in Counter(map(str, keys)).items() if count > 1]
    if twice:
        raise yaml.constructor.ConstructorError(
            None, None, f"the key {twice[0]!r} is given twice", node.start_mark
        )
    return loader.construct_mapping(node, deep=True)


_StrictLoader.add_constructor(
    yaml.resolver.BaseResolver.DEFAULT_MAPPING_TAG, _mapping_without_repeats
)


def read_yaml(path: Path) -> Any:
    """Read a YAML file without code in it, refusing a key that is given twice."""
    return parse_yaml(read_text(path), path)


def read_text(path: Path) -> str:
    """Read a file of configuration."""
    try:
        return path.read_text(encoding="utf-8-sig")
    except (UnicodeDecodeError, OSError) as error:
        raise _unreadable(path, error) from error


def parse_yaml(text: str, path: Path) -> Any:
    """Return what the text of the file ``path`` says."""
    try:
        return yaml.load(text, Loader=_StrictLoader)
    except RecursionError as error:
        raise SchemaError(f"{path} is nested too deeply to be read") from error
    except yaml.YAMLError as error:
        raise _unreadable(path, error) from error


def _unreadable(path: Path, error: Exception) -> SchemaError:
    return SchemaError(f"{path} is not a YAML file that can be read: {error}")


def function_at(path: str) -> Callable[..., Any]:
    """Return the function a dotted path names, or say what is not there."""
    module, _, name = path.replace(":", ".").rpartition(".")
    try:
        found = getattr(import_module(module), name)
    except (ImportError, AttributeError, ValueError) as error:
        raise ParameterError(f"no function {path!r}: {error}; write package.module:name") from error
    if not callable(found):
        raise ParameterError(f"{path!r} is not a function")
    function: Callable[..., Any] = found
    return function
