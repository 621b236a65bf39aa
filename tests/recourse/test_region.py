"""Every point of the region around a piece of advice is approved and can exist."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from countermove.people import ActionSet
from countermove.people.feasible import lattice
from countermove.recourse import recommend
from countermove.recourse.words import advice_table, sentences
from countermove.scores import MLPScore
from countermove.scores.base import probability, values

from .conftest import linear
from .test_exact_tables import people_of
from .test_possible import SCHEMA, People


def assert_certified(score, X, actions, advice, draws=60, threshold=0.5):
    """Draw corners and inner points of everybody's region; none is refused or impossible."""
    has = np.isin(advice.status, ["FOUND", "BEYOND_REACH"])
    low, high, action = (
        part[has] for part in (advice.action_low, advice.action_high, advice.action)
    )
    assert ((low <= action) & (action <= high)).all()
    high, low = np.minimum(high, action + 50.0), np.maximum(low, action - 50.0)
    step = lattice(actions, X.shape[1])
    on = np.where(step > 0.0, step, 1.0)
    people, own = X[has], actions.of_rows(np.flatnonzero(has))
    random = np.random.default_rng(0)
    for draw in range(draws):
        share = random.random(low.shape) if draw % 2 else random.integers(0, 2, low.shape)
        point = low + share * (high - low)
        inside = np.floor((point - low) / on + 1e-9) * on + low
        point = np.where(step > 0.0, np.minimum(inside, high), point)
        point = np.where(low == high, action, point)
        assert (probability(values(score, people + point)) >= threshold).all()
        assert own.contains(people, point).all()
    return (high - low)[has[has]]


@pytest.mark.parametrize("terms", [{}, {"digits": 2}, {"margin": 0.05, "digits": 2}])
@pytest.mark.parametrize("name", ["credit", "german"])
def test_whoever_ends_in_the_region_is_approved_and_can_exist(name, terms):
    score, X, actions, _ = people_of(name, "possible", 60)
    advice = recommend(score, X, actions=actions, **terms)
    width = assert_certified(score, X, actions, advice)
    assert (width > 0.0).any(axis=1).mean() > 0.9


def test_relations_premises_and_whole_steps_hold_in_the_region():
    people = People(200)
    for margin in (0.0, 0.1):
        advice = recommend(people.score, people.X, actions=people.actions, margin=margin)
        width = assert_certified(people.score, people.X, people.actions, advice)
        # A margin is room for several amounts together, not for one alone.
        assert ((width > 0.0).sum(axis=1) > 1).any()


def test_a_region_is_as_wide_as_it_can_be():
    """One slack shared by two columns; the third only helps, up to its end."""
    actions = ActionSet(lower=[-4.0] * 3, upper=[4.0, 4.0, 1.0])
    rule = linear([1.0, 1.0, 1.0], -3.0)
    advice = recommend(rule, np.zeros((1, 3)), actions=actions, margin=0.2)
    beyond = float(values(rule, advice.x_new(np.zeros((1, 3))))[0])
    room = advice.action - advice.action_low
    assert room.sum() == pytest.approx(beyond, rel=1e-6)  # nothing of it is left
    assert room[0] == pytest.approx(beyond / 3, rel=1e-6)
    np.testing.assert_allclose(advice.action_high, [[4.0, 4.0, 1.0]])


def test_nothing_ends_a_column_without_bounds():
    rule = linear([1.0, -1.0], -1.0)
    advice = recommend(rule, np.zeros((1, 2)), actions=ActionSet())
    assert advice.action_high[0, 0] == np.inf
    assert advice.action_low[0, 1] == -np.inf
    assert advice.action_low[0, 0] == advice.action[0, 0]


@pytest.mark.parametrize("activation", ["tanh", "relu", "elu", "softplus"])
def test_regions_of_networks_are_certified_too(activation):
    draws = np.random.default_rng(3)
    score = MLPScore(4, (12, 12), activation, generator=torch.Generator().manual_seed(1))
    with torch.no_grad():
        score.weight.mul_(6.0)
    X = draws.normal(size=(60, 4))
    with torch.no_grad():
        score.bias.sub_(float(np.quantile(values(score, X), 0.6)))
    actions = ActionSet(lower=-np.full(4, 3.0), upper=np.full(4, 3.0), integer=[3])
    advice = recommend(score, X, "gradient", actions=actions, margin=0.02)
    width = assert_certified(score, X, actions, advice, draws=200)
    assert (width > 0.0).any(axis=1).mean() > 0.5


def test_gradients_stay_within_their_bounds():
    draws = np.random.default_rng(0)
    for activation in ("tanh", "relu", "elu", "softplus"):
        score = MLPScore(5, (9, 7), activation)
        low = torch.from_numpy(draws.normal(size=(20, 5)))
        high = low + torch.from_numpy(draws.random((20, 5)))
        least, most = score.gradient_bounds(low, high)
        for _ in range(50):
            at = low + (high - low) * torch.from_numpy(draws.random((20, 5)))
            slope = score.gradient(at)
            assert (slope >= least - 1e-12).all()
            assert (slope <= most + 1e-12).all()


def test_files_and_words_hold_the_region():
    people = People(200)
    # A bill counts for people here, and may not exceed the largest: no bound is proven.
    advice = recommend(people.score, people.X, actions=people.actions, margin=0.1, digits=2)
    said = {"model": people.score}
    table = advice_table(advice, people.X, SCHEMA, people.units, **said)
    words = sentences(advice, people.X, SCHEMA, people.units, **said)
    after = people.units.inverse(people.X + np.nan_to_num(advice.action))
    has = (advice.status == "FOUND") & (advice.n_changed > 0)
    for j, name in enumerate(SCHEMA.feature_names):
        if f"low:{name}" in table:
            low, high = (table[f"{end}:{name}"][has] for end in ("low", "high"))
            assert ((low <= after[has, j] + 1e-6) & (after[has, j] <= high + 1e-6)).all()
    assert table.loc[advice.status == "PROVEN_NONE", "low:bill"].isna().all()
    assert "low:ever" not in table  # a yes or no is no amount
    assert any("between" in sentence for sentence in words)
