"""Files that are whole or not there, and the digests that say what is in them.

Content reaches the disk before it gets its name; a folder takes its name whole; a
sealed JSON record carries the SHA-256 of its own content, so that a change shows.
"""

from __future__ import annotations

import json
import os
import shutil
import uuid
from collections.abc import Mapping
from functools import partial
from hashlib import file_digest, sha256
from pathlib import Path
from types import CodeType, FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np
import pandas as pd

from countermove.errors import ModelFileError, StorageError

SEAL = "seal"


COMMANDS = tuple("=+-@\t\r\n＝＋－＠")
"""What a spreadsheet takes for the beginning of a formula."""


def spreadsheet_safe(table: pd.DataFrame) -> pd.DataFrame:
    """Return a table whose text no spreadsheet executes: such cells begin with an apostrophe.

    Numbers stay numbers, also where they are written as text.
    """
    texts = [name for name in table.columns if not pd.api.types.is_numeric_dtype(table[name].dtype)]
    safe = {name: _harmless(table[name]) for name in texts}
    renamed = {name: f"'{name}" for name in table.columns if str(name).startswith(COMMANDS)}
    return table.assign(**safe).rename(columns=renamed) if safe or renamed else table


def _harmless(values: pd.Series) -> pd.Series:
    words = values.astype("str")
    risky = words.str.lstrip(" ").str.startswith(COMMANDS) & values.notna()
    risky &= ~risky | pd.to_numeric(words.where(risky), errors="coerce").isna()
    return ("'" + words).where(risky, words).where(values.notna()) if risky.any() else values


def write_through(path: Path, content: bytes) -> None:
    """Write a file and wait until it is on the disk."""
    with path.open("wb") as stream:
        stream.write(content)
        stream.flush()
        os.fsync(stream.fileno())


def replace_file(path: Path, content: bytes) -> None:
    """Write ``content`` next to ``path``, flush it to disk, then rename over ``path``."""
    try:
        _replace(path, content)
    except OSError as error:
        raise StorageError(
            f"cannot write {path}: {error.strerror or error}; the previous content is kept. "
            "Free space or fix the permissions, and run again"
        ) from error


def _replace(path: Path, content: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    # Made with the permissions of any new file: others who may read the folder may read it.
    draft = path.with_name(f".{path.name}.{uuid.uuid4().hex}")
    try:
        write_through(draft, content)
        os.replace(draft, path)
        flush(path.parent)
    except BaseException:
        draft.unlink(missing_ok=True)
        raise


def flush(path: Path) -> None:
    """Wait until a file, or the renames in a folder, are on the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def canonical_json(record: Mapping[str, Any]) -> str:
    """Return a JSON-ready record as text, the same whatever the order of its keys."""
    return json.dumps(record, sort_keys=True, separators=(",", ":"), allow_nan=False)


def canonical_digest(record: Mapping[str, Any]) -> str:
    """Return the SHA-256 of a JSON-ready record, whatever the order of its keys."""
    return sha256(canonical_json(record).encode()).hexdigest()


def seal(record: Mapping[str, Any]) -> bytes:
    """Return a record as JSON with its digest under ``seal``."""
    sealed = {key: value for key, value in record.items() if key != SEAL}
    return json.dumps(sealed | {SEAL: canonical_digest(sealed)}, indent=2).encode()


def unseal(content: bytes, where: str) -> dict[str, Any]:
    """Return a sealed record without its seal; refuse an altered one.

    Whatever the content is (no JSON, a list, nested too deeply, without a seal, NaN), the error
    is a ``ModelFileError``.
    """
    try:
        record = json.loads(content)
        recorded = record.pop(SEAL)
        digest = canonical_digest(record)
    except (ValueError, KeyError, AttributeError, TypeError, RecursionError) as error:
        raise ModelFileError(
            f"{where} is not a sealed record: {type(error).__name__}: {str(error)[:200]}; "
            "restore the file from a backup"
        ) from error
    if digest != recorded:
        raise ModelFileError(
            f"{where} was altered: its content does not match the SHA-256 it records; "
            "restore the file from a backup"
        )
    return dict(record)


def settings_digest(settings: Mapping[str, Any]) -> str:
    """Return a digest of nested settings, whatever the order of their names."""
    return sha256(json.dumps(settings, sort_keys=True, default=_described).encode()).hexdigest()


def _described(value: Any) -> Any:
    if hasattr(value, "describe"):
        return value.describe()
    if isinstance(value, np.ndarray):
        return [str(value.dtype), value.tolist()]  # As text, long arrays would be abbreviated.
    return repr(value)


def object_digest(value: Any) -> str:
    """Return a digest of what an object does: of a function its code and what it closes over."""
    return sha256(json.dumps(_inside(value, ())).encode()).hexdigest()


def _inside(value: Any, around: tuple[int, ...]) -> Any:
    """Return an object's content as lists and texts; an object that holds itself is named once."""
    if id(value) in around:
        return "itself"
    around = (*around, id(value))
    if isinstance(value, np.ndarray) or hasattr(value, "detach"):
        array = np.asarray(value.detach() if hasattr(value, "detach") else value)
        return [str(array.dtype), array.tolist()]
    if isinstance(value, CodeType):
        content: Any = (value.co_code.hex(), value.co_names, value.co_consts)
    elif isinstance(value, FunctionType):
        cells = [cell.cell_contents for cell in value.__closure__ or ()]
        content = (value.__code__, value.__defaults__, value.__kwdefaults__, cells)
    elif isinstance(value, MethodType):
        content = (value.__func__, value.__self__)
    elif isinstance(value, partial):
        content = (value.func, value.args, value.keywords)
    elif isinstance(value, Mapping):
        content = sorted(value.items(), key=repr)
    elif isinstance(value, list | tuple | set | frozenset):
        content = value if isinstance(value, list | tuple) else sorted(value, key=repr)
    elif hasattr(value, "__dict__") and not isinstance(value, type | ModuleType):
        content = (type(value).__qualname__, vars(value))
    else:
        return repr(value)
    return [_inside(each, around) for each in content]


def sha256_of(path: Path) -> str:
    """Return the SHA-256 of a file."""
    with path.open("rb") as stream:
        return file_digest(stream, "sha256").hexdigest()


def write_folder(folder: Path, files: Mapping[str, bytes]) -> None:
    """Write files into a new folder, all or nothing; refuse one that is there already."""
    if folder.exists():
        raise ModelFileError(f"{folder} exists already; a stored model is never overwritten")
    partial = folder.with_name(f".{folder.name}.{uuid.uuid4().hex}.partial")
    try:
        partial.mkdir(parents=True)
        for name, content in files.items():
            write_through(partial / name, content)
        os.rename(partial, folder)
    except OSError as error:
        raise StorageError(
            f"cannot write {folder}: {error.strerror or error}; nothing was written. Free space "
            "or fix the permissions, and run again"
        ) from error
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def put_in_place(finished: Path, folder: Path) -> None:
    """Let a finished folder take the name of the one it replaces."""
    previous = beside(folder, "previous")
    if folder.exists():
        folder.rename(previous)
    finished.rename(folder)
    shutil.rmtree(previous, ignore_errors=True)


def restore(folder: Path) -> None:
    """Bring back what an interruption between two renames left aside."""
    previous = beside(folder, "previous")
    if previous.is_dir() and not folder.exists():
        previous.rename(folder)


def beside(folder: Path, what: str) -> Path:
    """Return the hidden neighbour of a folder for one purpose."""
    return folder.with_name(f".{folder.name}.{what}")
