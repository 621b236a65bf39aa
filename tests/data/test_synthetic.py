"""Known populations have the accuracies they state."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from countermove.data.cleaning import clean
from countermove.data.rows import design_matrix
from countermove.data.schema import load_schema
from countermove.data.splits import split_table
from countermove.data.synthetic import (
    TINY_BIAS,
    TINY_WEIGHTS,
    GaussianPopulation,
    fabricate,
)
from countermove.errors import ParameterError, UnknownNameError


def test_the_exact_accuracy_is_the_sampled_one() -> None:
    population = GaussianPopulation((0.8, -0.3), favourable_share=0.7)
    X, y = population.sample(200_000, seed=0)
    rules = [population.best_rule(), (np.array([1.0, 1.0]), 0.4), (np.array([-1.0, 0.0]), 0.0)]
    for weights, bias in rules:
        hits = np.where(X @ weights + bias >= 0, 1, -1) == y
        assert hits.mean() == pytest.approx(population.accuracy(weights, bias), abs=0.005)


def test_no_rule_beats_the_best_rule() -> None:
    population = GaussianPopulation((0.5, 1.0, 0.0), favourable_share=0.4)
    weights, bias = population.best_rule()
    best = population.accuracy(weights, bias)
    rng = np.random.default_rng(0)
    for _ in range(200):
        other = population.accuracy(weights + rng.normal(size=3), bias + rng.normal())
        assert other <= best
    assert population.accuracy(np.zeros(3), 1.0) == pytest.approx(0.4)
    assert population.accuracy(np.zeros(3), -1.0) == pytest.approx(0.6)


def test_samples_follow_the_seed() -> None:
    population = GaussianPopulation((1.0,))
    assert np.array_equal(population.sample(50, 1)[0], population.sample(50, 1)[0])
    assert not np.array_equal(population.sample(50, 1)[0], population.sample(50, 2)[0])


@pytest.mark.parametrize(("centre", "share"), [((0.0, 0.0), 0.5), ((1.0,), 0.0), ((1.0,), 1.0)])
def test_populations_without_a_best_rule_are_refused(
    centre: tuple[float, ...], share: float
) -> None:
    with pytest.raises(ParameterError):
        GaussianPopulation(centre, share)


def test_tiny_fits_its_schema_and_has_a_good_linear_rule(schemas: Path) -> None:
    schema = load_schema("tiny", schemas)
    table = clean(fabricate("tiny"), schema)
    assert tuple(TINY_WEIGHTS) == schema.feature_names
    people = design_matrix(table, schema)
    X, y = people.X, people.y
    score = X @ np.array(list(TINY_WEIGHTS.values())) + TINY_BIAS
    assert (np.where(score >= 0, 1, -1) == y).mean() > 0.8
    assert 0.35 < (y == 1).mean() < 0.65
    assert [c.name for c in schema.model_features() if c.change == "immutable"] == ["years_at_job"]


@pytest.mark.parametrize("seed", range(5))
def test_tiny_can_be_split_whatever_the_seed(schemas: Path, seed: int) -> None:
    schema = load_schema("tiny", schemas)
    table = clean(fabricate("tiny", seed=seed), schema)
    fractions = {"train": 0.5, "validation": 0.1, "calibration": 0.2, "test": 0.2}
    assert abs(len(split_table(table, schema, fractions, seed)["validation"]) - 24) <= 2


def test_fabrication_follows_name_size_and_seed() -> None:
    assert len(fabricate("tiny", n=17)) == 17
    pd.testing.assert_frame_equal(fabricate("tiny", seed=2), fabricate("tiny", seed=2))
    assert not fabricate("tiny", seed=2).equals(fabricate("tiny", seed=3))
    with pytest.raises(UnknownNameError, match="did you mean 'tiny'"):
        fabricate("tinny")
    with pytest.raises(ParameterError, match="at least one person"):
        fabricate("tiny", n=0)
