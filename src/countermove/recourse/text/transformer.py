"""The forward pass of a BERT encoder, from its weights at rest to one vector per sentence."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.functional import (
    embedding,
    gelu,
    layer_norm,
    linear,
    normalize,
    scaled_dot_product_attention,
)

from countermove.errors import DataError


@dataclass(frozen=True)
class Shape:
    """Width of the vectors, number of layers, heads per layer, and the norm's small number."""

    width: int
    layers: int
    heads: int
    epsilon: float


class Transformer:
    r"""A BERT encoder that only reads (no training, no padding).

    Each layer mixes pieces by attention, then each piece on its own,

    .. math:: u = \mathrm{LN}(h + A(h)), \qquad h' = \mathrm{LN}(u + W_2\,\mathrm{gelu}(W_1 u))

    and a sentence is the mean of its pieces, scaled to norm one.

    Parameters
    ----------
    weights
        By the names BERT gives them, float32.
    shape
        Sizes.
    """

    def __init__(self, weights: Mapping[str, Tensor], shape: Shape) -> None:
        self._weights, self._shape = weights, shape

    @classmethod
    def load(cls, weights: Path, config: Path) -> Self:
        """Read weights (safetensors: nothing in them is run) and sizes (JSON).

        Raises
        ------
        DataError
            If the files are damaged or not those of a BERT encoder.
        """
        from safetensors import SafetensorError
        from safetensors.torch import load_file

        try:
            said = json.loads(config.read_text(encoding="utf-8"))
            shape = Shape(
                width=int(said["hidden_size"]),
                layers=int(said["num_hidden_layers"]),
                heads=int(said["num_attention_heads"]),
                epsilon=float(said["layer_norm_eps"]),
            )
            model = cls(load_file(weights), shape)
            model.sentence_vectors(np.zeros((1, 2), np.int64))
        except (OSError, ValueError, KeyError, TypeError, RuntimeError, SafetensorError) as error:
            raise DataError(f"{weights} is not a BERT encoder that can be read: {error}") from error
        return model

    @property
    def width(self) -> int:
        """Length of a sentence's vector."""
        return self._shape.width

    def sentence_vectors(self, tokens: NDArray[np.int64]) -> NDArray[np.float32]:
        """Return the vectors of sentences of one length, shape (n, width).

        Parameters
        ----------
        tokens
            Numbers of the pieces, shape (n, length).
        """
        with torch.inference_mode():
            h = self._embedded(torch.from_numpy(tokens))
            for layer in range(self._shape.layers):
                h = self._layer(h, f"encoder.layer.{layer}.")
            vectors: NDArray[np.float32] = normalize(h.mean(dim=1), dim=1).numpy()
        return vectors

    def _embedded(self, tokens: Tensor) -> Tensor:
        table = {
            name: self._weights[f"embeddings.{name}_embeddings.weight"]
            for name in ("word", "position", "token_type")
        }
        places = table["position"][: tokens.shape[1]] + table["token_type"][0]
        return self._normed(embedding(tokens, table["word"]) + places, "embeddings.LayerNorm")

    def _layer(self, h: Tensor, name: str) -> Tensor:
        n, length, width = h.shape
        heads = (n, length, self._shape.heads, width // self._shape.heads)
        query, key, value = (
            self._linear(h, f"{name}attention.self.{part}").view(heads).transpose(1, 2)
            for part in ("query", "key", "value")
        )
        mixed = scaled_dot_product_attention(query, key, value)
        mixed = mixed.transpose(1, 2).reshape(n, length, width)
        attended = self._linear(mixed, f"{name}attention.output.dense")
        u = self._normed(h + attended, f"{name}attention.output.LayerNorm")
        inner = gelu(self._linear(u, f"{name}intermediate.dense"))
        return self._normed(
            u + self._linear(inner, f"{name}output.dense"), f"{name}output.LayerNorm"
        )

    def _linear(self, h: Tensor, name: str) -> Tensor:
        return linear(h, self._weights[f"{name}.weight"], self._weights[f"{name}.bias"])

    def _normed(self, h: Tensor, name: str) -> Tensor:
        weight, bias = self._weights[f"{name}.weight"], self._weights[f"{name}.bias"]
        return layer_norm(h, (self._shape.width,), weight, bias, self._shape.epsilon)
