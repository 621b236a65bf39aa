"""The names of datasets: those that have a schema, and nothing that is a path."""

from __future__ import annotations

import re
from pathlib import Path

from countermove.errors import UnknownNameError, nearest

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]*")


def known_datasets(folder: Path) -> list[str]:
    """Return the names that have a schema in ``folder``, sorted."""
    return sorted(path.stem for path in Path(folder).glob("*.yml") if _NAME.fullmatch(path.stem))


def dataset_name(text: str, strict: bool = False) -> str:
    """Return a name for a dataset made from a file's name, such as ``loans_2024``.

    Parameters
    ----------
    text
        A file's name without its ending, or what the user typed.
    strict
        Refuse what is not a name as it stands, instead of mending it.

    Raises
    ------
    UnknownNameError
        If no name can be made of it.
    """
    mended = text if strict else re.sub(r"[^a-z0-9]+", "_", text.lower()).strip("_")
    if not _NAME.fullmatch(mended):
        raise UnknownNameError(
            f"{text!r} does not make a dataset name (a letter, then letters, digits, '_' or '-'); "
            "give one with --name"
        )
    return mended


def check_dataset_name(name: str, folder: Path) -> str:
    """Return ``name`` if ``folder`` holds its schema.

    A name is a letter followed by letters, digits, ``_`` or ``-``: nothing that
    could lead out of the folder.

    Raises
    ------
    UnknownNameError
        Otherwise, with the nearest known name.
    """
    known = known_datasets(folder)
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise UnknownNameError(
            f"{name!r} is not a dataset name: a letter, then letters, digits, '_' or '-', and "
            f"no path; {nearest(str(name), known)}"
        )
    if name not in known:
        raise UnknownNameError(
            f"unknown dataset {name!r}: no {name}.yml in {folder}; {nearest(name, known)}"
        )
    return name
