"""Experiments on texts: disjoint parts, every cell measured, the same every time."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import yaml

from countermove.data.texts import checked_texts
from countermove.errors import NotEnoughRowsError
from countermove.experiments import Measured, Sources
from countermove.experiments.recourse.texts import TextExperiment
from countermove.params.paper import PaperParameters
from countermove.recourse.text import HashedWords, VectorStore

from ..recourse.text.conftest import film_sentences
from ..recourse.text.small_wordnet import write_wordnet

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def wordnet(tmp_path_factory) -> str:
    return str(write_wordnet(tmp_path_factory.mktemp("dict")))


@pytest.fixture(scope="module")
def films():
    table = film_sentences()
    return checked_texts(table["text"], table["label"], "good")


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
    return plan.measure(Sources(tables=None, texts=lambda *_, **__: texts, vectors=VectorStore), 0)


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
