"""One digest for settings: same text, same work; what was finished under it is used again."""

from __future__ import annotations

import json
from collections.abc import Mapping
from hashlib import sha256
from typing import Any

import numpy as np


def settings_digest(settings: Mapping[str, Any]) -> str:
    """Return a digest of nested settings, in any order of their names.

    Responses, costs and scores count as they describe themselves, arrays by every number in
    them, frozen settings as they print.

    >>> settings_digest({"a": 1, "b": 2}) == settings_digest({"b": 2, "a": 1})
    True
    >>> settings_digest({"a": 1}) == settings_digest({"a": 1.5})
    False
    """
    return sha256(json.dumps(settings, sort_keys=True, default=_described).encode()).hexdigest()


def _described(value: Any) -> Any:
    if hasattr(value, "describe"):
        return value.describe()
    if isinstance(value, np.ndarray):
        return [str(value.dtype), value.tolist()]  # As text, long arrays would be abbreviated.
    return repr(value)
