"""Every promise of recourse fails no more often than it says, on a population with known answers.

People are two Gaussian clouds; a linear score is then a mixture of two normals, and the share
of people below any score, before and after response, is known in closed form.
"""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy.optimize import brentq
from scipy.special import expit, logit
from scipy.stats import binom, norm

from countermove.certificates.betting import betting_p_values, upper_means
from countermove.certificates.intervals import upper_share
from countermove.data.synthetic import GaussianPopulation
from countermove.people import ActionSet, QuadraticCost
from countermove.recourse import (
    ChoiceRows,
    Limits,
    PromiseTerms,
    calibrate_after_response,
    calibrate_pare,
    calibrate_pare_by_group,
    certify_refused,
    choose_jointly,
    recommend,
)
from countermove.recourse.pare import (
    missed_after_response,
    reach_of,
    refused_certificate,
    threshold_bound,
)
from countermove.recourse.pare.after_response import refusal_chances
from countermove.recourse.pare.refused import refused_people
from countermove.recourse.pare.sequence import fixed_sequence
from countermove.response import BestResponse, Population, Response, Responses
from countermove.scores import LinearScore
from countermove.scores.base import values

POPULATION = GaussianPopulation(centre=(1.0, 0.5))
WEIGHTS = np.array([1.0, 0.5])
NORM = float(np.linalg.norm(WEIGHTS))
DRAWS = pytest.mark.parametrize(
    "draws",
    [
        pytest.param(400, marks=[pytest.mark.validity, pytest.mark.quick_validity]),
        pytest.param(2500, marks=pytest.mark.validity),
    ],
)


@pytest.fixture(scope="module")
def score() -> LinearScore:
    made = LinearScore(2)
    with torch.no_grad():
        made.weight.copy_(torch.from_numpy(WEIGHTS))
    return made


def share_below(value, population=POPULATION, weights=WEIGHTS):
    """Return the share of the population whose score lies below a value."""
    along, size = float(np.dot(weights, population.centre)), float(np.linalg.norm(weights))
    p = population.favourable_share
    return p * norm.cdf((value - along) / size) + (1 - p) * norm.cdf((value + along) / size)


def around(truth, miss_rate: float, below: float) -> np.ndarray:
    """Return rising cuts, the last two a hair above where the promise breaks.

    There a false promise is likeliest: a test whose grid jumps over the spot cannot fail.
    """
    critical = brentq(lambda cut: truth(cut) - miss_rate, -8.0, 8.0)
    return critical + np.array([*np.linspace(-below, -0.1, 6), 0.002, 0.004])


def most_failures(draws: int, level: float) -> float:
    """Return the count a promise of that level stays below but for three standard errors."""
    return draws * level + 3 * np.sqrt(draws * level * (1 - level))


def passed_exactly(misses, n, miss_rate: float) -> np.ndarray:
    """Return what passes at 5 % in the order of the grid, from counts (draws, thresholds)."""
    return fixed_sequence(binom.cdf(misses, n, miss_rate)[..., None], 0.05)[1]


def box(limit: float) -> ActionSet:
    return ActionSet(lower=[-limit, 0.0], upper=[limit, 0.0])


@DRAWS
def test_plain_promise(score, draws):
    n, gain = 93, 0.7  # 93 rows allow one miss, and use up .0499 of the .05
    X, _ = POPULATION.sample(draws * n, seed=1)
    bounds = [
        calibrate_pare(score, people, actions=box(gain), miss_rate=0.05).bound
        for people in X.reshape(draws, n, 2)
    ]
    missed = share_below(logit(bounds) - gain)
    assert np.sum(missed > 0.05) <= most_failures(draws, 0.05)
    # The level is not wasted: a threshold any higher would break it.
    assert np.sum(missed > 0.05) > 0.5 * draws * 0.05


@DRAWS
def test_fresh_people_are_advised_as_often_as_promised(score, draws):
    """Within a ceiling, one feature and bounds: of whoever is counted, everybody is advised."""
    n, limits = 93, Limits(QuadraticCost(2.0), 0.5, 1)
    X, _ = POPULATION.sample(draws * n, seed=11)
    best = reach_of(score, box(0.7), limits=limits)
    reached = best(X)
    bounds = [threshold_bound(each, 0.05, 0.05) for each in reached.reshape(draws, n)]
    fresh, _ = POPULATION.sample(20_000, seed=12)
    without = np.sort(best(fresh))
    missed = np.searchsorted(without, logit(bounds)) / len(fresh)
    assert np.sum(missed > 0.05) <= most_failures(draws, 0.05)
    for bound in bounds[:5]:
        within = {"cost": limits.cost, "ceiling": 0.5, "max_features": 1}
        advice = recommend(score, fresh, threshold=bound, actions=box(0.7), **within)
        lost = ~np.isin(advice.status, ["FOUND", "NOT_NEEDED"])
        assert 0.0 <= np.mean(without < logit(bound)) - lost.mean() <= 1e-3


@DRAWS
def test_promise_to_every_group_at_one_threshold(score, draws):
    n, gain = 72, 0.7
    worse = GaussianPopulation(centre=(1.0, 0.5), favourable_share=0.3)
    groups = np.repeat(["one", "other"], n)
    first, second = (p.sample(draws * n, seed=2)[0] for p in (POPULATION, worse))
    people = np.concatenate([first.reshape(draws, n, 2), second.reshape(draws, n, 2)], axis=1)
    bounds = [
        calibrate_pare_by_group(score, rows, groups, actions=box(gain)).bound for rows in people
    ]
    missed = np.maximum(*(share_below(logit(bounds) - gain, p) for p in (POPULATION, worse)))
    assert np.sum(missed > 0.05) <= most_failures(draws, 0.05)


@DRAWS
def test_promise_to_the_refused(score, draws):
    n, gain = 250, 2.6
    cuts = around(lambda cut: share_below(cut - gain) / share_below(cut), 0.1, below=1.2)
    X, _ = POPULATION.sample(draws * n, seed=3)
    scores = values(score, X).reshape(draws, n)
    best = reach_of(score, box(gain))(X).reshape(draws, n)
    grid = expit(cuts)
    misses, refused = (mask.sum(axis=-1).T for mask in refused_people(scores, best, grid))
    passed = passed_exactly(misses, refused, 0.1)
    truth = share_below(cuts - gain) / share_below(cuts)
    assert np.sum((passed & (truth > 0.1)).any(axis=1)) <= most_failures(draws, 0.05)
    assert passed[:, 0].mean() > 0.5
    for draw in range(5):
        told = certify_refused(
            score, X.reshape(draws, n, 2)[draw], grid, miss_rate=0.1, actions=box(gain)
        )
        assert np.array_equal(told.passed, passed[draw])


@DRAWS
def test_bound_on_the_refused_holds_at_every_threshold_at_once(score, draws):
    """Whichever threshold of the grid is chosen, and for whatever reason."""
    n, gain, cuts = 200, 1.0, np.linspace(-1.5, 1.5, 5)
    X, _ = POPULATION.sample(draws * n, seed=7)
    scores = values(score, X).reshape(draws, n)
    best = reach_of(score, box(gain))(X).reshape(draws, n)
    counts = (mask.sum(axis=-1).T for mask in refused_people(scores, best, expit(cuts)))
    bounds = upper_share(*counts, 0.05 / len(cuts))
    truth = share_below(cuts - gain) / share_below(cuts)
    assert np.sum((truth > bounds).any(axis=1)) <= most_failures(draws, 0.05)
    told = refused_certificate(
        score, X[:n], expit(cuts), expit(cuts)[2], 0.05, reach=reach_of(score, box(gain))
    )
    assert told.value == pytest.approx(bounds[0, 2])


@DRAWS
def test_promise_to_every_group_after_response(score, draws):
    n, response = 72, BestResponse(QuadraticCost(1.0))
    worse = GaussianPopulation(centre=(1.0, 0.5), favourable_share=0.3)
    furthest = np.sqrt(2.0) * NORM
    cuts = around(lambda cut: share_below(cut - furthest, worse), 0.05, below=2.0)
    misses = []
    for population in (POPULATION, worse):
        X, _ = population.sample(draws * n, seed=8)
        missed = missed_after_response(
            score, X, response, expit(cuts), reach=reach_of(score, box(0.5))
        )
        misses.append(missed.reshape(len(cuts), draws, n).sum(axis=2).T)
    counts = np.stack(misses, axis=-1)
    _, passed = fixed_sequence(binom.cdf(counts, n, 0.05), 0.05, parts=2)
    truth = share_below(cuts - furthest, worse)
    broken = np.sum((passed & (truth > 0.05)).any(axis=1))
    assert broken <= most_failures(draws, 0.05)
    assert passed[:, 0].mean() > 0.9


@DRAWS
@pytest.mark.parametrize("gain", [0.5, 2.5])
def test_promise_after_best_response(score, draws, gain):
    """Whoever is within reach crosses; of the others those within the box have recourse."""
    n, response = 93, BestResponse(QuadraticCost(1.0))
    furthest = max(gain, np.sqrt(2.0) * NORM)
    cuts = around(lambda cut: share_below(cut - furthest), 0.05, below=2.0)
    grid = expit(cuts)
    X, _ = POPULATION.sample(draws * n, seed=4)
    reach = reach_of(score, box(gain))
    missed = missed_after_response(score, X, response, grid, reach=reach)
    misses = missed.reshape(len(grid), draws, n).sum(axis=2).T
    passed = passed_exactly(misses, n, 0.05)
    broken = np.sum((passed & (share_below(cuts - furthest) > 0.05)).any(axis=1))
    assert 0.3 * draws * 0.05 < broken <= most_failures(draws, 0.05)
    assert passed[:, 0].mean() > 0.99
    for draw in range(3):
        told = calibrate_after_response(
            score, X.reshape(draws, n, 2)[draw], response, grid, reach=reach
        )
        assert np.array_equal(told.passed, passed[draw])


DIFFERENT = Population(BestResponse(QuadraticCost(1.0)), never=0.02, log_sd=0.5)
"""Few never move: otherwise no threshold refuses anybody and keeps a promise of 5 %."""


def share_refused(cut: float, limit: float = 0.0) -> float:
    """Return the share refused after response whom a gain of ``limit`` does not bring there."""
    gap = np.linspace(max(limit, 1e-9), 14.0, 60_001)
    crossed = norm.cdf((np.log(2.0) - 2.0 * np.log(gap / NORM)) / DIFFERENT.log_sd)
    refused = 1.0 - (1.0 - DIFFERENT.never) * crossed
    density = np.gradient(share_below(cut - gap), -gap)
    return float(np.trapezoid(refused * density, gap))


@DRAWS
def test_promise_that_people_who_differ_can_reach_approval(score, draws):
    n, gain = 93, 0.5
    cuts = around(lambda cut: share_refused(cut, gain), 0.05, below=2.0)
    X, _ = POPULATION.sample(draws * n, seed=21)
    missed = missed_after_response(
        score, X, DIFFERENT.with_seed(5), expit(cuts), reach=reach_of(score, box(gain))
    )
    misses = missed.reshape(len(cuts), draws, n).sum(axis=2).T
    passed = passed_exactly(misses, n, 0.05)
    truth = np.array([share_refused(cut, gain) for cut in cuts])
    broken = np.sum((passed & (truth > 0.05)).any(axis=1))
    assert 0.3 * draws * 0.05 < broken <= most_failures(draws, 0.05)
    assert passed[:, 0].mean() > 0.9


@DRAWS
def test_promise_that_people_who_differ_will_reach_approval(score, draws):
    n = 150
    cuts = around(share_refused, 0.05, below=2.0)
    X, _ = POPULATION.sample(draws * n, seed=22)
    refused = refusal_chances(score, X, DIFFERENT, expit(cuts))[0]
    truth = np.array([share_refused(cut) for cut in cuts])
    np.testing.assert_allclose(refused.mean(axis=1), truth, atol=5.0 * 0.3 / np.sqrt(len(X)))
    values_of = refused.reshape(len(cuts) * draws, n)
    p_values = betting_p_values(values_of, 0.05).reshape(len(cuts), draws).T
    _, passed = fixed_sequence(p_values[..., None], 0.05)
    broken = np.sum((passed & (truth > 0.05)).any(axis=1))
    assert broken <= most_failures(draws, 0.05)
    assert passed[:, 0].mean() > 0.9
    bounds = upper_means(values_of, 0.05).reshape(len(cuts), draws)
    assert (np.sum(bounds < truth[:, None], axis=1) <= most_failures(draws, 0.05)).all()
    for draw in range(3):
        told = calibrate_after_response(
            score, X.reshape(draws, n, 2)[draw], DIFFERENT, expit(cuts), promise="will"
        )
        assert np.array_equal(told.passed, passed[draw])


class TriesAndFails(Response):
    """People up to 1 below the bar cross; up to 2 below they try, fail and fall by 5.5."""

    name = "tries"

    def respond(self, score, X, on_failure="raise"):
        now = values(score, X)
        moved = (now < 0.0) & (now >= -2.0)
        step = np.where(now >= -1.0, -now, -5.5) * moved
        x_new = X + np.column_stack([step, np.zeros(len(X))])
        return Responses(x_new, np.zeros(len(X)), moved, np.ones(len(X), bool))

    def scores_after(self, score, X):
        return score(torch.from_numpy(self.respond(score, X.numpy()).x_new))


@DRAWS
def test_promise_after_a_response_that_is_not_monotone(draws):
    """Trying and failing harms most where most stand: the miss rate rises, falls and rises.

    Choosing anything below the largest passing threshold breaks the promise almost
    always; thresholds passed in order before the first failure keep it.
    """
    n, gain, miss_rate = 300, 6.0, 0.1
    population = GaussianPopulation(centre=(2.0, 0.0))
    weights = np.array([1.0, 0.0])
    score = LinearScore(2)
    with torch.no_grad():
        score.weight.copy_(torch.from_numpy(weights))
    cuts = np.linspace(-4.0, 1.5, 8)
    X, _ = population.sample(draws * n, seed=5)
    missed = missed_after_response(
        score, X, TriesAndFails(), expit(cuts), reach=reach_of(score, box(gain))
    )
    misses = missed.reshape(len(cuts), draws, n).sum(axis=2).T
    p_values, passed = fixed_sequence(binom.cdf(misses, n, miss_rate)[..., None], 0.05)
    below = [share_below(cuts - gap, population, weights) for gap in (1.0, 2.0, gain)]
    truth = below[0] - below[1] + below[2]
    assert np.sum((passed & (truth > miss_rate)).any(axis=1)) <= most_failures(draws, 0.05)
    assert passed[:, 0].all()
    largest = [np.flatnonzero(p <= 0.05).max(initial=-1) for p in p_values]
    wrong = [(truth[: last + 1] > miss_rate).any() for last in largest]
    assert np.mean(wrong) > 0.5


@pytest.mark.validity
@pytest.mark.parametrize(("gain", "led_by"), [(4.0, "promise"), (0.3, "performance")])
def test_joint_choice_promises_truly(score, gain, led_by):
    """Chosen by promise or by performance, the certificate holds at its level."""
    draws, n = 300, 150
    response = BestResponse(QuadraticCost(2.0))
    grid = tuple(expit(np.linspace(-4.0, 1.2, 7)))
    terms = PromiseTerms(miss_rate=0.1, largest_loss=0.05, grid=grid)
    X, y = POPULATION.sample(draws * 2 * n, seed=6)
    broken, ways = 0, set()
    for rows, labels in zip(X.reshape(draws, 2, n, 2), y.reshape(draws, 2, n), strict=True):
        choice = choose_jointly(
            score,
            ChoiceRows(rows[0], labels[0]),
            ChoiceRows(rows[1], labels[1]),
            response,
            terms,
            reach_of(score, box(gain)),
        )
        truth = share_below(logit(choice.threshold) - max(gain, NORM))
        broken += truth > choice.certificate.value
        ways.add(choice.led_by)
    assert broken <= most_failures(draws, 0.05)
    assert led_by in ways
