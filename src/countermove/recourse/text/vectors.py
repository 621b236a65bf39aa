"""Vectors of sentences, encoded once: an encoder is slow, and its vectors never change.

They lie in parts that are only ever added, each written whole, in a folder per
encoder; an interrupted run goes on where it stopped.
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from countermove.data.storage import replace_file
from countermove.errors import DataError
from countermove.recourse.text.encoder import Encoder, Vectors

logger = logging.getLogger(__name__)

PART = 2_048
"""Sentences per file: what an interruption may cost."""


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
        raise DataError(f"{path} holds no vectors; delete it, they are made anew") from error
    if vectors.shape != (len(keys), n_features):
        raise DataError(f"{path} holds vectors of another encoder; delete it")
    return [key.tobytes() for key in keys], vectors
