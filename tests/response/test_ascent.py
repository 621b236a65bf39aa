"""People who climb: exact where that is known, differentiable, and honest about the rest."""

import numpy as np
import pytest
import torch

from countermove.errors import (
    CostError,
    DataError,
    NotConvergedError,
    ParameterError,
    UnboundedResponseError,
)
from countermove.people import (
    ActionSet,
    ConicCost,
    LinearCost,
    MahalanobisCost,
    MixtureCost,
    QuadraticCost,
    WeightedQuadraticCost,
)
from countermove.response import AscentResponse, ScalarResponse
from countermove.scores import LinearScore, MLPScore, PartlyLinearScore

BOX = ActionSet(
    lower=np.full(4, -0.3), upper=np.full(4, 0.4), min_value=np.full(4, -2.5),
    max_value=np.full(4, 2.2), only_increase=[0], immutable=[2],
)  # fmt: skip
COSTS = {
    "quadratic": QuadraticCost(1.0),
    "weighted": WeightedQuadraticCost([0.5, 1.0, 2.0, 1.5]),
    "mahalanobis": MahalanobisCost(np.eye(4) + 0.2),
    "mixture": MixtureCost([1.0, -0.5, 0.2, 0.3], 0.3),
}


def people(n: int = 40, d: int = 4, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(n, d)).clip(-2.0, 2.0)


def network(d: int = 4, hidden=(8,), dropout: float = 0.0) -> MLPScore:
    """A network bent enough that people have several maxima."""
    score = MLPScore(d, hidden, dropout=dropout, generator=torch.Generator().manual_seed(1))
    with torch.no_grad():
        score.weight.mul_(6.0)
        score.weights[0].mul_(2.0)
        score.bias.fill_(-0.5)
    return score


@pytest.mark.parametrize("name", ["quadratic", "weighted", "mahalanobis", "mixture", "linear"])
@pytest.mark.parametrize("boxed", [False, True])
def test_on_a_linear_score_it_is_the_exact_response(make_case, name, boxed):
    case = make_case(name, 0, boxed)
    climbed = AscentResponse(case.cost, case.actions).respond(case.score, case.X)
    exact = ScalarResponse(case.cost, case.actions).respond(case.score, case.X)
    assert climbed.converged.all()
    assert np.abs(climbed.x_new - exact.x_new).max() < 1e-6
    assert np.abs(climbed.cost - exact.cost).max() < 1e-6


@pytest.mark.parametrize(
    ("name", "actions"),
    [
        pytest.param("quadratic", None, id="quadratic, free"),
        pytest.param("mahalanobis", BOX, id="mahalanobis, boxed"),
        pytest.param("mixture", BOX, id="mixture, boxed", marks=pytest.mark.slow),
        pytest.param("mixture", None, id="mixture, free", marks=pytest.mark.slow),
        pytest.param("weighted", BOX, id="weighted, boxed", marks=pytest.mark.slow),
        pytest.param("mahalanobis", None, id="mahalanobis, free", marks=pytest.mark.slow),
    ],
)
def test_gradients_are_those_of_finite_differences(name, actions):
    """Through the score's parameters, through N and through X; people who are not on the edge."""
    X, score = people(), network()
    response = AscentResponse(COSTS[name], actions, tolerance=1e-9)
    rows = torch.from_numpy(X).requires_grad_()
    rng, step = np.random.default_rng(5), 1e-6
    push = rng.normal(size=X.shape)
    found = torch.autograd.grad(response.scores_after(score, rows).sum(), [rows])[0].numpy()
    numeric = (
        after(response, score, X + step * push) - after(response, score, X - step * push)
    ) / (2.0 * step)
    assert_derivatives((found * push).sum(axis=1), numeric)
    for parameter in score.parameters():
        wanted = torch.from_numpy(np.asarray(rng.normal(size=parameter.shape)))
        analytic = jacobian_along(response, score, X, parameter, wanted)
        values = []
        for sign in (1.0, -1.0):
            with torch.no_grad():
                parameter.add_(sign * step * wanted)
            values.append(after(response, score, X))
            with torch.no_grad():
                parameter.sub_(sign * step * wanted)
        assert_derivatives(analytic, (values[0] - values[1]) / (2.0 * step))


def after(response, score, X) -> np.ndarray:
    with torch.no_grad():
        return response.scores_after(score, torch.from_numpy(X)).numpy()


def jacobian_along(response, score, X, parameter, direction) -> np.ndarray:
    """Return the derivative of everybody's score after response along one direction."""
    scores = response.scores_after(score, torch.from_numpy(X))
    weights = torch.zeros_like(scores).requires_grad_()
    (gradient,) = torch.autograd.grad(scores, parameter, weights, create_graph=True)
    (derivative,) = torch.autograd.grad((gradient * direction).sum(), weights)
    return derivative.numpy()


def assert_derivatives(found, numeric) -> None:
    """All but the few people whose set of active bounds changes within the difference."""
    wrong = ~np.isclose(found, numeric, rtol=1e-4, atol=1e-5)
    assert wrong.sum() <= 1, (found[wrong], numeric[wrong])


def test_the_cost_gets_its_gradient_too():
    X, score = people(), network()
    scale = torch.tensor(0.8, dtype=torch.float64, requires_grad=True)
    total = AscentResponse(QuadraticCost(scale)).scores_after(score, torch.from_numpy(X)).sum()
    (found,) = torch.autograd.grad(total, scale)
    values = [after(AscentResponse(QuadraticCost(s)), score, X).sum() for s in (0.80001, 0.79999)]
    assert found.item() == pytest.approx((values[0] - values[1]) / 2e-5, rel=1e-4)


@pytest.mark.parametrize("name", COSTS)
def test_responses_are_allowed_and_worth_the_move(name):
    X, score = people(), network()
    response = AscentResponse(COSTS[name], BOX)
    answer = response.respond(score, X)
    assert answer.converged.all()
    assert BOX.contains(X, answer.x_new - X).all()
    assert (response.utility(score, X, answer.x_new) >= response.utility(score, X, X)).all()


def test_rescaling_the_score_changes_nobodys_response():
    X, score, loud = people(), network(), network()
    with torch.no_grad():
        loud.weight.mul_(50.0)
        loud.bias.mul_(50.0)
    response = AscentResponse()
    quiet_places, loud_places = (response.respond(s, X).x_new for s in (score, loud))
    assert np.allclose(quiet_places, loud_places, atol=1e-6)


def test_nobody_depends_on_the_others():
    X, score = people(), network()
    response = AscentResponse(COSTS["mixture"], BOX)
    together = response.respond(score, X).x_new
    alone = np.vstack([response.respond(score, X[i : i + 1]).x_new for i in range(10)])
    assert np.allclose(together[:10], alone, atol=1e-9)


def test_training_noise_is_off_for_people_and_on_for_the_loss():
    X, score = torch.from_numpy(people()), network(dropout=0.5)
    response = AscentResponse()
    calm = response.respond(score, X).x_new.detach()
    score.train()
    noisy = response.respond(score, X).x_new.detach()
    assert torch.equal(calm, noisy)
    assert score.training
    assert not torch.equal(response.scores_after(score, X), response.scores_after(score, X))


def test_the_gap_is_exact_for_scores_with_a_slope(make_case):
    case = make_case("weighted", 0, True)
    gap = AscentResponse(case.cost, case.actions).optimality_gap(case.score, case.X)
    assert (gap.against, gap.exact) == ("exact", True)
    assert gap.worst < 1e-9
    assert gap.share == 0.0


@pytest.mark.slow
def test_the_gap_sees_what_a_single_start_misses():
    """Two bumps: who starts on the slope of the low one finds the high one only by other starts."""
    X, score = people(60, 2), network(2, (16,))
    with torch.no_grad():
        score.weights[0].mul_(2.0)
    full = AscentResponse(temperature=0.2)
    measured = full.optimality_gap(score, X)
    assert (measured.against, measured.exact) == ("grid", False)
    one = AscentResponse(temperature=0.2)
    one.solve = lambda s, rows, starts=None: full.solve(
        s, rows, torch.zeros(1, len(rows), 2, dtype=torch.float64) if starts is None else starts
    )
    lazy = one.optimality_gap(score, X)
    assert lazy.worst > 0.1
    assert measured.worst <= lazy.worst
    assert measured.share < lazy.share


def test_in_many_dimensions_the_gap_is_against_more_starts():
    X, score = people(20, 5), network(5)
    gap = AscentResponse().optimality_gap(score, X, starts=20)
    assert gap.against == "starts"
    assert not gap.exact
    assert (gap.gap >= 0.0).all()


def test_what_a_score_holds_fixed_stays():
    X = people()
    score = PartlyLinearScore(4, [0, 1], generator=torch.Generator().manual_seed(0))
    moved = AscentResponse().respond(score, X).x_new - X
    exact = ScalarResponse().respond(score, X).x_new - X
    assert np.array_equal(moved[:, 2:], np.zeros((40, 2)))
    assert np.abs(moved - exact).max() < 1e-6


def test_too_few_iterations_are_said():
    X, score = people(), network()
    hurried = AscentResponse(max_iterations=1)
    masked = hurried.respond(score, X, on_failure="mask")
    assert not masked.converged.all()
    with pytest.raises(NotConvergedError) as caught:
        hurried.respond(score, X)
    assert caught.value.rows == tuple(np.flatnonzero(~masked.converged))
    with pytest.raises(NotConvergedError):
        hurried.scores_after(score, torch.from_numpy(X))


def test_what_cannot_be_climbed_is_refused():
    score, X = network(), people()
    with pytest.raises(ParameterError, match="inside a box"):
        AscentResponse(actions=ActionSet(A=np.ones((1, 4)), b=[1.0]))
    with pytest.raises(CostError, match="closed form"):
        AscentResponse(ConicCost(lambda x, x_new: x_new)).respond(score, X)
    with pytest.raises(UnboundedResponseError, match="without end"):
        AscentResponse(LinearCost([1.0, 1.0, 1.0, 1.0])).respond(score, X)
    with pytest.raises(DataError, match="NaN"):
        AscentResponse().respond(score, np.full((2, 4), np.nan))
    with pytest.raises(ParameterError, match="reference"):
        AscentResponse(reference=np.zeros((3, 2))).respond(score, X)
    for wrong in (-1, 1.5, True):
        with pytest.raises(ParameterError, match="random_starts"):
            AscentResponse(random_starts=wrong)


def test_a_score_nobody_can_raise_leaves_everybody_where_they_are():
    X = people()
    answer = AscentResponse().respond(LinearScore(4), X)
    assert np.array_equal(answer.x_new, X)
    assert not answer.moved.any()
