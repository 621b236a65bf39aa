"""A small encoder with random weights, as sentence-transformers runs it; needs the extra."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch

from countermove.errors import DataError, MissingPartError
from countermove.recourse.text import MiniLM

WIDTH = 8
WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a", "dull", "film", "play", "##ing"]

transformers = pytest.importorskip("transformers", reason="the extra countermove[text] is absent")
pytest.importorskip("sentence_transformers", reason="the extra countermove[text] is absent")


@pytest.fixture
def model(tmp_path: Path) -> Path:
    """The folder of a small encoder with random weights."""
    torch.manual_seed(0)
    config = transformers.BertConfig(
        vocab_size=len(WORDS),
        hidden_size=WIDTH,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=12,
        max_position_embeddings=300,
        initializer_range=0.5,
    )
    transformers.BertModel(config).save_pretrained(tmp_path)
    (tmp_path / "vocab.txt").write_text("\n".join(WORDS) + "\n")
    return tmp_path


def test_a_sentence_is_the_mean_of_its_word_pieces(model: Path) -> None:
    pieces = [WORDS.index(piece) for piece in ("[CLS]", "a", "play", "##ing", "film", "[SEP]")]
    bert = transformers.BertModel.from_pretrained(model).eval()
    with torch.no_grad():
        states = bert(torch.tensor([pieces])).last_hidden_state
    expected = torch.nn.functional.normalize(states.mean(1), dim=1).numpy()
    assert np.abs(MiniLM(model).encode(["A playing film"]) - expected).max() < 1e-6


def test_a_vector_depends_on_its_sentence_only(model: Path) -> None:
    encoder = MiniLM(model)
    sentences = ["a dull film", "film", "", "a film"]
    together = encoder.encode(sentences)
    alone = np.vstack([encoder.encode([sentence]) for sentence in sentences])
    assert together.shape == (4, encoder.n_features)
    assert together.dtype == np.float32
    assert np.allclose(together, alone, atol=1e-6)
    assert np.allclose(np.linalg.norm(together, axis=1), 1.0, atol=1e-6)
    assert encoder.encode([]).shape == (0, WIDTH)


def test_long_sentences_are_cut_off(model: Path) -> None:
    long, longer = MiniLM(model).encode(["film " * 254, "film " * 400])
    assert np.allclose(long, longer, atol=1e-6)


def test_other_weights_have_another_digest(model: Path) -> None:
    before = MiniLM(model).digest
    (model / "vocab.txt").write_text("\n".join([*WORDS[:-2], *reversed(WORDS[-2:])]) + "\n")
    assert MiniLM(model).digest != before


def test_damaged_files_are_refused(model: Path) -> None:
    whole = (model / "model.safetensors").read_bytes()
    (model / "model.safetensors").write_bytes(whole[:-10])
    with pytest.raises(DataError, match="not a BERT encoder"):
        MiniLM(model)
    (model / "model.safetensors").write_bytes(whole)
    config = json.loads((model / "config.json").read_text())
    # A layer that the file does not hold is never made up.
    (model / "config.json").write_text(json.dumps(config | {"num_hidden_layers": 3}))
    with pytest.raises(DataError, match=r"no encoder\.layer\.2"):
        MiniLM(model)
    (model / "config.json").write_text('{"hidden_size": 8}')
    with pytest.raises(DataError, match="not a BERT encoder"):
        MiniLM(model)
    (model / "vocab.txt").unlink()
    with pytest.raises(MissingPartError, match=r"vocab\.txt is missing.*countermove\[text\]"):
        MiniLM(model)
