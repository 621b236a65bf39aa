"""Word pieces as uncased BERT models read them."""

from __future__ import annotations

import pytest

from countermove.errors import DataError
from countermove.recourse.text.tokens import LONGEST_WORD, WordPieces, words_of

PIECES = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "play", "##ing", "##s", "un", "##play", "a", "."]


@pytest.fixture
def pieces() -> WordPieces:
    return WordPieces({piece: number for number, piece in enumerate(PIECES)}, longest=6)


def spelt(pieces: WordPieces, sentence: str) -> list[str]:
    return [PIECES[number] for number in pieces.numbers(sentence)]


def test_words_are_cut_into_the_longest_pieces(pieces: WordPieces) -> None:
    assert spelt(pieces, "Playing") == ["[CLS]", "play", "##ing", "[SEP]"]
    assert spelt(pieces, "unplays.") == ["[CLS]", "un", "##play", "##s", ".", "[SEP]"]
    assert spelt(pieces, "") == ["[CLS]", "[SEP]"]


def test_a_word_with_an_unknown_rest_is_unknown_as_a_whole(pieces: WordPieces) -> None:
    assert spelt(pieces, "playful a") == ["[CLS]", "[UNK]", "a", "[SEP]"]
    assert spelt(pieces, "a" * (LONGEST_WORD + 1)) == ["[CLS]", "[UNK]", "[SEP]"]


def test_long_sentences_are_cut_off_before_their_last_mark(pieces: WordPieces) -> None:
    assert spelt(pieces, "a a a a a a") == ["[CLS]", "a", "a", "a", "a", "[SEP]"]


def test_case_accents_and_control_characters_go(pieces: WordPieces) -> None:
    assert words_of("Touché!\tNAÏVE\u200b co-writer's 3.5") == [
        *("touche", "!", "naive", "co", "-", "writer", "'", "s", "3", ".", "5")
    ]
    assert words_of("映画 ok") == ["映", "画", "ok"]


def test_a_vocabulary_without_marks_is_refused() -> None:
    with pytest.raises(DataError, match=r"lacks \[CLS\], \[SEP\]"):
        WordPieces({"[UNK]": 0}, longest=6)
