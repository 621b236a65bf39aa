"""The key under which ids are hashed: from the environment, or a file beside the registry."""

from __future__ import annotations

import hmac
import os
import secrets
import uuid
from pathlib import Path

from countermove.data.storage import beside, flush
from countermove.errors import ParameterError, StorageError
from countermove.production.registry import Store
from countermove.production.registry.signing import SHORTEST, checked_key

KEY_VARIABLE = "COUNTERMOVE_ADVICE_KEY"
"""Names the key, for registries that are not a folder of this machine, or to share one."""


def key_file(store: Store) -> Path | None:
    """Return the file of the key, outside the registry: who copies that does not get the key."""
    return None if store.folder is None else beside(store.folder, "advice_key")


def advice_key(store: Store, new: bool) -> bytes:
    """Return the key of a registry's open advice; ``new`` allows to make one."""
    given = os.environ.get(KEY_VARIABLE)
    if given is not None:
        return checked_key(given, f"the environment variable {KEY_VARIABLE}")
    path = key_file(store)
    if path is None:
        raise ParameterError(
            f"open advice is kept under a key, and the registry {store.where()} is no folder of "
            f"this machine: set {KEY_VARIABLE} to at least {SHORTEST} random characters, or "
            "keep none with score.open_advice_days: null"
        )
    if not path.is_file():
        if not new:
            raise ParameterError(
                f"the key of the open advice, {path}, is not there, and without it nobody is "
                f"recognised: restore it, or set {KEY_VARIABLE}. If it is lost, remove "
                f"{store.where('open_advice')} (the advice in it is then no longer honoured)"
            )
        _make(path)
    try:
        return checked_key(path.read_text("ascii", errors="replace"), str(path))
    except OSError as error:
        raise StorageError(f"cannot read the key {path}: {error.strerror or error}") from error


def person_hash(key: bytes, row_id: str) -> str:
    """Return the HMAC-SHA-256 of a person's id."""
    return hmac.digest(key, row_id.encode(), "sha256").hex()


def _make(path: Path) -> None:
    """Write a new key that only its owner may read; if another run was first, keep that one's."""
    draft = path.with_name(f"{path.name}.{uuid.uuid4().hex}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "w") as stream:
            stream.write(secrets.token_hex(32))
            stream.flush()
            os.fsync(stream.fileno())
        try:
            os.link(draft, path)
        except FileExistsError:
            return
        flush(path.parent)
    except OSError as error:
        raise StorageError(f"cannot write the key {path}: {error.strerror or error}") from error
    finally:
        draft.unlink(missing_ok=True)
