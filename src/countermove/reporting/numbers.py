"""One way to write a number for people."""

from __future__ import annotations

from math import isnan

NARROW = "\u202f"
"""Narrow no-break space, before a per-cent sign."""
MISSING = "–"


def number(value: float | None, form: str = ".3f", missing: str = MISSING) -> str:
    """Return a number in words: counts with separators, the rest by ``form``; a true minus sign.

    >>> number(None), number(1234), number(-0.12345), number(0.5, ".4g"), number(True)
    ('–', '1,234', '−0.123', '0.5', 'yes')
    """
    if value is None or (isinstance(value, float) and isnan(value)):
        return missing
    if isinstance(value, bool):
        return "yes" if value else "no"
    text = f"{value:,}" if isinstance(value, int) else f"{value:{form}}"
    return text.replace("-", "−") if "e" not in text else text


def share(value: float | None, digits: int = 1, missing: str = MISSING) -> str:
    """Return a share in per cent.

    >>> share(0.80666)
    '80.7\u202f%'
    """
    if value is None:
        return missing
    return f"{100.0 * value:.{digits}f}{NARROW}%".replace("-", "−")


def points(high: float, low: float) -> float:
    """Return a difference of shares in percentage points, of the shares as `share` shows them.

    >>> round(points(0.80666, 0.78317), 1)
    2.4
    """
    return round(round(100.0 * high, 1) - round(100.0 * low, 1), 1)
