"""A sentence can become every sentence that differs from it by one antonym, and no other."""

from __future__ import annotations

import pytest

from countermove.recourse.text import Antonyms, Replacement, WordNet


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
