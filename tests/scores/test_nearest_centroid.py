"""The score of a nearest-centroid rule is the log-odds it says."""

import numpy as np
import pytest
import torch

from countermove.errors import ParameterError
from countermove.scores import NearestCentroidScore

X = torch.from_numpy(np.random.default_rng(0).normal(size=(50, 3)))


def scored(**said):
    score = NearestCentroidScore(3, 4, **said)
    with torch.no_grad():
        score.centroids.copy_(torch.from_numpy(np.random.default_rng(1).normal(size=(4, 3))))
    return score


def test_the_probability_is_that_of_the_class():
    score = scored(favourable=2)
    p = torch.softmax(-torch.cdist(X, score.centroids), dim=1)[:, 2]
    assert torch.allclose(torch.sigmoid(score(X)), p)


def test_against_one_rival_the_nearer_centroid_decides():
    score = scored(favourable=2, against=[0])
    away = torch.cdist(X, score.centroids)
    assert torch.equal(score(X) >= 0, away[:, 2] <= away[:, 0])


def test_the_gradient_is_a_gradient():
    score = scored(favourable=1)
    torch.autograd.gradcheck(score, X[:3].clone().requires_grad_())
    assert torch.isfinite(score.gradient(score.centroids.detach().clone())).all()


@pytest.mark.parametrize(
    "said", [{"n_classes": 1}, {"favourable": 2}, {"against": [1]}, {"against": []}]
)
def test_classes_that_are_not_there_are_refused(said):
    with pytest.raises(ParameterError):
        NearestCentroidScore(3, **said)
