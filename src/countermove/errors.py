"""One family of errors.

Every error says what was given, what was expected and what to do, and carries
the rows it concerns, so that a caller can act on them instead of parsing text.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable
from difflib import get_close_matches

SHOWN = 10
"""How many rows or values a message spells out; the error object carries all of them."""


_IN_URL = re.compile(r"([^\s/@:'\"(]*):(?!//)\S*@")
"""user:password@, also where somebody's error shows it without the scheme."""
_NUMPY = re.compile(r"\bnp\.\w+\(([^()]*)\)")
"""A number of NumPy as its repr has it: ``np.float64(0.0)`` is 0.0 to a reader."""
_IN_QUERY = re.compile(
    r"([?&;][\w.-]*(?:password|passwd|pwd|secret|token|signature|key)=)[^&;\s]+", re.IGNORECASE
)


def without_passwords(text: str) -> str:
    """Return a text whose URLs show no password, token or key.

    Every error of ours, the log of a run and what describes a place pass through here.

    >>> without_passwords("cannot open sftp://risk:4711@host/models?api_key=x")
    'cannot open sftp://risk:***@host/models?api_key=***'
    """
    return _IN_QUERY.sub(r"\1***", _IN_URL.sub(r"\1:***@", text))


class PasswordFilter(logging.Filter):
    """Takes passwords out of what a handler writes, whoever logs it."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Rewrite the message and the traceback; let the record pass."""
        record.msg, record.args = without_passwords(record.getMessage()), None
        if record.exc_info and not record.exc_text:
            record.exc_text = logging.Formatter().formatException(record.exc_info)
        record.exc_text = record.exc_text and without_passwords(record.exc_text)
        return True


class CountermoveError(Exception):
    """Base of every error Countermove raises on purpose.

    Parameters
    ----------
    message
        What was given, what was expected and what to do; passwords of URLs are left out.
    rows
        Zero-based positions of the rows concerned, all of them.
    """

    def __init__(self, message: str, *, rows: Iterable[int] = ()) -> None:
        super().__init__(_NUMPY.sub(r"\1", without_passwords(message)))
        self.rows: tuple[int, ...] = tuple(int(row) for row in rows)


class DataError(CountermoveError, ValueError):
    """A table or array does not hold what it should (a ValueError too, as scikit-learn expects)."""


class SchemaError(CountermoveError):
    """A schema contradicts itself or cannot be read."""


class UnknownNameError(CountermoveError):
    """A dataset, pipeline or method of that name does not exist."""


class FetchError(CountermoveError):
    """A published table could not be fetched; nothing was written."""


class SourceUnreachableError(FetchError):
    """The package index cannot be reached, or does not have the archive (any more)."""


class ParameterError(CountermoveError, ValueError):
    """A parameter has a value that makes no sense."""


class NotEnoughRowsError(DataError):
    """Too few rows, overall or in one class, for what was asked."""


class BlockedError(DataError):
    """The available rows do not allow a retraining; the champion stays, and nothing was lost."""


class NothingNewError(CountermoveError):
    """No batch is new since the last retraining: nothing to do, and no failure."""


class AfterDecisionError(CountermoveError):
    """A decision was made and stands; writing its page, a report or the history failed."""


class LockedError(CountermoveError):
    """Another run is at work on the same thing; try again when it is done."""


class StorageError(CountermoveError):
    """A disk, a file system or a database refused to read or write; nothing half-written stays."""


class ModelFileError(CountermoveError):
    """A stored model is missing, truncated, altered or made for another schema."""


class CostError(CountermoveError):
    """A cost is not convex, not parametrisable or has a negative scale."""


class InfeasibleActionsError(CountermoveError):
    """Some people have no allowed action at all, not even staying."""


class UnboundedResponseError(CountermoveError):
    """The best response is unbounded: the cost does not grow and nothing bounds the move."""


class NotConvergedError(CountermoveError):
    """A solver stopped before its tolerance for the rows given."""


class DivergedError(NotConvergedError):
    """Repeated retraining diverged; ``trajectory`` holds everything up to there."""

    def __init__(
        self, message: str, *, trajectory: object = None, rows: Iterable[int] = ()
    ) -> None:
        super().__init__(message, rows=rows)
        self.trajectory = trajectory


class SolverError(CountermoveError):
    """A numerical solver refused the problem or failed on it."""


class ClusterError(CountermoveError):
    """Workers cannot be reached, or were lost; finished parts are kept."""


class PartError(CountermoveError):
    """One part of a table could not be done; finished parts are kept."""


class CalibrationError(CountermoveError):
    """A guarantee cannot be given from the rows available."""


class MissingPartError(CountermoveError):
    """Something optional is needed and not installed: a package of an extra, or its data."""


def ours(error: BaseException | None) -> CountermoveError | None:
    """Return the error of ours that others were raised from, however often it was wrapped."""
    while error is not None and not isinstance(error, CountermoveError):
        error = error.__cause__
    return error


def shown(values: Iterable[object], cap: int = SHOWN) -> str:
    """Spell out the first ``cap`` values and count the rest.

    >>> shown([1, 2, 3], cap=2)
    '1, 2 and 1 more'
    """
    listed = [str(value) for value in values]
    rest = len(listed) - cap
    return ", ".join(listed[:cap]) + (f" and {rest} more" if rest > 0 else "")


def nearest(name: str, known: Iterable[str]) -> str:
    """Return a hint that names the closest known name, and all of them."""
    names = sorted(known)
    close = _closest(str(name), names)
    hint = f"did you mean {close!r}? " if close else ""
    return f"{hint}known: {', '.join(names)}"


def meant(name: str, known: Iterable[str], prefix: str = "") -> str:
    """Return the end of a sentence that refuses a name: the nearest one as a question, or all.

    >>> "there is no pipeline 'smer'" + meant("smer", ["serm", "score"])
    "there is no pipeline 'smer'; did you mean 'serm'?"
    """
    names = list(known)
    close = _closest(name, names)
    if close:
        return f"; did you mean {prefix + close!r}?"
    return f"; there are {', '.join(sorted(names))}" if names else ""


def _closest(name: str, names: list[str]) -> str | None:
    """Return the name that is meant: the one that ends so (``evaluate``), or is spelled alike."""
    found = [each for each in names if each.endswith(f".{name}")]
    found = found or get_close_matches(name, names, n=1, cutoff=0.5)
    return found[0] if found else None
