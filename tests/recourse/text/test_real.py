"""The real WordNet and the real sentence encoder, where they are installed."""

from __future__ import annotations

from importlib.util import find_spec
from itertools import product

import numpy as np
import pandas as pd
import pytest

from countermove.data.texts import checked_texts
from countermove.errors import MissingPartError
from countermove.recourse.text import (
    Antonyms,
    MiniLM,
    WordNet,
    advise,
    find_weights,
    find_wordnet,
    options_of,
    train_text_score,
)
from countermove.training import Trainer

pytestmark = pytest.mark.slow

STRANGE = (
    "There's no emotional pulse to Solaris.",
    "Touché! Crème brûlée—naïve “quoted” … 3.5/10 $5",
    "",
    "x" * 150 + " long",
    "日本語 film 映画 is good\tok\u200b zero",
    "word " * 400,
)


@pytest.fixture(scope="module")
def wordnet() -> WordNet:
    try:
        find_wordnet()
    except MissingPartError as error:
        pytest.skip(f"WordNet's files are absent: {error}")
    return WordNet.load()


@pytest.fixture(scope="module")
def encoder() -> MiniLM:
    try:
        find_weights()
    except MissingPartError as error:
        pytest.skip(f"the package of the extra is absent: {error}")
    return MiniLM()


def test_wordnets_antonyms(wordnet: WordNet) -> None:
    """The opposites that Princeton lists first; insipid and witless are satellites."""
    antonyms = Antonyms(wordnet)
    assert antonyms.of_word("dull")[:3] == ("lively", "bright", "sharp")
    assert antonyms.of_word("insipid") == ("tasty", "interesting")
    assert antonyms.of_word("witless") == ("smart",)
    assert antonyms.of_word("women") == ("men",)
    assert antonyms.of_word("unemotional")[0] == "emotional"


def test_near_meanings_have_near_vectors(encoder: MiniLM) -> None:
    dull, boring, vote = encoder.encode(
        ["The film is dull.", "It is a boring movie.", "Parliament votes on the budget today."]
    )
    assert dull @ boring > 0.5 > 0.3 > dull @ vote


def test_vectors_are_those_of_the_published_implementation(encoder: MiniLM) -> None:
    if find_spec("sentence_transformers") is None:
        pytest.skip("sentence-transformers is absent")
    from sentence_transformers import SentenceTransformer

    theirs = SentenceTransformer(str(find_weights()), device="cpu").encode(list(STRANGE))
    assert np.abs(encoder.encode(STRANGE) - theirs).max() < 1e-5


def test_a_word_changes_the_decision(wordnet: WordNet, encoder: MiniLM) -> None:
    words = {"bad": ("dull", "boring", "stupid", "ugly"), "good": ("lively", "funny", "smart")}
    frames = ("A {} film.", "The plot is {}.", "What a {} cast!", "It is {} all the way.")
    rows = [
        (frame.format(word), label)
        for label in words
        for word, frame in product(words[label], frames)
    ]
    table = pd.DataFrame(rows, columns=["text", "label"])
    texts = checked_texts(table["text"], table["label"], "good")
    options = options_of(texts, Antonyms(wordnet), encoder)
    score, _ = train_text_score(
        options, options, trainer=Trainer(learning_rate=0.05, max_epochs=30, patience=30)
    )
    advice = advise(score, options, encoder)
    dull = np.array(["dull" in sentence for sentence in texts.sentence])
    assert set(advice.status[dull]) == {"FOUND"}
    assert "replace 'dull' by" in advice.words()[int(np.flatnonzero(dull)[0])]
