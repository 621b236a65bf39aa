"""What a command says when something goes wrong: one sentence."""

from __future__ import annotations

import errno
import traceback
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from countermove.errors import ours, without_passwords

LAST_ERROR = Path("logs", "last_error.txt")
"""Where the traceback of the last error is kept."""
FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
REFUSED = (errno.EACCES, errno.EPERM, errno.EROFS)


def sentence(error: BaseException) -> str:
    """Return what an error means to a user, however deeply others wrapped it."""
    own = ours(error)
    if own is not None:
        return f"{type(own).__name__}: {own}"
    chain = list(_chain(error))
    for foresee in (_system, _configuration, _kedro):
        for each in chain:
            found = foresee(each)
            if found is not None:
                return without_passwords(found)
    return without_passwords(_unforeseen(error))


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)


def first_line(text: object) -> str:
    """Return the first line of a message, without its full stop."""
    return (str(text).strip().splitlines() or [""])[0].rstrip(".")


def _system(error: BaseException) -> str | None:
    """Say what the machine refused."""
    if isinstance(error, RecursionError):
        return "a file is nested too deeply to be read; a YAML or JSON file needs a few levels only"
    if isinstance(error, MemoryError):
        return "the memory is full; use fewer rows (ingest.max_rows) or --pipeline=serm_parts"
    if isinstance(error, ModuleNotFoundError):
        return (
            f"the package {error.name} is not installed; install it, or the extra that names it "
            "(requirements/)"
        )
    if isinstance(error, FileNotFoundError):
        missing = error.filename or first_line(error)
        return f"there is no file {missing}; run the pipeline that makes it first (serm makes all)"
    if not isinstance(error, OSError) or error.errno is None:
        return None
    place = f" at {error.filename}" if error.filename else ""
    if error.errno in FULL:
        return f"the disk is full{place}; free some space and run again: files are written whole"
    if error.errno in REFUSED:
        why = first_line(error.strerror).lower()
        return f"no access{place} ({why}); give yourself the right to write there and run again"
    if error.errno == errno.EADDRINUSE:
        return f"the port is taken{place}; choose another one, or stop the program that uses it"
    return f"{first_line(error.strerror)}{place}; remove the cause and run again"


def _configuration(error: BaseException) -> str | None:
    """Say what is wrong with a file of conf."""
    from omegaconf.errors import OmegaConfBaseException
    from yaml import YAMLError

    if isinstance(error, YAMLError):
        mark = getattr(error, "problem_mark", None)
        place = f"{mark.name}, line {mark.line + 1}: " if mark is not None else ""
        return f"{place}{first_line(error)}; correct the file"
    if isinstance(error, OmegaConfBaseException):
        key = getattr(error, "full_key", None)
        return f"the configuration cannot be read{f' at {key}' if key else ''}: {first_line(error)}"
    if isinstance(error, UnicodeDecodeError):
        return f"a file is not UTF-8 text ({error.reason} at byte {error.start}); save it as UTF-8"
    return None


def _kedro(error: BaseException) -> str | None:
    """Say what Kedro refused, in its own words."""
    from kedro.config import MissingConfigException
    from kedro.io import DatasetError
    from kedro.validation.exceptions import ParameterValidationError

    if isinstance(error, ParameterValidationError):
        return str(error)
    if isinstance(error, MissingConfigException | DatasetError):
        return " ".join(line.strip() for line in str(error).splitlines())
    inner = traceback.extract_tb(error.__traceback__)
    raised_in = inner[-1].filename.replace("\\", "/") if inner else ""
    if "/kedro/framework/cli/" in raised_in:
        return f"{first_line(error)}; correct the options, or the file of --config"
    by_kedro = "/kedro/" in raised_in and isinstance(error, ValueError | AttributeError)
    return first_line(error) if by_kedro else None


def _unforeseen(error: BaseException) -> str:
    """Say what nobody foresaw, and where the traceback is."""
    return (
        f"{type(error).__name__}: {first_line(error)}. This was not foreseen: {LAST_ERROR} has "
        "where it came from"
    )


def keep_traceback(error: BaseException) -> None:
    """Write where an error came from into the logs; a full disk may be what it is about."""
    text = without_passwords("".join(traceback.format_exception(error)))
    with suppress(OSError):
        LAST_ERROR.parent.mkdir(exist_ok=True)
        LAST_ERROR.write_text(text, encoding="utf-8")
