"""Recognising categories that have an order, from their words alone.

Either the words belong to a scale everybody knows, or they are one phrase around
different numbers: "under 1 year", "1 to 3 years", "4 years or more".
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from countermove.data.word_lists import SCALES

# A number that hangs on a letter, as in A11, is part of a code and orders nothing.
_NUMBER = re.compile(r"(?<![^\W_])\d+(?:[.,]\d+)*")
_BELOW = re.compile(r"^\s*(?:<=?|≤|under|below|less than|fewer than|up to|at most|max)", re.I)
_ABOVE = re.compile(
    r"(?:\+|or more|or over|or above|and over|and above|and up|plus)\s*$"
    r"|^\s*(?:>=?|≥|over|above|more than|at least|from|min)",
    re.I,
)
_NOTHING = frozenset(("none", "no", "nothing", "never", "unemployed"))
_FILLING = (
    "under below less fewer than up to at most max or more over above and plus least from min "
    "between bis"
)


def ordered_words(words: Sequence[str]) -> tuple[str, ...] | None:
    """Return the words in their order, lowest first, or None when they show none.

    >>> ordered_words(["high", "low", "medium"])
    ('low', 'medium', 'high')
    >>> ordered_words(["7 years or more", "1 to 3 years", "under 1 year", "4 to 6 years"])
    ('under 1 year', '1 to 3 years', '4 to 6 years', '7 years or more')
    >>> ordered_words(["north", "south"]) is None
    True
    """
    return _on_a_scale(words) or _around_numbers(words)


def _on_a_scale(words: Sequence[str]) -> tuple[str, ...] | None:
    spelled = {word: " ".join(re.split(r"[\s_-]+", word.lower())) for word in words}
    for scale in SCALES:
        places = {re.sub(r"[\s_-]+", " ", step): place for place, step in enumerate(scale)}
        if len(words) > 1 and all(text in places for text in spelled.values()):
            ranked = sorted(words, key=lambda word: places[spelled[word]])
            # "Low" and "low" share a place: then the order is not complete.
            if len({places[spelled[word]] for word in words}) == len(words):
                return tuple(ranked)
    return None


def _around_numbers(words: Sequence[str]) -> tuple[str, ...] | None:
    keys = {word: _interval(word) for word in words if word.lower() not in _NOTHING}
    intervals = [key for key in keys.values() if key is not None]
    if len(intervals) < len(keys) or len(intervals) < 2 or len(words) - len(keys) > 1:
        return None
    if len({rest for _, rest in intervals}) > 1 or len({key for key, _ in intervals}) < len(keys):
        return None
    lowest = (-1.0, -2)
    order = {word: key[0] for word, key in keys.items() if key is not None}
    return tuple(sorted(words, key=lambda word: order.get(word, lowest)))


def _interval(word: str) -> tuple[tuple[float, int], frozenset[str]] | None:
    """Return where a phrase begins (and on which side of it), and its words beside the numbers."""
    found = _NUMBER.findall(word)
    if not 1 <= len(found) <= 2 or re.search(r"[^\W\d_]\d", word):
        return None
    side = -1 if _BELOW.search(word) else 1 if _ABOVE.search(word) else 0
    rest = re.findall(r"[^\W\d_]+", _NUMBER.sub(" ", word).lower())
    # One year, three years: the plural is the same unit.
    kept = frozenset(text.removesuffix("s") for text in rest if text not in _FILLING.split())
    return (float(re.sub(r"[,.](?=\d{3}\b)|,", "", found[0])), side), kept
