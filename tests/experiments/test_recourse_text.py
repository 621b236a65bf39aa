"""Recourse on texts: what a sentence may become, its objective, advice, and the experiment."""

from __future__ import annotations

import re
from functools import partial
from importlib.util import find_spec
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
import yaml
from torch.nn.functional import softplus

from countermove.data.texts import checked_texts
from countermove.errors import MissingPartError, NotEnoughRowsError, ParameterError
from countermove.experiments import Measured, Sources, recourse_text
from countermove.experiments.recourse_text import (
    PACKAGE,
    Antonyms,
    HashedWords,
    MiniLM,
    Options,
    ReplacementRisk,
    TextExperiment,
    advise,
    load_wordnet,
    options_of,
    train_text_score,
)
from countermove.params.paper import PaperParameters
from countermove.scores import LinearScore
from countermove.scores.base import values

from .small_wordnet import ADJECTIVES, NOUNS, SmallWordNet, write_wordnet

ROOT = Path(__file__).parents[2]
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


@pytest.fixture(scope="module")
def films():
    table = film_sentences()
    return checked_texts(table["text"], table["label"], "good")


@pytest.fixture(scope="module")
def encoder() -> HashedWords:
    return HashedWords(2048)


@pytest.fixture(scope="module")
def options(films, encoder) -> Options:
    return options_of(films, Antonyms(SmallWordNet()), encoder)


def became(sentence: str) -> list[str]:
    return [found.applied(sentence) for found in Antonyms(SmallWordNet()).of_sentence(sentence)]


def test_replacements_come_in_the_order_of_the_words() -> None:
    assert became("A dull, insipid film.") == [
        "A lively, insipid film.",
        "A sharp, insipid film.",
        "A dull, lively film.",
    ]
    assert became("clever") == became("") == []


def test_an_antonym_of_the_word_itself_comes_before_those_of_its_synonyms() -> None:
    """Large opposes small and big little, though large and big are one meaning."""
    assert became("large") == ["small", "little"]
    assert became("big") == ["little", "small"]
    assert became("triumph") == ["defeat"]


def test_capitals_and_plurals_are_kept() -> None:
    assert became("Victories! WOMEN") == ["Defeats! WOMEN", "Victories! MEN"]
    assert became("defeats") == ["victories"]
    assert became("a well-drawn man") == ["a half finished man", "a well-drawn woman"]


def test_grammar_and_verbs_stay() -> None:
    """It is listed as a noun, and love as a noun and an adjective, but verbs are most usual."""
    assert became("It is what they love") == []


def test_nltk_reads_the_same_from_wordnets_files(tmp_path: Path) -> None:
    pytest.importorskip("nltk", reason="the extra countermove[text] is absent")
    ours = Antonyms(SmallWordNet())
    theirs = Antonyms(load_wordnet(write_wordnet(tmp_path)))
    words = [word.split("(")[0] for kind in (ADJECTIVES, NOUNS) for _, own, _ in kind.values()
             for word in own]  # fmt: skip
    for word in (*words, "victories", "women", "children", "duller", "film"):
        assert theirs.of_word(word) == ours.of_word(word), word


def test_what_is_missing_is_named_with_its_remedy(tmp_path: Path) -> None:
    with pytest.raises(MissingPartError, match="the folder that holds corpora/wordnet"):
        load_wordnet(tmp_path / "nowhere")
    if find_spec(PACKAGE) is None:
        with pytest.raises(MissingPartError, match=r"pip install countermove\[text\]"):
            MiniLM()


def test_counts_of_words_ignore_order_case_and_accents() -> None:
    one, other, third = HashedWords(64).encode(["a dull cafe", "Café DULL a", ""])
    assert np.linalg.norm(one) == pytest.approx(1.0)
    assert np.array_equal(one, other)
    assert not third.any()


def test_alternatives_are_the_changed_sentences(options: Options, encoder) -> None:
    row = next(i for i, s in enumerate(options.texts.sentence) if " dull " in s)
    start, end = options.starts[row : row + 2]
    changed = [r.applied(options.texts.sentence[row]) for r in options.replacements[row]]
    assert [sentence.split()[2] for sentence in changed] == ["lively", "sharp"]
    assert np.array_equal(options.alternatives[start:end], encoder.encode(changed))


def test_some_sentences_keep_what_is_theirs_and_padding_is_the_sentence(options: Options) -> None:
    rows = np.array([200, 3, 77])
    part = options.some(rows)
    padded = part.first(3)
    for new, old in enumerate(rows):
        assert part.texts.row[new] == old
        ours = part.alternatives[slice(*part.starts[new : new + 2])]
        assert np.array_equal(ours, options.alternatives[slice(*options.starts[old : old + 2])])
        assert np.array_equal(padded[new, 0], options.vectors[old])
        assert np.array_equal(padded[new, 1 : 1 + len(ours)], ours)
        assert (padded[new, 1 + len(ours) :] == options.vectors[old]).all()


def batch(options: Options):
    X = torch.from_numpy(options.vectors).double()
    y = torch.from_numpy(options.texts.favourable).double() * 2 - 1
    return X, y, torch.from_numpy(options.first(3))


def test_the_objective_is_the_sum_written_out_and_its_gradient_that_of_the_minimum(options) -> None:
    score = LinearScore(2048, torch.Generator().manual_seed(3))
    X, y, alternatives = batch(options)
    per_option = softplus(-score(alternatives.double().flatten(0, 1))).view(len(X), -1)
    expected = softplus(-y * score(X)).mean() + 0.7 * per_option.amin(dim=1).mean()
    found = ReplacementRisk(alternatives, 0.7).loss(score, X, y)
    assert found.item() == pytest.approx(expected.item(), abs=1e-12)
    slopes = [torch.autograd.grad(value, score.weight)[0] for value in (found, expected)]
    torch.testing.assert_close(*slopes)
    rows = torch.tensor([5, 190, 44])
    part = ReplacementRisk(alternatives[rows], 0.7).loss(score, X[rows], y[rows])
    whole = ReplacementRisk(alternatives, 0.7).of_rows(rows).loss(score, X[rows], y[rows])
    assert whole.item() == part.item()


def test_training_lowers_the_objective_it_is_given(options) -> None:
    """Nothing trained without the term does better by the objective with it."""
    order = np.random.default_rng(0).permutation(len(options.texts))
    train, test = options.some(order[:160]), options.some(order[160:])
    X, y, alternatives = batch(train)
    settings = {"learning_rate": 0.05, "max_epochs": 10, "patience": 10}
    scores = [train_text_score(train, test, weight, 3, settings) for weight in (0.0, 2.0)]
    without, with_ = (ReplacementRisk(alternatives, 2.0).loss(s, X, y).item() for s in scores)
    assert with_ < without


@pytest.fixture(scope="module")
def score(encoder: HashedWords) -> LinearScore:
    """A rule that likes 'sharp' and dislikes 'dull', 'insipid' and 'small'."""
    rule = LinearScore(2048)
    liked = encoder.encode(["sharp"])[0] - encoder.encode(["dull", "insipid", "small"]).sum(0)
    with torch.no_grad():
        rule.weight.copy_(torch.from_numpy(10.0 * liked).double())
        rule.bias.fill_(-1.0)
    return rule


def by_word(advice: pd.DataFrame, word: str) -> set[str]:
    return set(advice.loc[advice["text"].str.contains(f" {word} "), "status"])


def test_statuses_are_those_of_trying_everything(options, score, encoder) -> None:
    advice = advise(score, options)
    before = values(score, options.vectors.astype(float))
    for row, found in enumerate(options.replacements):
        sentence = options.texts.sentence[row]
        tried = [
            values(score, encoder.encode([r.applied(sentence)]).astype(float))[0] for r in found
        ]
        expected = "FOUND" if max(tried, default=-1.0) >= 0 else "PROVEN_NONE"
        expected = "NOT_NEEDED" if before[row] >= 0 else expected
        assert advice["status"][row] == expected, sentence
    assert by_word(advice, "sharp") == {"NOT_NEEDED"}
    assert by_word(advice, "dull") == {"FOUND"}
    assert by_word(advice, "insipid") == {"PROVEN_NONE"}
    found = advice["status"] == "FOUND"
    assert set(advice["words"][found]) == {"replace 'dull' by 'sharp'"}
    assert set(advice["words"][~found]) == {""}
    assert (advice["new_text"][~found] == advice["text"][~found]).all()
    after = values(score, encoder.encode(advice["new_text"][found]).astype(float))
    np.testing.assert_allclose(advice["probability_after"][found], 1 / (1 + np.exp(-after)))


def test_what_was_not_tried_is_not_proven(options, score) -> None:
    """The first antonym of dull is lively; sharp, which would do, comes second."""
    advice = advise(score, options, candidates=1)
    assert by_word(advice, "dull") == {"NOT_FOUND"}
    assert by_word(advice, "insipid") == {"PROVEN_NONE"}
    with pytest.raises(ParameterError, match="strictly between 0 and 1"):
        advise(score, options, 1.0)


@pytest.fixture(scope="module", autouse=True)
def wordnet():
    """Let the experiment read the small WordNet."""
    patch = pytest.MonkeyPatch()
    patch.setattr(recourse_text, "load_wordnet", lambda folder=None: SmallWordNet())
    yield "small"
    patch.undo()


def experiment(wordnet: str, **changes) -> TextExperiment:
    said = {
        "dataset": "films",
        "train": 120,
        "selection": 50,
        "test": 70,
        "encoder": partial(HashedWords, 512),
        "wordnet": wordnet,
        "splits": (0, 1),
        "weights": (0.0, 0.8),
        "training": {"learning_rate": 0.05, "max_epochs": 6, "patience": 6},
    }
    return TextExperiment(**said | changes)


def run(plan: TextExperiment, texts) -> Measured:
    return plan.measure(Sources(tables=None, texts=lambda *_, **__: texts), 0)


@pytest.fixture(scope="module")
def outcome(wordnet, films):
    return run(experiment(wordnet), films)


def test_one_row_per_split_and_weight(outcome) -> None:
    cells = outcome.cells
    found = list(cells[["split", "recourse_weight"]].itertuples(index=False, name=None))
    assert found == [(0, 0.0), (0, 0.8), (1, 0.0), (1, 0.8)]
    assert (cells["n"] == 70).all()
    refused = cells["refused"] / cells["n"]
    neg = cells["recourse_neg"].fillna(0.0)
    assert np.allclose(cells["recourse_all"], 1.0 - refused * (1.0 - neg))


def test_trying_more_never_finds_less(outcome, wordnet, films) -> None:
    one = run(experiment(wordnet, candidates=1), films).cells
    assert (one["recourse_all_every"] >= one["recourse_all"]).all()
    cells = outcome.cells
    # No sentence here has more than ten, so nothing is left to try.
    assert cells["recourse_all_every"].equals(cells["recourse_all"])
    left = cells["recourse_neg_every"] + cells["proven_none"]
    assert np.allclose(left[cells["refused"] > 0], 1.0)


def test_advice_is_for_test_sentences_of_the_first_split(outcome) -> None:
    advice = outcome.beside
    assert advice.groupby("recourse_weight").size().tolist() == [70, 70]
    found = advice[advice["status"] == "FOUND"]
    assert len(found)
    assert found["words"].str.startswith("replace '").all()
    assert (found["new_text"] != found["text"]).all()


def test_the_same_again(outcome, wordnet, films) -> None:
    again = run(experiment(wordnet), films).cells
    pd.testing.assert_frame_equal(again, outcome.cells)


def test_means_are_over_splits(outcome) -> None:
    means = experiment("").means(outcome.cells)
    assert means["splits"].tolist() == [2, 2]
    expected = outcome.cells.groupby("recourse_weight")["f1"].mean().tolist()
    assert means["f1"].tolist() == pytest.approx(expected)


def test_too_few_texts_are_counted(wordnet, films) -> None:
    with pytest.raises(NotEnoughRowsError, match="ask for 420 texts of 240"):
        run(experiment(wordnet, train=300), films)


def test_a_fixed_threshold_is_used_as_it_is(wordnet, films) -> None:
    both = experiment(wordnet, thresholds=("highest_f1", 0.6), splits=(0,))
    cells = run(both, films).cells
    assert cells["rule"].tolist() == ["highest_f1", "fixed_0.6"] * 2
    assert (cells.loc[cells["rule"] == "fixed_0.6", "threshold"] == 0.6).all()
    assert len(both.means(cells)) == 4


def test_table_5_is_a_configuration() -> None:
    path = ROOT / "conf" / "paper" / "recourse_table_5.yml"
    said = yaml.safe_load(path.read_text())["run"]["params"]["paper"]
    built = PaperParameters.model_validate(said).build()
    assert {0.0, 0.25} <= set(built.weights)
    assert built.candidates == 10


def test_the_code_of_the_page_runs() -> None:
    page = (ROOT / "docs" / "papers" / "recourse_text.md").read_text(encoding="utf-8")
    (code,) = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    names: dict[str, object] = {}
    exec(compile(code, "recourse_text.md", "exec"), names)
    advice = names["advice"]
    assert advice["status"][3] == "NOT_NEEDED"
    assert advice["words"][0].startswith("replace 'dull' by '")
