"""The forward pass is that of torch's own encoder layer on the same weights."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import save_file
from torch import nn

from countermove.errors import DataError, MissingPartError
from countermove.recourse.text import MiniLM
from countermove.recourse.text.transformer import Transformer

WIDTH, HEADS, INNER, LAYERS = 8, 2, 12, 2
WORDS = ["[UNK]", "[CLS]", "[SEP]", "a", "dull", "film"]
CONFIG = {
    "hidden_size": WIDTH,
    "num_hidden_layers": LAYERS,
    "num_attention_heads": HEADS,
    "layer_norm_eps": 1e-12,
}


def torch_layers() -> list[nn.TransformerEncoderLayer]:
    torch.manual_seed(0)
    layers = [
        nn.TransformerEncoderLayer(
            WIDTH, HEADS, INNER, 0.0, "gelu", layer_norm_eps=1e-12, batch_first=True
        ).eval()
        for _ in range(LAYERS)
    ]
    for layer in layers:
        for parameter in layer.parameters():
            nn.init.normal_(parameter, std=0.5)
    return layers


def bert_names(layer: nn.TransformerEncoderLayer, number: int) -> dict[str, torch.Tensor]:
    parts = {
        "attention.output.dense": layer.self_attn.out_proj,
        "attention.output.LayerNorm": layer.norm1,
        "intermediate.dense": layer.linear1,
        "output.dense": layer.linear2,
        "output.LayerNorm": layer.norm2,
    }
    named = {
        f"{name}.{kind}": getattr(part, kind)
        for name, part in parts.items()
        for kind in ("weight", "bias")
    }
    for kind in ("weight", "bias"):
        joint = getattr(layer.self_attn, f"in_proj_{kind}").chunk(3)
        for name, part in zip(("query", "key", "value"), joint, strict=True):
            named[f"attention.self.{name}.{kind}"] = part
    return {f"encoder.layer.{number}.{name}": w.detach().clone() for name, w in named.items()}


@pytest.fixture
def model(tmp_path: Path) -> Path:
    """The folder of a small encoder with random weights."""
    weights = {
        "embeddings.word_embeddings.weight": torch.randn(len(WORDS), WIDTH),
        "embeddings.position_embeddings.weight": torch.randn(300, WIDTH),
        "embeddings.token_type_embeddings.weight": torch.randn(2, WIDTH),
        "embeddings.LayerNorm.weight": torch.rand(WIDTH) + 0.5,
        "embeddings.LayerNorm.bias": torch.randn(WIDTH),
    }
    for number, layer in enumerate(torch_layers()):
        weights |= bert_names(layer, number)
    save_file(weights, tmp_path / "model.safetensors")
    (tmp_path / "config.json").write_text(json.dumps(CONFIG))
    (tmp_path / "vocab.txt").write_text("\n".join(WORDS) + "\n")
    return tmp_path


def test_layers_are_torchs_own(model: Path) -> None:
    read = Transformer.load(model / "model.safetensors", model / "config.json")
    tokens = np.array([[1, 3, 4, 2], [1, 5, 5, 2]])
    with torch.no_grad():
        h = read._embedded(torch.from_numpy(tokens))
        for layer in torch_layers():
            h = layer(h)
        expected = nn.functional.normalize(h.mean(1), dim=1).numpy()
    assert np.allclose(read.sentence_vectors(tokens), expected, atol=1e-6)


def test_a_vector_depends_on_its_sentence_only(model: Path) -> None:
    encoder = MiniLM(model)
    together = encoder.encode(["a dull film", "film", "", "a film"])
    alone = np.vstack([encoder.encode([s]) for s in ("a dull film", "film", "", "a film")])
    assert together.shape == (4, encoder.n_features)
    assert np.allclose(together, alone, atol=1e-6)
    assert np.allclose(np.linalg.norm(together, axis=1), 1.0, atol=1e-6)
    assert encoder.encode([]).shape == (0, WIDTH)


def test_other_weights_have_another_digest(model: Path) -> None:
    before = MiniLM(model).digest
    (model / "vocab.txt").write_text("\n".join(reversed(WORDS)) + "\n")
    assert MiniLM(model).digest != before


def test_damaged_files_are_refused(model: Path) -> None:
    whole = (model / "model.safetensors").read_bytes()
    (model / "model.safetensors").write_bytes(whole[:-10])
    with pytest.raises(DataError, match="not a BERT encoder"):
        MiniLM(model)
    (model / "model.safetensors").write_bytes(whole)
    (model / "config.json").write_text('{"hidden_size": 8}')
    with pytest.raises(DataError, match="num_hidden_layers"):
        MiniLM(model)
    (model / "vocab.txt").unlink()
    with pytest.raises(MissingPartError, match=r"vocab\.txt is missing.*countermove\[text\]"):
        MiniLM(model)
