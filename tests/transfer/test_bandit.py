"""Bandit descents on a mean that moves along with the guess."""

from __future__ import annotations

import numpy as np
import pytest

from countermove.errors import ParameterError
from countermove.experiments.transfer.known_answers import MeanEstimation
from countermove.transfer.bandit import bandit_descent

START = np.zeros(2)


def test_watching_has_the_moments_of_a_deployment():
    """The shortcut through the noncentral chi-squared against people drawn one by one."""
    people, rng, rule = MeanEstimation(rows=10), np.random.default_rng(0), np.array([0.5, 0.2])
    seen = [people.watch(rule, rng) for _ in range(20_000)]
    centre = 0.5 * np.array([2.0, -1.0]) + 0.5 * rule
    drawn = rng.normal(centre, 1.0, (20_000, 10, 2)) - rule
    losses = 0.5 * (drawn**2).sum(axis=2).mean(axis=1)
    assert np.mean(seen) == pytest.approx(losses.mean(), rel=0.01)
    assert np.std(seen) == pytest.approx(losses.std(), rel=0.03)


@pytest.mark.parametrize("method", ["one_point", "one_point_baseline", "two_point"])
def test_slopes_are_unbiased(method):
    """For a quadratic risk the smoothed slope is the slope itself."""
    people, rng = MeanEstimation(rows=2_000), np.random.default_rng(0)
    start, step = np.array([1.0, 0.5]), 1e-3
    moves = [
        bandit_descent(people.watch, start, rng, method=method, step=step, deployments=2).rule
        - start
        for _ in range(6_000)
    ]
    steps = 1 if method == "two_point" else 2
    slope = -np.mean(moves, axis=0) / (steps * step)
    error = np.std(moves, axis=0) / (steps * step * np.sqrt(len(moves)))
    exact = 0.25 * (start - np.array([2.0, -1.0]))
    assert np.all(np.abs(slope - exact) <= 4.0 * error + 0.005)


def test_two_points_deploy_as_often_in_half_the_steps():
    count = []

    def watch(rule, rng):
        count.append(rule)
        return 0.0

    run = bandit_descent(watch, START, np.random.default_rng(0), deployments=11)
    assert run.deployments == len(count) == 10


def test_rules_stay_in_the_ball():
    run = bandit_descent(
        lambda rule, rng: -100.0 * float(rule @ rule),
        np.array([0.5, 0.0]),
        np.random.default_rng(0),
        step=1.0,
        deployments=100,
        radius=2.0,
    )
    assert np.linalg.norm(run.rule) <= 0.7 * 2.0 + 1e-12


def test_the_baseline_is_the_mean_of_losses_seen_before():
    """Losses of 3, 5 and 4 count as 3, 2 and 0 against it: each step is as long as that."""
    losses, rules = iter((3.0, 5.0, 4.0)), []

    def watch(rule, rng):
        rules.append(rule)
        return next(losses)

    rng = np.random.default_rng(0)
    options = {"method": "one_point_baseline", "step": 1e-3, "probe": 0.5, "deployments": 3}
    end = bandit_descent(watch, START, rng, **options).rule
    rng, rule = np.random.default_rng(0), START
    for loss in (3.0, 2.0, 0.0):
        direction = rng.normal(size=2)
        direction /= np.linalg.norm(direction)
        rule = rule - 1e-3 * (2 / 0.5) * loss * direction
    assert end == pytest.approx(rule)


@pytest.mark.parametrize(
    "said",
    [
        {"method": "three_point"},
        {"step": 0.0},
        {"probe": 1.0},
        {"radius": -1.0},
        {"deployments": 1},
    ],
)
def test_nonsense_is_refused(said):
    with pytest.raises(ParameterError):
        bandit_descent(MeanEstimation().watch, START, np.random.default_rng(0), **said)


def test_a_population_without_an_optimum_is_refused():
    with pytest.raises(ParameterError, match="response_strength"):
        MeanEstimation(response_strength=1.0)
