"""Nonlinear scores are trained through people's response like any other."""

from pathlib import Path

import numpy as np
import pytest
import torch

from countermove import StrategicClassifier
from countermove.data.cleaning import clean
from countermove.data.rows import fit_standardiser, rows_of, standardised_table
from countermove.data.schema import load_schema
from countermove.data.sources import read_embedded
from countermove.errors import ParameterError
from countermove.learning.comparison import Split, compare
from countermove.learning.evaluation import usual_responses_to
from countermove.learning.selection import all_reach_alike
from countermove.people import ActionSet
from countermove.response import (
    AscentResponse,
    BestResponse,
    NoResponse,
    RepresentationResponse,
)
from countermove.scores import LinearScore, MLPScore, RecurrentScore, RepresentationScore

SCHEMAS = Path(__file__).parents[2] / "conf" / "base" / "schemas"


def draws(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def ring(n: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """The favourable stand in a disc: no straight rule is of use."""
    X = np.random.default_rng(seed).uniform(-2.0, 2.0, size=(n, 2))
    return X, np.where((X**2).sum(axis=1) < 1.6, 1, 0)


def series(n: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Three steps of two features: what counts is the last step, if the one before was calm."""
    X = np.random.default_rng(seed).normal(size=(n, 3, 2))
    y = np.where(X[:, 2, 0] + np.tanh(2.0 * X[:, 1, 1]) > 0.0, 1, 0)
    return X.reshape(n, -1), y


@pytest.fixture(scope="module")
def climbed():
    """A network trained for people who climb it, and its blind start."""
    X, y = ring(300)
    score = MLPScore(2, (12,), dropout=0.0, generator=draws())
    settings = {"max_epochs": 60, "patience": 60, "learning_rate": 0.05, "batch_size": 60}
    settings |= {"standardise": False}
    blind = StrategicClassifier(score, response="none", **settings).fit(X, y)
    people = AscentResponse(temperature=0.3, reference=X[:50], random_starts=1)
    quick = settings | {"max_epochs": 6}
    rule = StrategicClassifier(blind.score_, response=people, start="given", **quick).fit(X, y)
    return blind, rule, people


@pytest.mark.slow
def test_a_network_is_trained_for_people_who_climb_it(climbed):
    blind, rule, people = climbed
    X, y = ring(200, seed=1)
    unaware = blind.score_after_response(X, y, response=people)
    aware = rule.score_after_response(X, y)
    benchmark = blind.score(X, y)
    assert benchmark > 0.93
    assert unaware < benchmark - 0.15
    assert aware > unaware + 0.10


@pytest.mark.slow
def test_people_who_climb_a_ring_are_measured_against_a_grid(climbed):
    _, rule, people = climbed
    gap = people.optimality_gap(rule.score_, ring(40, seed=2)[0])
    assert gap.against == "grid"
    assert gap.worst < 0.2
    assert gap.share < 0.1


@pytest.mark.parametrize(
    ("start", "n", "width"),
    [("given", 24, 2), pytest.param("blind", 50, 4, marks=pytest.mark.slow)],
)
def test_a_start_and_a_choice_work_without_a_slope(start, n, width):
    """The score to start from is left as it was: the folds of the selection train copies, too."""
    X, y = ring(n)
    score = MLPScore(2, (width,), dropout=0.0, generator=draws())
    before = [parameter.detach().clone() for parameter in score.parameters()]
    people = AscentResponse(temperature=0.5, random_starts=0)
    settings = {"max_epochs": 1, "batch_size": 50, "start": start}
    rule = StrategicClassifier(score, response=people, **settings).fit(X, y)
    kinds = {"majority", "logistic", "class_means", "blind", "trained"}
    assert set(rule.choice_.rules) == kinds
    assert rule.choice_.kept in kinds
    assert not rule.choice_.alike
    assert rule.score_after_response(X, y) >= max(y.mean(), 1.0 - y.mean()) - 0.02
    for was, parameter in zip(before, score.parameters(), strict=True):
        assert torch.equal(was, parameter)


@pytest.mark.slow
def test_seeds_of_a_network_agree_to_a_point_on_german():
    """Where the network does not beat the simple rules, all seeds publish the same simple one."""
    schema = load_schema("german", SCHEMAS)
    typed = clean(read_embedded("german"), schema)
    rows = rows_of(
        standardised_table(typed, schema, fit_standardiser(typed, schema, False)), schema
    )
    d = rows.X.shape[1]
    people = AscentResponse(
        actions=ActionSet(immutable=range(3, d)), random_starts=0, reference=rows.X[:64]
    )
    settings = {"max_epochs": 2, "batch_size": 96, "standardise": False}
    learn, test = slice(0, 120), slice(120, 420)
    found = []
    for seed in range(3):
        score = MLPScore(d, (8,), dropout=0.0, generator=draws(seed))
        rule = StrategicClassifier(score, response=people, random_state=seed, **settings)
        choice = rule.fit(rows.X[learn], rows.y[learn]).choice_
        kept, best = choice.rules[choice.kept], choice.rules[choice.best_simple]
        assert kept.value >= best.value
        assert rule.history_.ended
        found.append(rule.score_after_response(rows.X[test], rows.y[test]))
    assert max(found) - min(found) <= 0.01


def test_closed_forms_say_what_to_use_instead():
    X, y = ring(40)
    with pytest.raises(ParameterError, match="AscentResponse"):
        StrategicClassifier(MLPScore(2, (4,)), response="best", max_epochs=1).fit(X, y)


def test_a_recurrent_rule_restores_the_benchmark_where_all_reach_alike():
    X, y = series(500)
    fresh, labels = series(400, seed=1)
    score = RecurrentScore.of_sequences(3, 2, width=6, generator=draws())
    settings = {"max_epochs": 15, "learning_rate": 0.05, "batch_size": 50}
    blind = StrategicClassifier(score, response="none", **settings).fit(X, y)
    rule = StrategicClassifier(score, response="best", **settings).fit(X, y)
    assert rule.choice_.alike
    assert blind.score(fresh, labels) > 0.93
    assert rule.score_after_response(fresh, labels) > blind.score(fresh, labels) - 0.02
    assert blind.score_after_response(fresh, labels, response="best") < 0.75
    moved = rule.respond(fresh).x_new - fresh
    assert np.array_equal(moved[:, :4], np.zeros((400, 4)))
    assert np.abs(moved[:, 4:]).max() > 0.0


def test_a_representation_is_learned_through_moves_in_it():
    X, y = ring(400)
    fresh, labels = ring(300, seed=1)
    score = RepresentationScore(2, (16, 3), generator=draws())
    people = RepresentationResponse(BestResponse())
    settings = {"max_epochs": 60, "learning_rate": 0.02, "batch_size": 50}
    rule = StrategicClassifier(score, response=people, **settings).fit(X, y)
    assert rule.choice_ is None
    assert rule.score_after_response(fresh, labels) > 0.9
    assert rule.respond(fresh).x_new.shape == (300, 3)
    assert not np.array_equal(rule.score_.weights[0].detach(), score.weights[0].detach())


def test_reach_is_alike_in_a_representation_and_unknown_for_a_network():
    X = ring(30)[0]
    represented = RepresentationScore(2, (4, 2), generator=draws())
    assert all_reach_alike(represented, (RepresentationResponse(),), X)
    assert not all_reach_alike(MLPScore(2, (4,)), (AscentResponse(),), X)


def test_the_usual_responses_follow_the_score():
    assert "best" in usual_responses_to(LinearScore(2), BestResponse())
    found = usual_responses_to(MLPScore(2, (4,)), AscentResponse(temperature=0.4))
    assert list(found) == ["none", "ascent_0.2", "ascent_0.5", "ascent_1"]
    assert isinstance(found["none"], NoResponse)


@pytest.mark.slow
def test_a_comparison_shifts_by_what_people_gain():
    X, y = ring(90)
    signs = np.where(y > 0, 1.0, -1.0)
    split = Split((X[:50], signs[:50]), (X[50:70], signs[50:70]), (X[70:], signs[70:]))
    score = MLPScore(2, (4,), dropout=0.0, generator=draws())
    found = compare(split, "ascent", score=score, max_epochs=1, batch_size=50)
    assert all(0.0 <= value <= 1.0 for value in found.to_json().values())
