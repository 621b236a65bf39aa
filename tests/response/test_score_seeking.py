"""People who want a higher score: exact within bounds, differentiable, honest about limits."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from countermove.errors import CostError, DataError, InfeasibleActionsError, ParameterError
from countermove.people import ActionSet, LinearCost, QuadraticCost
from countermove.response import GainResponse
from countermove.scores import LinearScore, MLPScore


@pytest.mark.parametrize("cost", ["quadratic", "weighted"])
@pytest.mark.parametrize("boxed", [False, True])
def test_nobody_finds_a_better_place(make_case, cost, boxed):
    case = make_case(cost, 0, boxed)
    response = GainResponse(case.cost, case.actions)
    found = response.respond(case.score, case.X)
    moves = found.x_new - case.X
    assert case.actions.contains(case.X, moves).all()
    gain = moves @ case.w - found.cost
    rng = np.random.default_rng(1)
    lower, upper = case.actions.box(case.X)
    for _ in range(200):
        tried = np.clip(moves + rng.normal(scale=0.3, size=moves.shape), lower, upper)
        assert (tried @ case.w - case.cost.price(0.0 * tried, tried) <= gain + 1e-12).all()
    assert np.array_equal(found.moved, (moves != 0.0).any(axis=1))


def test_a_quadratic_cost_is_the_papers_response_strength():
    """Section 6.1: x_S + epsilon w_S, everything else as it was."""
    score, X = LinearScore(3), np.arange(6.0).reshape(2, 3)
    with torch.no_grad():
        score.weight.copy_(torch.tensor([0.4, -2.0, 1.0]))
    response = GainResponse(QuadraticCost(1.0 / (2 * 0.5)), ActionSet(immutable=[1]))
    assert np.allclose(response.respond(score, X).x_new, X + 0.5 * np.array([0.4, 0.0, 1.0]))


def test_mahalanobis_people_move_along_the_solved_slope(make_case):
    case = make_case("mahalanobis", 0, False)
    found = GainResponse(case.cost, ActionSet(immutable=[2])).respond(case.score, case.X)
    moves = found.x_new - case.X
    matrix = case.cost.matrix.numpy()
    free = [0, 1, 3, 4]
    assert np.allclose(2.0 * matrix[np.ix_(free, free)] @ moves[0, free], case.w[free])
    assert np.all(moves[:, 2] == 0.0)


@pytest.mark.parametrize("boxed", [False, True])
def test_gradients_to_score_people_and_cost(make_case, boxed):
    case = make_case("quadratic", 0, boxed, n=4)
    X = torch.from_numpy(0.9 * case.X).requires_grad_()
    weight = case.score.weight.detach().clone().requires_grad_()
    scale = torch.tensor(0.8, dtype=torch.float64, requires_grad=True)

    def answer(X, weight, scale):
        score = LinearScore(5)
        del score.weight
        score.weight = weight
        response = GainResponse(QuadraticCost(scale), case.actions)
        found = response.respond(score, X)
        return found.x_new, found.cost, response.scores_after(score, X)

    assert torch.autograd.gradcheck(answer, (X, weight, scale))


def test_what_is_decided_and_said(make_case):
    case = make_case("weighted", 3, True)
    response = GainResponse(case.cost, case.actions)
    after = response.respond(case.score, case.X).x_new @ case.w + case.b
    assert np.array_equal(response.decisions_after(case.score, case.X), after >= 0.0)
    assert response.describe()["kind"] == "gain"
    scores = torch.tensor([-3.0, 4.0])
    assert torch.equal(response.worth(case.score, scores), scores)


def test_per_person_bounds_follow_the_people():
    score = LinearScore(1)
    with torch.no_grad():
        score.weight.fill_(10.0)
    response = GainResponse(QuadraticCost(1.0), ActionSet(upper=[[1.0], [2.0], [3.0]]))
    X = np.zeros((3, 1))
    assert np.allclose(response.respond(score, X).x_new[:, 0], [1.0, 2.0, 3.0])
    assert np.allclose(response.of_rows([2]).respond(score, X[:1]).x_new, 3.0)


def test_what_has_no_closed_form_is_refused():
    score, X = LinearScore(2), np.zeros((2, 2))
    with pytest.raises(CostError, match="quadratic and weighted quadratic"):
        GainResponse(LinearCost([1.0, 1.0])).respond(score, X)
    with pytest.raises(ParameterError, match="not constraints A"):
        GainResponse(actions=ActionSet(A=[[1.0, 1.0]], b=[1.0])).respond(score, X)
    with pytest.raises(DataError, match="rows 1 hold NaN"):
        GainResponse().respond(score, np.array([[0.0, 0.0], [np.nan, 0.0]]))
    bounds = ActionSet(max_value=[1.0, 1.0], upper=[0.5, 0.5], only_increase=[0])
    with pytest.raises(InfeasibleActionsError) as caught:
        GainResponse(actions=bounds).respond(score, np.array([[0.0, 0.0], [3.0, 0.0]]))
    assert caught.value.rows == (1,)


def test_a_network_is_climbed_to_where_its_own_slope_asks_for_the_move():
    """A stationary move, never worth less than staying; on a line the best of a fine grid."""
    score = MLPScore(2, hidden=(5,), dropout=0.0)
    X = np.random.default_rng(0).normal(size=(40, 2))
    cost = 0.7
    people = GainResponse(QuadraticCost(cost), ActionSet(immutable=(1,), upper=[0.2, 5.0]))
    found = people.respond(score, X)
    assert people.answers(score)
    assert found.converged.all()
    move = (found.x_new - X)[:, 0]
    assert np.array_equal(found.x_new[:, 1], X[:, 1])
    assert (move <= 0.2 + 1e-12).all()
    slope = score.gradient(torch.from_numpy(found.x_new)).numpy()[:, 0]
    assert np.allclose(move, np.minimum(slope / (2 * cost), 0.2), atol=1e-6)

    def worth(step):
        at = X + np.column_stack([step, np.zeros(len(X))])
        with torch.no_grad():
            return score(torch.from_numpy(at)).numpy() - cost * step**2

    best = np.max([worth(np.full(len(X), s)) for s in np.linspace(-1.0, 0.2, 601)], axis=0)
    assert (worth(move) >= worth(np.zeros(len(X))) - 1e-12).all()
    assert np.allclose(worth(move), best, atol=1e-4)
