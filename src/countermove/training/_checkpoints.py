"""A training run on disk: one safetensors file whose header carries the JSON.

One file means one atomic rename: a reader sees the old checkpoint or the new
one, never half of each. Nothing in it is code.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torch import Tensor

from countermove.data.storage import replace_file
from countermove.errors import ModelFileError

FORMAT = "countermove-checkpoint-1"


@dataclass(frozen=True)
class Checkpoint:
    """Everything a run needs to continue as if it had never stopped."""

    fingerprint: str  # digest of settings, start and data; a run resumes only from its own
    state: Mapping[str, Any]  # nested lists, mappings, numbers and tensors

    def save(self, path: Path) -> None:
        """Write the checkpoint; the file at ``path`` is replaced in one step."""
        from safetensors.torch import save

        tensors: dict[str, Tensor] = {}
        structure = _flatten(self.state, tensors)
        header = {
            "format": FORMAT,
            "fingerprint": self.fingerprint,
            "structure": json.dumps(structure, allow_nan=False),
        }
        replace_file(path, save(tensors, metadata=header))

    @classmethod
    def load(cls, path: Path) -> Checkpoint:
        """Read a checkpoint, or say what is wrong with the file."""
        from safetensors import SafetensorError, safe_open

        try:
            with safe_open(str(path), framework="pt") as stored:
                header = stored.metadata() or {}
                tensors = {name: stored.get_tensor(name) for name in stored.keys()}  # noqa: SIM118
        except (OSError, SafetensorError) as error:
            raise ModelFileError(
                f"{path} is not a readable checkpoint ({error}); delete it to train from the start"
            ) from error
        if header.get("format") != FORMAT:
            raise ModelFileError(
                f"{path} holds format {header.get('format')!r}, expected {FORMAT!r}; "
                "delete it to train from the start"
            )
        state = _restore(json.loads(header["structure"]), tensors)
        return cls(fingerprint=header["fingerprint"], state=state)


def _flatten(value: Any, tensors: dict[str, Tensor]) -> Any:
    """Move every tensor into ``tensors`` and leave its key; keep the nesting as JSON."""
    if isinstance(value, Tensor):
        key = f"t{len(tensors)}"
        tensors[key] = value.detach().clone().contiguous()
        return {"tensor": key}
    if isinstance(value, Mapping):
        return {"mapping": [[key, _flatten(item, tensors)] for key, item in value.items()]}
    if isinstance(value, list | tuple):
        return {"list": [_flatten(item, tensors) for item in value]}
    return value


def _restore(value: Any, tensors: Mapping[str, Tensor]) -> Any:
    """Undo :func:`_flatten`."""
    if not isinstance(value, dict):
        return value
    if "tensor" in value:
        return tensors[value["tensor"]]
    if "list" in value:
        return [_restore(item, tensors) for item in value["list"]]
    return {key: _restore(item, tensors) for key, item in value["mapping"]}
