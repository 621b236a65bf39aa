"""WordNet's files are read as Princeton documents them."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from countermove.errors import DataError, MissingPartError
from countermove.recourse.text import WordNet, find_wordnet

from .small_wordnet import write_wordnet


def test_antonyms_come_by_sense(wordnet: WordNet) -> None:
    assert wordnet.antonyms("dull", "adj") == ("lively", "sharp")
    assert wordnet.antonyms("defeat", "noun") == ("victory",)


def test_an_antonym_of_the_word_itself_comes_before_those_of_its_synonyms(wordnet) -> None:
    """Large opposes small and big little, though large and big are one meaning."""
    assert wordnet.antonyms("large", "adj") == ("small", "little")
    assert wordnet.antonyms("big", "adj") == ("little", "small")
    assert wordnet.antonyms("triumph", "noun") == ("defeat",)


def test_a_satellite_takes_the_antonyms_of_its_head(wordnet: WordNet) -> None:
    assert wordnet.antonyms("insipid", "adj") == ("lively",)
    assert wordnet.antonyms("clever", "adj") == ()


def test_markers_and_underscores_are_not_part_of_a_word(wordnet: WordNet) -> None:
    assert wordnet.antonyms("well-drawn", "adj") == ("half finished",)


@pytest.mark.parametrize(
    ("word", "found"),
    [
        ("victory", ("victory", False)),
        ("victories", ("victory", True)),
        ("defeats", ("defeat", True)),
        ("women", ("woman", True)),
        ("children", ("child", True)),
        ("films", None),
    ],
)
def test_plurals_are_known_by_rule_and_by_exception(wordnet: WordNet, word, found) -> None:
    assert wordnet.lemma(word, "noun") == found


def test_adjectives_are_not_taken_apart(wordnet: WordNet) -> None:
    assert wordnet.lemma("duller", "adj") is None


def test_a_word_is_what_it_is_most_often(wordnet: WordNet) -> None:
    """Love is tagged 60 times as a verb and 42 times as a noun; satellites count as adjectives."""
    assert not wordnet.usual("love", "noun")
    assert wordnet.usual("hate", "noun")
    assert wordnet.usual("insipid", "adj")
    assert not wordnet.usual("insipid", "noun")
    # Nobody counted it.
    assert wordnet.usual("clever", "adj")


def test_what_is_missing_is_named_with_its_remedy(tmp_path: Path, monkeypatch) -> None:
    with pytest.raises(MissingPartError, match=r"nowhere.*apt-get install wordnet-base"):
        WordNet.load(tmp_path / "nowhere")
    half = write_wordnet(tmp_path / "half")
    (half / "data.adj").unlink()
    with pytest.raises(MissingPartError, match=r"data\.adj"):
        find_wordnet(half)
    monkeypatch.setenv("WNSEARCHDIR", str(write_wordnet(tmp_path / "named")))
    assert find_wordnet() == tmp_path / "named"


def test_files_of_two_releases_are_refused(tmp_path: Path, wordnet_folder: Path) -> None:
    mixed = shutil.copytree(wordnet_folder, tmp_path / "mixed")
    (mixed / "data.adj").write_text("  a longer licence\n" + (mixed / "data.adj").read_text())
    with pytest.raises(DataError, match=r"data\.adj of WordNet has no synset at byte"):
        WordNet.load(mixed).antonyms("dull", "adj")


@pytest.mark.parametrize(
    ("name", "line"), [("index.noun", "film n many"), ("cntlist.rev", "film%9:00:00:: 1 2")]
)
def test_a_line_of_something_else_is_named(tmp_path, wordnet_folder, name, line) -> None:
    wrong = shutil.copytree(wordnet_folder, tmp_path / "wrong")
    (wrong / name).write_text(f"{line}\n")
    with pytest.raises(DataError, match=rf"{name}, line 1"):
        WordNet.load(wrong)
