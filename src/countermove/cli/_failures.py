"""What a command says when something goes wrong: one sentence, and with ``--debug`` the rest."""

from __future__ import annotations

import errno
import functools
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import click

from countermove.errors import NothingNewError, ours, without_passwords
from countermove.production.endings import ending_of_error

DEBUG = "countermove.debug"
LAST_ERROR = Path("logs", "last_error.txt")
"""Where the traceback of an error that nobody foresaw is kept."""
FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
REFUSED = (errno.EACCES, errno.EPERM, errno.EROFS)


class _Failure(click.ClickException):
    """A failure that ends the process with a code of its own."""

    def __init__(self, message: str, code: int) -> None:
        super().__init__(message)
        self.code = code

    @property
    def exit_code(self) -> int:  # type: ignore[override]
        return self.code


def _remember(context: click.Context, _: click.Parameter, value: bool) -> None:
    context.meta[DEBUG] = value


def debug_option() -> click.Option:
    """Return the option that every command of ours has."""
    return click.Option(
        ["--debug"],
        is_flag=True,
        expose_value=False,
        callback=_remember,
        help="Show where an error came from.",
    )


def plain_errors(command: Callable[..., Any]) -> Callable[..., Any]:
    """Turn whatever stops a command into one plain message and the right exit code."""

    @functools.wraps(command)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        try:
            return command(*args, **kwargs)
        except (click.ClickException, click.exceptions.Exit, click.Abort):
            raise
        except Exception as error:
            context = click.get_current_context(silent=True)
            if context is not None and context.meta.get(DEBUG):
                raise
            own = ours(error)
            if isinstance(own, NothingNewError):
                click.echo(str(own), err=True)
                return None
            code = ending_of_error(error if own is None else own).code
            raise _Failure(sentence(error), code) from error

    return wrapped


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
            f"the package {error.name} is not installed; `kedro countermove doctor` says what is "
            "missing and how to install it"
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
        return f"{first_line(error)}; correct the file"
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
    by_kedro = inner and "/kedro/" in inner[-1].filename.replace("\\", "/")
    return first_line(error) if by_kedro and isinstance(error, ValueError) else None


def _unforeseen(error: BaseException) -> str:
    """Keep the traceback of an error that nobody foresaw, and say where it is."""
    said = f"{type(error).__name__}: {first_line(error)}"
    text = without_passwords("".join(traceback.format_exception(error)))
    try:
        LAST_ERROR.parent.mkdir(exist_ok=True)
        LAST_ERROR.write_text(text, encoding="utf-8")
    except OSError:
        return f"{said}. This was not foreseen: run again with --debug to see where it came from"
    return f"{said}. This was not foreseen: {LAST_ERROR} has where it came from, as has --debug"
