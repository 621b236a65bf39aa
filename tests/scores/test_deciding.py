"""A score is read as it decides, whoever holds it."""

from types import SimpleNamespace

import numpy as np
import pytest
import torch

from countermove.errors import ParameterError
from countermove.scores import LinearScore, MLPScore
from countermove.scores.reading import SLICE, deciding, score_of, values


def test_values_are_those_without_dropout_and_training_goes_on():
    score = MLPScore(3, hidden=(5,), dropout=0.5).train()
    X = np.random.default_rng(0).normal(size=(SLICE + 3, 3))
    found = values(score, X)
    assert score.training
    with deciding(score), torch.no_grad():
        assert not score.training
        assert np.allclose(found, score(torch.from_numpy(X)).numpy())


def test_a_model_holds_its_score_by_any_usual_name():
    score = LinearScore(2)
    for model in (score, SimpleNamespace(score=score), SimpleNamespace(score_=score)):
        assert score_of(model) is score
    with pytest.raises(ParameterError, match="holds no score"):
        score_of("rule")
