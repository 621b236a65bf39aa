"""Samples that are alike pass, samples that differ are detected."""

from __future__ import annotations

import numpy as np
import pytest

from countermove.recourse.audit import in_distribution
from countermove.recourse.audit_robustness import DISCRIMINATORS, discriminator_test


def test_unlike_samples_are_told_apart_by_every_discriminator():
    rng = np.random.default_rng(0)
    moved = rng.normal(size=(200, 3)) + np.array([1.5, 0.0, 0.0])
    tests = in_distribution(moved, rng.normal(size=(300, 3)))
    assert [test.discriminator for test in tests] == list(DISCRIMINATORS)
    for test in tests:
        assert test.accuracy.low > 0.5
        assert test.auc > 0.7
        assert test.p_accuracy < 0.01
        assert test.p_auc < 0.01


def test_a_ring_around_a_cloud_escapes_the_linear_discriminator_only():
    rng = np.random.default_rng(1)
    angle = rng.uniform(0, 2 * np.pi, 300)
    ring = 2.0 * np.column_stack([np.cos(angle), np.sin(angle)])
    logistic, forest, neural = in_distribution(ring, 0.5 * rng.normal(size=(300, 2)))
    assert logistic.accuracy.value < 0.65
    assert forest.accuracy.value > 0.9
    assert neural.accuracy.value > 0.9


def test_too_few_people_are_not_tested():
    assert in_distribution(np.zeros((19, 2)), np.ones((500, 2))) == ()


@pytest.mark.quick_validity
def test_both_p_values_hold_their_level_under_exchangeable_labels():
    rng = np.random.default_rng(2)
    label, draws = np.repeat([True, False], 15), 500
    rejected = np.zeros(2)
    for draw in range(draws):
        scores = np.round(rng.normal(size=30), 1) + 0.2
        test = discriminator_test("logistic", scores, label, 0.95, draw)
        rejected += [test.p_accuracy <= 0.05, test.p_auc <= 0.05]
    assert (rejected / draws <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / draws)).all()
