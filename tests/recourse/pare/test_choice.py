"""The best threshold a promise allows, on other people."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import expit, logit

from countermove.errors import (
    CalibrationError,
    DataError,
    NotEnoughRowsError,
    ParameterError,
    UnknownNameError,
)
from countermove.people import ActionSet, QuadraticCost
from countermove.recourse import (
    ChoiceRows,
    PromiseTerms,
    calibrate_after_response,
    choose_jointly,
    choose_threshold,
    default_grid,
)
from countermove.recourse.pare import measure_after_response, missed_after_response, reach_of
from countermove.recourse.pare.choice import frontier
from countermove.response import AscentResponse, BestResponse, NoResponse, RobustResponse
from countermove.scores.base import values

GRID = expit(np.linspace(-4.0, 2.0, 25))
RESPONSE = BestResponse(QuadraticCost(1.0))


def test_people_respond_again_at_every_threshold(score, crowd):
    """Rational people reach √2.5 points: the rule after response is a rule so much lower."""
    X, y = crowd
    moved = measure_after_response(score, X, y, RESPONSE, GRID)
    lower = expit(logit(GRID) - np.sqrt(2.5))
    still = measure_after_response(score, X, y, NoResponse(), lower)
    assert moved.accuracy == pytest.approx(still.accuracy)
    assert moved.approved == pytest.approx(still.approved)


def test_people_who_climb_are_followed_once_per_threshold_and_at_few(score, crowd, monkeypatch):
    X, y = crowd
    climbed, solve = [], AscentResponse.solve

    def counted(self, rule, rows, starts=None):
        climbed.append(len(rows))
        return solve(self, rule, rows, starts)

    monkeypatch.setattr(AscentResponse, "solve", counted)
    parts = [
        ChoiceRows(X[part], y[part], np.arange(len(y))[part])
        for part in (slice(0, 80), slice(80, 150))
    ]
    people = AscentResponse(QuadraticCost(1.0), random_starts=0)
    reach = reach_of(score, ActionSet())
    found = choose_jointly(score, *parts, people, PromiseTerms(miss_rate=0.1), reach)
    thresholds = len(found.promise.thresholds)
    assert thresholds <= 13
    assert climbed.count(80) == thresholds
    missed = missed_after_response(score, X[:80], people, GRID[:3], reach=reach)
    refused = [~people.decisions_after(score.at_threshold(float(p)), X[:80]) for p in GRID[:3]]
    beyond = [reach(people.respond(score.at_threshold(float(p)), X[:80]).x_new) for p in GRID[:3]]
    expected = np.stack(refused) & (np.stack(beyond) < logit(GRID[:3])[:, None])
    assert np.array_equal(missed, expected)


def test_measures_are_what_they_say(score, crowd):
    from sklearn.metrics import accuracy_score, f1_score

    X, y = crowd
    found = measure_after_response(score, X, y, NoResponse(), [0.5], loss=3.0)
    decided = np.where(X @ [1.0, 0.5] >= 0, 1, -1)
    assert found.accuracy[0] == accuracy_score(y, decided)
    assert found.f1[0] == pytest.approx(f1_score(y, decided))
    approved = decided > 0
    assert found.utility[0] == pytest.approx(np.mean(approved * np.where(y > 0, 1.0, -3.0)))


@pytest.mark.parametrize("measure", ["accuracy", "f1", "utility"])
def test_best_of_the_allowed_wins(score, crowd, measure):
    X, y = crowd
    chosen = choose_threshold(score, X, y, RESPONSE, GRID[:12], measure)
    values = getattr(measure_after_response(score, X, y, RESPONSE, GRID[:12]), measure)
    assert chosen.value == values.max()
    assert values[GRID[:12] == chosen.threshold] == values.max()


def test_only_thresholds_before_the_first_failure_are_chosen(score, half, crowd):
    X, y = crowd
    promise = calibrate_after_response(score, X[:200], RESPONSE, GRID, actions=half)
    chosen = choose_threshold(score, X[200:], y[200:], RESPONSE, promise)
    assert chosen.threshold in promise.allowed
    free = choose_threshold(score, X[200:], y[200:], RESPONSE, GRID)
    assert free.threshold not in promise.allowed
    assert free.value > chosen.value
    nothing = calibrate_after_response(score, X[:200], RESPONSE, [0.9], actions=half)
    with pytest.raises(CalibrationError, match="no threshold keeps the promise"):
        choose_threshold(score, X[200:], y[200:], RESPONSE, nothing)


def test_among_equals_the_nearest_to_the_wanted_one(score, crowd):
    X, y = crowd
    tolerant = choose_threshold(score, X, y, RESPONSE, GRID, wanted=0.3, tolerance=1.0)
    assert tolerant.threshold == GRID[np.argmin(np.abs(logit(GRID) - logit(0.3)))]


def test_robust_choice_counts_the_worst_member(score, crowd):
    X, y = crowd
    members = [RESPONSE, NoResponse()]
    joined = measure_after_response(score, X, y, RobustResponse(members), GRID)
    alone = [measure_after_response(score, X, y, m, GRID).accuracy for m in members]
    assert joined.accuracy == pytest.approx(np.minimum(*alone))


def test_default_grid_rises_from_everybody_to_the_wanted_threshold(score, crowd):
    X, _ = crowd
    grid = default_grid(score, X, 0.5)
    assert (np.diff(grid) > 0).all()
    lowest = (X @ [1.0, 0.5]).min()
    assert logit(grid[:3]) == pytest.approx([2 * lowest, 1.5 * lowest, lowest])
    assert grid[-1] == 0.5
    assert measure_after_response(score, X, crowd[1], NoResponse(), grid).approved[2] == 1.0
    assert default_grid(score, X[:1] + 50.0, 0.5).tolist() == [0.5]
    with pytest.raises(NotEnoughRowsError, match="at least one selection row"):
        default_grid(score, X[:0], 0.5)


@pytest.mark.parametrize("extreme", [-400.0, -1e4, -1e300])
def test_an_extreme_person_does_not_void_the_thresholds_below_everybody_else(
    score, half, crowd, extreme
):
    """With as few rows as a promise needs, the first threshold must not miss anybody."""
    X, y = crowd
    chosen_on, y_chosen, held = X[:240], y[:240], X[240:]
    wild = chosen_on.copy()
    wild[0] = [extreme, 0.0]
    grid = default_grid(score, wild, 0.5)
    others = values(score, chosen_on)
    assert (logit(grid) < others.min() - 1.0).sum() >= 2
    assert (grid > 0.0).all()
    found = calibrate_after_response(score, held, NoResponse(), grid, actions=half)
    assert found.passed[0]
    # Everybody else's thresholds are where they were, up to a rank.
    plain = default_grid(score, chosen_on, 0.5)
    assert np.max(np.abs(logit(grid[5:]) - logit(plain[-len(grid) + 5 :]))) < 0.5
    best = choose_threshold(score, wild, y_chosen, NoResponse(), found)
    assert best.threshold in found.allowed


def test_frontier_needs_the_same_thresholds(score, half, crowd):
    X, y = crowd
    promise = calibrate_after_response(score, X, RESPONSE, GRID[::-1], actions=half)
    table = frontier(promise, measure_after_response(score, X, y, RESPONSE, GRID))
    assert table["threshold"].tolist() == GRID.tolist()
    assert table["miss_share"].is_monotonic_increasing
    with pytest.raises(DataError, match="same thresholds"):
        frontier(promise, measure_after_response(score, X, y, RESPONSE, GRID[1:]))


def test_bad_choices_are_refused(score, crowd):
    X, y = crowd
    with pytest.raises(UnknownNameError, match="did you mean 'accuracy'"):
        choose_threshold(score, X, y, RESPONSE, GRID, "acuracy")
    with pytest.raises(ParameterError, match="wanted"):
        choose_threshold(score, X, y, RESPONSE, GRID, wanted=1.5)
    with pytest.raises(DataError, match="as many labels"):
        choose_threshold(score, X, y[1:], RESPONSE, GRID)
    with pytest.raises(NotEnoughRowsError):
        choose_threshold(score, X[:0], y[:0], RESPONSE, GRID)
    with pytest.raises(ParameterError, match="loss"):
        choose_threshold(score, X, y, RESPONSE, GRID, loss=-1.0)
    with pytest.raises(DataError, match="ids b"):
        choose_threshold(score, X, y, RESPONSE, GRID, ids=["a", "b"], calibrated_on=["b", "c"])


def test_promise_gives_way_only_where_it_costs_too_much(score, half, crowd):
    X, y = crowd
    held, other = ChoiceRows(X[:150], y[:150]), ChoiceRows(X[150:], y[150:])
    reach = reach_of(score, half)

    def chosen(**terms):
        return choose_jointly(
            score, held, other, RESPONSE, PromiseTerms(grid=tuple(GRID), **terms), reach
        )

    costly, mild = chosen(), chosen(largest_loss=0.05)
    assert (costly.led_by, mild.led_by) == ("promise", "performance")
    assert costly.certificate.value == 0.05 < mild.certificate.value
    best = mild.measured.accuracy.max()
    place = np.flatnonzero(mild.measured.thresholds == mild.threshold)[0]
    assert mild.measured.accuracy[place] >= best - 0.05 > mild.measured.accuracy[place - 1]
    assert chosen(largest_loss=0.9).led_by == "promise"


@pytest.mark.parametrize("terms", [{"threshold": 1.0}, {"miss_rate": 0.0}, {"largest_loss": 2.0}])
def test_terms_that_make_no_sense_are_refused(terms):
    with pytest.raises(ParameterError, match=next(iter(terms))):
        PromiseTerms(**terms)
