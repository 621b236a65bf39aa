"""Where a raw table comes from: the user's or a fetched file, else embedded, else fabricated.

Files are read as text where the format is text, so that nothing is guessed before
the schema is applied. Embedded tables are checked by SHA-256; those that
scikit-learn carries (iris, digits) by a SHA-256 of their cells.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Mapping
from importlib.resources import files
from pathlib import Path

import numpy as np
import pandas as pd

from countermove.data.files import PLAIN, SUFFIXES, FileFormat, RawTable, read_table
from countermove.data.recipes import DIGITS_COLUMNS, IRIS_COLUMNS
from countermove.data.schema import Schema
from countermove.errors import DataError, UnknownNameError, nearest

_CREDIT = "credit.csv.xz", "4feb153b514b1b3b590a9a6b96e2fc2f9abb728a9fb9dadc420f6b48c9641789"
_GERMAN = "german.csv.gz", "ef39753fb48b705517a208dbd3104896b8da8b19df54a24dd488e072a2f5f3cd"

EMBEDDED = {"credit": _CREDIT, "german": _GERMAN, "german-recourse": _GERMAN}
"""File and SHA-256 of each table inside the package; docs/data says how they were made."""

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]*")


def read_raw(name: str, raw_folder: Path, schema: Schema) -> pd.DataFrame:
    """Read the raw table of a dataset, all of whose lines are rows; see `read_raw_table`."""
    return read_raw_table(name, raw_folder, schema).whole(name)


def read_raw_table(name: str, raw_folder: Path, schema: Schema) -> RawTable:
    """Read the raw table of a dataset, and the lines of its file that are no rows.

    A file ``<raw_folder>/<name>.csv`` or ``.parquet`` (`SUFFIXES` has the others) wins over the
    table the package carries or fabricates.

    Parameters
    ----------
    name
        Name of the dataset.
    raw_folder
        Folder of the user's files, usually ``data/01_raw``.
    schema
        Says how a file is laid out, and where the table comes from when there is no file.

    Raises
    ------
    DataError
        If there is no table, two, or one that cannot be read.
    """
    found = user_file(name, raw_folder)
    if found is not None:
        return read_table(found, schema.file)
    if schema.source == "embedded":
        return RawTable(read_embedded(name))
    if schema.source == "fabricated":
        from countermove.data.synthetic import fabricate

        return RawTable(fabricate(name))
    expected = expected_files(name, raw_folder)
    if schema.source == "fetched":
        raise DataError(
            f"missing file: the table {name!r} has not been fetched; get it with `kedro "
            f"countermove fetch {name}`, or put your own in {expected}"
        )
    raise DataError(f"missing file: the table {name!r} is expected in {expected}")


def user_files(name: str, folder: Path) -> list[Path]:
    """Return the user's files of that name."""
    paths = (Path(folder) / f"{name}{suffix}" for suffix in SUFFIXES)
    return [path for path in paths if path.is_file()]


def user_file(name: str, folder: Path) -> Path | None:
    """Return the user's file of that name, None where there is none; two are refused."""
    found = user_files(name, folder)
    if len(found) > 1:
        raise DataError(f"two files for {name!r}: {found[0]} and {found[1]}; keep one")
    return found[0] if found else None


def expected_files(name: str, folder: Path) -> str:
    """Say where the user's file of that name is expected."""
    return " or ".join(str(Path(folder) / f"{name}{suffix}") for suffix in SUFFIXES[:2])


def read_file(path: Path, layout: FileFormat = PLAIN) -> pd.DataFrame:
    """Read a file whose every line is a row; see `read_table`.

    Raises
    ------
    DataError
        If the file is missing, empty or broken, or has lines that are no rows.
    """
    return read_table(path, layout).whole(str(path))


def read_embedded(name: str) -> pd.DataFrame:
    """Read a raw table that comes with the package, or with scikit-learn (iris, digits).

    Raises
    ------
    UnknownNameError
        If the package carries no such table.
    DataError
        If the file is not the one whose SHA-256 is on record.
    """
    if name in BUNDLED:
        return _read_bundled(name)
    path = embedded_file(name)
    pieces = read_table(path, PLAIN)
    return pieces.whole(str(path))


def embedded_file(name: str) -> Path:
    """Return the file of a raw table that comes with the package, once its SHA-256 is checked."""
    if name not in EMBEDDED:
        known = (*EMBEDDED, *BUNDLED)
        raise UnknownNameError(f"no embedded table {name!r}; {nearest(name, known)}")
    file_name, expected = EMBEDDED[name]
    path = Path(str(files("countermove.data").joinpath("embedded", file_name)))
    try:
        content = path.read_bytes()
    except OSError as error:
        raise DataError(f"the package lacks {file_name}; install it again: {error}") from error
    found = hashlib.sha256(content).hexdigest()
    if found != expected:
        raise DataError(
            f"the embedded table {file_name} is damaged: SHA-256 {found}, expected {expected}; "
            "install the package again"
        )
    return path


def table_hash(table: pd.DataFrame) -> str:
    """Return the SHA-256 of a table's columns in order and every cell; the index does not count."""
    digest = hashlib.sha256(f"{len(table)} rows".encode())
    for column in table.columns:
        values = table[column]
        digest.update(json.dumps(str(column)).encode())
        if isinstance(values.dtype, np.dtype) and values.dtype.kind in "biuf":
            digest.update(values.dtype.str.encode() + values.to_numpy().tobytes())
        else:
            cells = values.astype(object).where(values.notna(), None).tolist()
            digest.update(json.dumps(cells, default=str).encode())
    return digest.hexdigest()


def known_datasets(*folders: Path) -> list[str]:
    """Return the names that have a schema in one of the folders, sorted."""
    found = {path.stem for folder in folders for path in Path(folder).glob("*.yml")}
    return sorted(name for name in found if _NAME.fullmatch(name))


def dataset_name(text: str, strict: bool = False) -> str:
    """Return a file's name as the name of a dataset, unchanged if ``strict``; or refuse it."""
    name = text if strict else re.sub(r"[^a-z0-9]+", "_", text.lower()).strip("_")
    if not _NAME.fullmatch(name):
        raise UnknownNameError(
            f"{text!r} does not make a dataset name (a letter, then letters, digits, '_' or '-'); "
            "give one with --name"
        )
    return name


def schema_file(name: str, *folders: Path) -> Path:
    """Return the schema of a dataset, from the first folder that has it.

    Raises
    ------
    UnknownNameError
        If none has it; the nearest name is suggested.
    """
    known = known_datasets(*folders)
    # Nothing that could lead out of the folders is a name.
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise UnknownNameError(
            f"{name!r} is not a dataset name: a letter, then letters, digits, '_' or '-', and "
            f"no path; {nearest(str(name), known)}"
        )
    if name not in known:
        where = " or ".join(map(str, folders))
        raise UnknownNameError(
            f"unknown dataset {name!r}: no {name}.yml in {where}; {nearest(name, known)}"
        )
    paths = (Path(folder) / f"{name}.yml" for folder in folders)
    return next(path for path in paths if path.is_file())


def _iris() -> pd.DataFrame:
    from sklearn.datasets import load_iris

    found = load_iris()
    table = pd.DataFrame(found.data, columns=list(IRIS_COLUMNS[:-1]))
    return table.assign(species=[str(found.target_names[code]) for code in found.target])


def _digits() -> pd.DataFrame:
    from sklearn.datasets import load_digits

    found = load_digits()
    table = pd.DataFrame(found.data.astype("int64"), columns=list(DIGITS_COLUMNS[:-1]))
    return table.assign(digit=found.target.astype("int64"))


BUNDLED: Mapping[str, tuple[Callable[[], pd.DataFrame], str]] = {
    "iris": (_iris, "3201274c36c47980cb2a00be075491cb34ec24e1d1d3d01b1b8e3292336a64ad"),
    "digits": (_digits, "066e3b8934cd4ae1bab4de7dca55ac6ba32395864bbb7a31eb0fd2b224d92927"),
}
"""How each table is read, and the SHA-256 of its cells."""


def _read_bundled(name: str) -> pd.DataFrame:
    """Read a table that scikit-learn carries; refuse another than the one on record."""
    read, expected = BUNDLED[name]
    table = read()
    found = table_hash(table)
    if found != expected:
        raise DataError(
            f"the {name!r} table of the installed scikit-learn is not the one on record: SHA-256 "
            f"{found}, expected {expected}; install the pinned scikit-learn"
        )
    return table
