"""A sentence can become every sentence that differs from it by one antonym, and no other."""

from __future__ import annotations

import numpy as np
import pytest

from countermove.errors import ParameterError
from countermove.recourse.text import Antonyms, HashedWords, Options, WordNet
from countermove.recourse.text._replacements import Replacement


@pytest.fixture(scope="module")
def antonyms(wordnet: WordNet) -> Antonyms:
    return Antonyms(wordnet)


def became(antonyms: Antonyms, sentence: str) -> list[str]:
    return [found.applied(sentence) for found in antonyms.of_sentence(sentence)]


def test_replacements_come_in_the_order_of_the_words(antonyms: Antonyms) -> None:
    assert became(antonyms, "A dull, insipid film.") == [
        "A lively, insipid film.",
        "A sharp, insipid film.",
        "A dull, lively film.",
    ]


def test_capitals_and_plurals_are_kept(antonyms: Antonyms) -> None:
    assert became(antonyms, "Victories! WOMEN") == [
        "Defeats! WOMEN",
        "Victories! MEN",
    ]
    assert became(antonyms, "defeats") == ["victories"]
    assert became(antonyms, "a well-drawn man") == [
        "a half finished man",
        "a well-drawn woman",
    ]


def test_grammar_and_verbs_stay(antonyms: Antonyms) -> None:
    """It is listed as a noun, and love as a noun and an adjective, but verbs are most usual."""
    assert became(antonyms, "It is what they love") == []
    assert became(antonyms, "") == []


def test_advice_is_in_words() -> None:
    found = Replacement(2, 6, "dull", "lively")
    assert found.words() == "replace 'dull' by 'lively'"
    assert found.applied("A dull film") == "A lively film"


def test_alternatives_are_the_changed_sentences(options: Options, encoder: HashedWords) -> None:
    row = next(i for i, s in enumerate(options.texts.sentence) if " dull " in s)
    start, end = options.starts[row : row + 2]
    changed = [r.applied(options.texts.sentence[row]) for r in options.replacements[row]]
    assert [sentence.split()[2] for sentence in changed] == ["lively", "sharp"]
    assert np.array_equal(options.alternatives[start:end], encoder.encode(changed))


def test_some_sentences_keep_what_is_theirs(options: Options) -> None:
    rows = np.array([200, 3, 77])
    part = options.some(rows)
    for new, old in enumerate(rows):
        assert part.texts.row[new] == old
        assert part.replacements[new] == options.replacements[old]
        ours = part.alternatives[slice(*part.starts[new : new + 2])]
        assert np.array_equal(ours, options.alternatives[slice(*options.starts[old : old + 2])])


def test_padding_is_the_sentence_itself(options: Options) -> None:
    padded = options.first(3)
    for row, found in enumerate(options.replacements):
        assert np.array_equal(padded[row, 0], options.vectors[row])
        begin = options.starts[row]
        assert np.array_equal(
            padded[row, 1 : 1 + len(found)], options.alternatives[begin : begin + len(found)]
        )
        assert (padded[row, 1 + len(found) :] == options.vectors[row]).all()
    assert options.first(1).shape == (len(options), 2, 2048)


@pytest.mark.parametrize("most", [0, 1.5, True])
def test_at_least_one_candidate(options: Options, most) -> None:
    with pytest.raises(ParameterError, match="candidates is a whole number ≥ 1"):
        options.first(most)
