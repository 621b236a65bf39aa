"""Sentences with all that each could become, as vectors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from countermove.data.texts import Texts
from countermove.errors import ParameterError
from countermove.recourse.text.antonyms import Antonyms, Replacement
from countermove.recourse.text.encoder import Encoder, Vectors


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
