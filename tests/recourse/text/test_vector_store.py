"""A sentence is encoded once, also over interruptions."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from countermove.errors import DataError
from countermove.recourse.text import HashedWords, VectorStore
from countermove.recourse.text import _encoder as encoders

SENTENCES = ["a dull film", "a lively film", "a film"]


class Counting(HashedWords):
    """Counts the sentences it encodes."""

    def __init__(self, n_features: int = 16, limit: int = 1000) -> None:
        super().__init__(n_features)
        self.encoded, self.limit = 0, limit

    def encode(self, sentences):
        if self.encoded >= self.limit:
            raise KeyboardInterrupt
        self.encoded += len(sentences)
        return super().encode(sentences)


@pytest.mark.parametrize("kept", [True, False])
def test_vectors_are_the_encoders_own_and_made_once(tmp_path: Path, kept: bool) -> None:
    encoder = Counting()
    store = VectorStore(encoder, tmp_path if kept else None)
    found = store.encode([*SENTENCES, "a film"])
    assert np.array_equal(found, HashedWords(16).encode([*SENTENCES, "a film"]))
    assert np.array_equal(store.encode(["a film", "new"])[0], found[2])
    assert encoder.encoded == 4
    assert store.encode([]).shape == (0, 16)
    assert any(tmp_path.iterdir()) == kept


def test_an_interrupted_run_goes_on_where_it_stopped(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(encoders, "PART", 1)
    with pytest.raises(KeyboardInterrupt):
        VectorStore(Counting(limit=2), tmp_path).encode(SENTENCES)
    encoder = Counting()
    assert np.array_equal(
        VectorStore(encoder, tmp_path).encode(SENTENCES), HashedWords(16).encode(SENTENCES)
    )
    assert encoder.encoded == 1


def test_another_encoder_has_a_folder_of_its_own(tmp_path: Path) -> None:
    VectorStore(Counting(16), tmp_path).encode(SENTENCES)
    other = Counting(8)
    assert VectorStore(other, tmp_path).encode(SENTENCES).shape == (3, 8)
    assert other.encoded == 3


def test_damaged_parts_are_named(tmp_path: Path) -> None:
    VectorStore(Counting(), tmp_path).encode(SENTENCES)
    (part,) = tmp_path.rglob("*.safetensors")
    whole = part.read_bytes()
    part.write_bytes(whole[:40])
    with pytest.raises(DataError, match=rf"{part.name} holds no vectors; delete it"):
        VectorStore(Counting(), tmp_path)
    VectorStore(Counting(8), tmp_path).encode(SENTENCES)
    (other,) = (path for path in tmp_path.rglob("*.safetensors") if path.parent != part.parent)
    part.write_bytes(other.read_bytes())
    with pytest.raises(DataError, match="vectors of another encoder"):
        VectorStore(Counting(), tmp_path)
