"""A small WordNet and sentences about films that it can change."""

from __future__ import annotations

from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from countermove.data.texts import Texts, checked_texts
from countermove.recourse.text import Antonyms, HashedWords, Options, WordNet, options_of

from .small_wordnet import write_wordnet

GOOD, BAD = ("lively", "sharp", "big"), ("dull", "insipid", "small")


def film_sentences() -> pd.DataFrame:
    """Return 240 sentences: a good or a bad word decides, others do not."""
    things = ("film", "plot", "cast", "score", "script")
    ways = ("truly", "simply", "again", "often")
    ends = ("throughout", "here")
    rows = [
        (f"A {way} {word} {thing} {end}", label)
        for label, words in (("good", GOOD), ("bad", BAD))
        for word, thing, way, end in product(words, things, ways, ends)
    ]
    return pd.DataFrame(rows, columns=["text", "label"])


@pytest.fixture(scope="session")
def wordnet_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_wordnet(tmp_path_factory.mktemp("wordnet") / "dict")


@pytest.fixture(scope="session")
def wordnet(wordnet_folder: Path) -> WordNet:
    return WordNet.load(wordnet_folder)


@pytest.fixture(scope="session")
def encoder() -> HashedWords:
    return HashedWords(2048)


@pytest.fixture(scope="session")
def films() -> Texts:
    table = film_sentences()
    return checked_texts(table["text"], table["label"], "good")


@pytest.fixture(scope="session")
def options(films: Texts, wordnet: WordNet, encoder: HashedWords) -> Options:
    return options_of(films, Antonyms(wordnet), encoder)


@pytest.fixture(scope="session")
def halves(options: Options) -> tuple[Options, Options]:
    order = np.random.default_rng(0).permutation(len(options))
    return options.some(order[:160]), options.some(order[160:])
