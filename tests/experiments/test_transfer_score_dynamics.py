"""Scores that a decision moves: .5 is best before and after."""

from __future__ import annotations

import numpy as np
import pytest

from countermove.errors import DataError, ParameterError
from countermove.experiments.transfer.fico import Luck, ScoreDynamics, realities

SCORES = np.random.default_rng(0).beta(1.2, 1.0, 4_000)


@pytest.mark.parametrize("dynamics", [ScoreDynamics(), ScoreDynamics(0.01, 0.005)])
def test_the_best_threshold_is_a_half_before_and_after(dynamics):
    grid = np.linspace(0.02, 0.98, 97)
    pairs = [dynamics.expected_pair(SCORES, float(t)) for t in grid]
    before = [pair.source.error(float(t)) for pair, t in zip(pairs, grid, strict=True)]
    after = [pair.induced.error(float(t)) for pair, t in zip(pairs, grid, strict=True)]
    assert grid[int(np.argmin(before))] == pytest.approx(0.5)
    assert grid[int(np.argmin(after))] == pytest.approx(0.5)


def test_expected_errors_are_the_average_of_drawn_ones():
    dynamics, rng = ScoreDynamics(0.05, 0.02), np.random.default_rng(1)
    drawn = [
        dynamics.pair(SCORES, 0.4, Luck.draw(len(SCORES), rng)).induced.error(0.4)
        for _ in range(60)
    ]
    assert dynamics.expected_pair(SCORES, 0.4).induced.error(0.4) == pytest.approx(
        np.mean(drawn), abs=4.0 * np.std(drawn) / np.sqrt(60)
    )


def test_the_same_luck_gives_the_same_people():
    dynamics, luck = ScoreDynamics(), Luck.draw(len(SCORES), np.random.default_rng(2))
    one, other = (dynamics.pair(SCORES, 0.5, luck) for _ in range(2))
    assert np.array_equal(one.induced.label, other.induced.label)
    near = dynamics.pair(SCORES, 0.5001, luck)
    assert np.mean(near.induced.label != one.induced.label) < 0.001


def test_scores_grow_by_acceptance_and_stay_below_one():
    moved = ScoreDynamics(0.01, 0.0).after(
        np.array([0.5, 0.5, 0.9999]), np.array([True, False, True]), np.array([True, True, True])
    )
    assert moved == pytest.approx([0.505, 0.495, 1.0 - 1e-6])


def test_realities_replace_scores_by_estimates():
    group = np.zeros(len(SCORES), dtype=np.int64)
    seen = list(
        realities(
            SCORES,
            group,
            ScoreDynamics(0.1),
            lambda X, repaid: lambda Z: np.full(len(Z), 0.6),
            3,
            np.random.default_rng(0),
        )
    )
    assert len(seen) == 3
    assert seen[0] == pytest.approx(np.clip(SCORES, 1e-6, 1 - 1e-6))
    assert seen[1] == pytest.approx(0.66)


def test_effects_that_turn_scores_negative_are_refused():
    with pytest.raises(ParameterError, match="negative"):
        ScoreDynamics(0.7, 0.3)


def test_scores_must_be_chances():
    steps = realities(
        np.array([0.2, 1.4]),
        np.zeros(2, dtype=np.int64),
        ScoreDynamics(),
        lambda X, y: lambda Z: Z,
        2,
        np.random.default_rng(0),
    )
    with pytest.raises(DataError) as error:
        next(steps)
    assert error.value.rows == (1,)
