"""What can be changed in a sentence, one noun or adjective by an antonym, and what that gives."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from countermove.data.texts import Texts
from countermove.errors import ParameterError
from countermove.recourse.text._encoder import Encoder, Vectors
from countermove.recourse.text._wordnet import PARTS_OF_SPEECH, PartOfSpeech, WordNet

_WORD = re.compile(r"[A-Za-z]+(?:[-'’][A-Za-z]+)*")
_HISSING = ("s", "x", "z", "ch", "sh")

_GRAMMAR = """
a about above after again against all am an and any are as at be because been before being below
between both but by can could did do does doing down during each either every few for from further
had has have having he her here hers him his how i if in into is it its just many me might more
most much must my neither no nor not of off on once one only or other our out over own same shall
she should so some such than that the their them then there these they this those through to too
two under until up us very was we were what when where which while who whom why will with would yet
you your
"""
FUNCTION_WORDS = frozenset(_GRAMMAR.split())
"""Words that carry grammar; WordNet lists some as nouns ("it", "a") that they hardly ever are."""


@dataclass(frozen=True)
class Replacement:
    """Characters ``start`` to ``end`` of a sentence, which are ``word``, become ``by``."""

    start: int
    end: int
    word: str
    by: str

    def applied(self, sentence: str) -> str:
        """Return the sentence after the replacement."""
        return sentence[: self.start] + self.by + sentence[self.end :]

    def words(self) -> str:
        """Return the advice in words."""
        return f"replace '{self.word}' by '{self.by}'"


class Antonyms:
    r"""The action set of a sentence, :math:`\Delta`: every single replacement by an antonym.

    Nouns and adjectives are recognised by how words are mostly used, not by a parse of the
    sentence. Satellite adjectives, most of the adjectives of English, take the antonyms
    of the adjective they are near to. A plural takes plural antonyms, a capital stays one.

    Parameters
    ----------
    wordnet
        Where the antonyms come from.
    """

    def __init__(self, wordnet: WordNet) -> None:
        self._wordnet = wordnet
        self._known: dict[str, tuple[str, ...]] = {}

    def of_sentence(self, sentence: str) -> tuple[Replacement, ...]:
        """Return all replacements in the order of the words, then of their antonyms."""
        return tuple(self._replacements(sentence))

    def _replacements(self, sentence: str) -> Iterator[Replacement]:
        for match in _WORD.finditer(sentence):
            word = match.group()
            for by in self.of_word(word.lower()):
                yield Replacement(match.start(), match.end(), word, _in_case_of(word, by))

    def of_word(self, word: str) -> tuple[str, ...]:
        """Return what may stand in the place of a lower-case word."""
        if word not in self._known:
            self._known[word] = () if word in FUNCTION_WORDS else tuple(self._looked_up(word))
        return self._known[word]

    def _looked_up(self, word: str) -> dict[str, None]:
        found: dict[str, None] = {}
        for pos in reversed(PARTS_OF_SPEECH):  # adjectives first: they judge
            found |= dict.fromkeys(self._as(word, pos))
        found.pop(word, None)
        return found

    def _as(self, word: str, pos: PartOfSpeech) -> Iterator[str]:
        listed = self._wordnet.lemma(word, pos)
        if listed is None or not self._wordnet.usual(word, pos):
            return
        lemma, plural = listed
        if plural and not self._wordnet.usual(lemma, pos):
            return
        for antonym in self._wordnet.antonyms(lemma, pos):
            yield _plural(antonym) if plural else antonym


def _plural(noun: str) -> str:
    if noun.endswith("y") and noun[-2:-1] not in "aeiou":
        return f"{noun[:-1]}ies"
    if noun.endswith("man"):
        return f"{noun[:-3]}men"
    return noun + ("es" if noun.endswith(_HISSING) else "s")


def _in_case_of(word: str, by: str) -> str:
    if len(word) > 1 and word.isupper():
        return by.upper()
    return by[:1].upper() + by[1:] if word[:1].isupper() else by


@dataclass(frozen=True)
class Options:
    """Texts, their vectors, and the vectors after every replacement.

    Parameters
    ----------
    texts
        The sentences and their labels.
    replacements
        What can be replaced in each, in the order of its words.
    vectors
        Of the sentences as they are, shape (n, d).
    alternatives
        Of the sentences after each replacement, one sentence after another, shape (m, d).
    """

    texts: Texts
    replacements: tuple[tuple[Replacement, ...], ...]
    vectors: Vectors
    alternatives: Vectors

    def __len__(self) -> int:
        return len(self.texts)

    @property
    def starts(self) -> NDArray[np.int64]:
        """Where the alternatives of each sentence begin, and the end: shape (n + 1,)."""
        return np.cumsum([0, *map(len, self.replacements)], dtype=np.int64)

    def some(self, rows: NDArray[np.int64]) -> Options:
        """Return some of the sentences with what is theirs."""
        starts = self.starts
        spans = [np.arange(starts[row], starts[row + 1]) for row in rows]
        return Options(
            self.texts.some(rows),
            tuple(self.replacements[row] for row in rows),
            self.vectors[rows],
            self.alternatives[np.concatenate([*spans, np.zeros(0, np.int64)])],
        )

    def first(self, most: int) -> Vectors:
        r"""Return each sentence and its first ``most`` alternatives, shape (n, 1 + most, d).

        Where a sentence has fewer, it stands in for the rest itself: staying is always
        allowed, so a maximum over the middle axis is one over what the sentence has.
        """
        if isinstance(most, bool) or not isinstance(most, int) or most < 1:
            raise ParameterError(f"candidates is a whole number ≥ 1, got {most!r}")
        padded = np.repeat(self.vectors[:, None, :], 1 + most, axis=1)
        for row, start in enumerate(self.starts[:-1]):
            kept = min(most, len(self.replacements[row]))
            padded[row, 1 : 1 + kept] = self.alternatives[start : start + kept]
        return padded


def options_of(texts: Texts, antonyms: Antonyms, encoder: Encoder) -> Options:
    """Find every replacement of every sentence and encode all that come out.

    ``encoder`` may be a `VectorStore`, which encodes only what it has not seen.
    """
    found = tuple(antonyms.of_sentence(sentence) for sentence in texts.sentence)
    changed = [
        replacement.applied(sentence)
        for sentence, replacements in zip(texts.sentence, found, strict=True)
        for replacement in replacements
    ]
    everything: Sequence[str] = [*texts.sentence, *changed]
    vectors = encoder.encode(everything)
    return Options(texts, found, vectors[: len(texts)], vectors[len(texts) :])
