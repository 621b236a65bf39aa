"""Social measures are hard ones: worked out by hand on a line."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import torch

from countermove.learning.social import social_measures, social_report
from countermove.people import ActionSet, QuadraticCost
from countermove.response import (
    BestResponse,
    NoResponse,
    Population,
    RobustResponse,
    ScalarResponse,
)
from countermove.scores import LinearScore


def line(scale: float = 1.0, bias: float = 0.0) -> LinearScore:
    score = LinearScore(1)
    with torch.no_grad():
        score.weight.fill_(scale)
        score.bias.fill_(scale * bias)
    return score


# Crossing from -1 costs 1 and is worth it; from -2 it costs 4 and is not; -0.5 costs 0.25.
CROWD = np.array([[-2.0], [-1.0], [-0.5], [3.0]]), np.array([1.0, 1.0, -1.0, 1.0])
FREE = BestResponse(QuadraticCost(1.0))


def test_measures_by_hand():
    found = social_measures(line(), *CROWD, FREE)
    assert found.utility == pytest.approx((-1 + (1 - 1.0) + (1 - 0.25) + 1) / 4, abs=1e-9)
    assert found.burden == pytest.approx((4 + 1 + 0) / 3, abs=1e-9)
    assert found.recourse == pytest.approx(2 / 3)
    assert found.recourse_all == pytest.approx(3 / 4)
    assert (found.people, found.deserving, found.refused, found.cut_off) == (4, 3, 3, 0)


@pytest.mark.parametrize("people", [FREE, ScalarResponse(QuadraticCost(1.0)), NoResponse()])
def test_recourse_of_all_is_the_share_approved_in_the_end(people):
    """Nobody approved moves out of approval, so it buys nothing that an approval rate does not."""
    rows = np.random.default_rng(0).normal(size=(200, 1)), np.ones(200)
    for bias in (-2.0, -0.5, 0.5):
        found = social_measures(line(bias=bias), *rows, people)
        approved = people.decisions_after(line(bias=bias), rows[0])
        assert found.recourse_all == pytest.approx(approved.mean())


def test_the_unscaled_burden_does_not_know_the_price():
    expensive = social_measures(line(), *CROWD, BestResponse(QuadraticCost(3.0)))
    assert expensive.burden == pytest.approx(3 * (4 + 1 + 0) / 3, abs=1e-9)
    assert expensive.burden_unscaled == pytest.approx((4 + 1 + 0) / 3, abs=1e-9)


@pytest.mark.parametrize("scale", [0.01, 7.0, 1000.0])
@pytest.mark.parametrize(
    "people",
    [FREE, ScalarResponse(QuadraticCost(1.0)), Population(FREE, never=0.3, log_sd=0.5)],
)
def test_measures_do_not_depend_on_the_scale_of_the_score(scale, people):
    found, plain = (social_measures(line(s), *CROWD, people).to_json() for s in (scale, 1.0))
    assert found == pytest.approx(plain, abs=1e-6)


def test_people_who_cannot_get_there_are_counted_apart():
    """Nobody may move by more than 1: the person at -2 has no price, not a price of infinity."""
    narrow = BestResponse(QuadraticCost(1.0), ActionSet(lower=[-1.2], upper=[1.2]))
    found = social_measures(line(), *CROWD, narrow)
    assert found.burden == pytest.approx((1 + 0) / 2, abs=1e-9)
    assert found.recourse == pytest.approx(2 / 3)
    assert (found.cut_off, found.deserving_cut_off) == (1, 1)


def test_nobody_refused_has_no_recourse_figure():
    assert social_measures(line(bias=10.0), *CROWD, FREE).recourse is None


def test_people_who_stay_pay_nothing_and_have_no_recourse():
    found = social_measures(line(), *CROWD, NoResponse(QuadraticCost(1.0)))
    assert found.utility == pytest.approx((-3 + 1) / 4)
    assert found.recourse == 0.0
    assert found.burden == pytest.approx(5 / 3, abs=1e-9)


def test_of_a_robust_response_the_worst_member_is_reported():
    """Two members that price moves differently: utility is the lower, burden the higher."""
    cheap, expensive = BestResponse(QuadraticCost(0.5)), BestResponse(QuadraticCost(4.0))
    alone = [social_measures(line(), *CROWD, member) for member in (cheap, expensive)]
    joint = social_measures(line(), *CROWD, RobustResponse([cheap, expensive]))
    assert joint.utility == min(found.utility for found in alone)
    assert joint.burden == max(found.burden for found in alone)
    assert joint.recourse == min(found.recourse for found in alone)


def test_measures_of_a_population_are_expectations():
    """They are the mean over many draws of types, and for a mixture the mixture's."""
    people = Population([FREE, BestResponse(QuadraticCost(3.0))], [0.6, 0.4], never=0.2, log_sd=0.5)
    found = social_measures(line(), *CROWD, people)
    X = np.tile(CROWD[0], (20_000, 1))
    drawn = people.respond(line(), X)
    approved = people.decisions_after(line(), X)
    payoff = np.where(approved, 1.0, -1.0) - drawn.cost
    assert found.utility == pytest.approx(payoff.mean(), abs=0.02)
    assert found.recourse == pytest.approx(approved[X[:, 0] < 0].mean(), abs=0.01)
    assert found.recourse_all == pytest.approx(approved.mean(), abs=0.01)
    # The mean price is exp(sigma²/2) times the median; the least cost of approval is 4, 1 and 0.
    mean = np.exp(0.125) * (0.6 * 1.0 + 0.4 * 3.0)
    assert found.burden == pytest.approx(mean * (4 + 1 + 0) / 3, abs=1e-6)
    assert found.burden_unscaled == pytest.approx((4 + 1 + 0) / 3, abs=1e-9)
    alike = Population([FREE, NoResponse(QuadraticCost(1.0))], [0.6, 0.4])
    parts = [social_measures(line(), *CROWD, kind) for kind in alike.kinds]
    mixed = social_measures(line(), *CROWD, alike)
    for name in ("utility", "recourse", "recourse_all"):
        wanted = 0.6 * getattr(parts[0], name) + 0.4 * getattr(parts[1], name)
        assert getattr(mixed, name) == pytest.approx(wanted)


def test_the_worst_of_several_populations_is_reported():
    populations = [Population(FREE, never=share, log_sd=0.5) for share in (0.1, 0.6)]
    joint = social_measures(line(), *CROWD, RobustResponse(populations))
    alone = [social_measures(line(), *CROWD, one) for one in populations]
    assert joint.recourse == min(found.recourse for found in alone) == alone[1].recourse


def test_groups_are_measured_apart_and_every_model_is_there():
    groups = pd.DataFrame({"town": ["a", "a", "b", "b"]})
    found = social_report({"lax": line(bias=1.0), "strict": line()}, *CROWD, groups, FREE)
    assert set(found["by_model"]) == {"lax", "strict"}
    strict = {town: entry["strict"] for town, entry in found["by_group"]["town"].items()}
    assert strict["a"]["burden"] == pytest.approx((4 + 1) / 2, abs=1e-9)
    assert strict["b"]["burden"] == 0.0
    assert strict["a"]["people"] + strict["b"]["people"] == 4
