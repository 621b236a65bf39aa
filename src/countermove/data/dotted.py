"""A user's own function, named in configuration by where it is: ``package.module:name``."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

from countermove.errors import ParameterError


def function_at(path: str) -> Callable[..., Any]:
    """Return the function a dotted path names, or say what is not there."""
    module, _, name = path.replace(":", ".").rpartition(".")
    try:
        found = getattr(import_module(module), name)
    except (ImportError, AttributeError, ValueError) as error:
        raise ParameterError(f"no function {path!r}: {error}; write package.module:name") from error
    if not callable(found):
        raise ParameterError(f"{path!r} is no function")
    function: Callable[..., Any] = found
    return function
