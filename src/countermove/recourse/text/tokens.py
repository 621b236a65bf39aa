"""Sentences as word pieces, the way uncased BERT models were trained to read them.

A word is split at punctuation, stripped of case and accents, and cut greedily
into the longest pieces that the vocabulary lists.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping

from countermove.errors import DataError

UNKNOWN, FIRST, LAST = "[UNK]", "[CLS]", "[SEP]"
LONGEST_WORD = 100
"""Longer words are unknown, as in BERT."""

_IDEOGRAPHS = (
    (0x3400, 0x4DBF),
    (0x4E00, 0x9FFF),
    (0xF900, 0xFAFF),
    (0x20000, 0x2CEAF),
    (0x2F800, 0x2FA1F),
)
"""Each of these characters is a word of its own."""


class WordPieces:
    """Numbers for sentences.

    Parameters
    ----------
    vocabulary
        Number of every piece; pieces inside a word begin with ``##``.
    longest
        Numbers per sentence at most, the two marks at its ends included; the rest is cut off.
    """

    def __init__(self, vocabulary: Mapping[str, int], longest: int) -> None:
        missing = [mark for mark in (UNKNOWN, FIRST, LAST) if mark not in vocabulary]
        if missing:
            raise DataError(f"the vocabulary of the encoder lacks {', '.join(missing)}")
        self._vocabulary, self._longest = vocabulary, longest
        self._known: dict[str, list[int]] = {}

    def numbers(self, sentence: str) -> list[int]:
        """Return the numbers of a sentence between its two marks."""
        pieces: list[int] = []
        for word in words_of(sentence):
            if word not in self._known:
                self._known[word] = self._pieces(word)
            pieces += self._known[word]
        kept = pieces[: self._longest - 2]
        return [self._vocabulary[FIRST], *kept, self._vocabulary[LAST]]

    def _pieces(self, word: str) -> list[int]:
        """Cut a word into the longest pieces from the left; unknown if one is not listed."""
        found, start = [], 0
        while start < len(word) <= LONGEST_WORD:
            prefix = "##" if start else ""
            ends = range(len(word), start, -1)
            end = next((e for e in ends if prefix + word[start:e] in self._vocabulary), None)
            if end is None:
                break
            found.append(self._vocabulary[prefix + word[start:end]])
            start = end
        return found if start == len(word) else [self._vocabulary[UNKNOWN]]


def words_of(sentence: str) -> list[str]:
    """Return the lower-case words and punctuation marks of a sentence, without accents."""
    plain = unicodedata.normalize("NFD", sentence.lower())
    spaced = "".join(_spaced(character) for character in plain)
    return spaced.split()


def _spaced(character: str) -> str:
    """Return a character, as a word of its own where it is one, nothing where it is none."""
    if character.isspace():
        return " "
    kind = unicodedata.category(character)
    if kind == "Mn" or kind.startswith("C") or character == "�":
        return ""
    code = ord(character)
    mark = kind.startswith("P") or (code < 128 and not character.isalnum())
    if mark or any(low <= code <= high for low, high in _IDEOGRAPHS):
        return f" {character} "
    return character
