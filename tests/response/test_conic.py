"""The conic path: any convex cost, loud refusals, and no trust in a solver's word."""

import numpy as np
import pytest
import torch

from countermove.errors import CostError, DataError, ParameterError
from countermove.people import ActionSet, ConicCost, MixtureCost, QuadraticCost
from countermove.response import BestResponse, ConicResponse, ScalarResponse

cp = pytest.importorskip("cvxpy")


def written_quadratic(x, x_new):
    return cp.sum_squares(x_new - x)


def scaled_quadratic(x, x_new, action, root):
    return cp.sum_squares(cp.multiply(root, action))


def written_mixture(x, x_new):
    return 0.6 * cp.pos(np.array([1.0, -1.0, 0.5, 0.2]) @ (x_new - x)) + 0.4 * cp.sum_squares(
        x_new - x
    )


@pytest.fixture
def case(make_case):
    return make_case("quadratic", 0, True, n=8, d=4)


def test_a_written_cost_gives_the_closed_form_s_response(case):
    same = ConicCost(scaled_quadratic, {"root": np.full(4, np.sqrt(0.8))})
    wanted = ScalarResponse(QuadraticCost(0.8), case.actions).respond(case.score, case.X)
    found = ConicResponse(same, case.actions).respond(case.score, case.X)
    np.testing.assert_allclose(found.x_new, wanted.x_new, atol=1e-5)
    np.testing.assert_allclose(found.cost, wanted.cost, atol=1e-5)


def test_atoms_with_hidden_bounds_are_solved_right(case):
    """MOREAU loses constant bounds on variables, as in pos(); the first-use check drops it."""
    written = ConicCost(written_mixture)
    closed = MixtureCost([1.0, -1.0, 0.5, 0.2], gamma=0.4)
    wanted = ScalarResponse(closed, case.actions).respond(case.score, case.X)
    found = ConicResponse(written, case.actions).respond(case.score, case.X)
    np.testing.assert_allclose(found.x_new, wanted.x_new, atol=1e-5)


def test_cost_parameters_get_gradients(case):
    root = torch.full((4,), 0.9, dtype=torch.float64, requires_grad=True)
    scale = torch.tensor(0.81, dtype=torch.float64, requires_grad=True)
    X = torch.from_numpy(case.X)
    conic = ConicResponse(ConicCost(scaled_quadratic, {"root": root}), case.actions)
    conic.scores_after(case.score, X).sum().backward()
    ScalarResponse(QuadraticCost(scale), case.actions).scores_after(case.score, X).sum().backward()
    # scale = root^2 for every feature.
    assert float(root.grad.sum()) == pytest.approx(2 * 0.9 * float(scale.grad), rel=1e-4)


def test_best_responses_to_a_written_cost(case):
    written = BestResponse(ConicCost(written_mixture), case.actions)
    closed = BestResponse(MixtureCost([1.0, -1.0, 0.5, 0.2], gamma=0.4), case.actions)
    found, wanted = (r.respond(case.score, case.X) for r in (written, closed))
    np.testing.assert_array_equal(found.moved, wanted.moved)
    np.testing.assert_allclose(found.cost, wanted.cost, atol=1e-5)
    assert (found.x_new[found.moved] @ case.w + case.b >= 0.0).all()
    np.testing.assert_array_equal(
        written.decisions_after(case.score, case.X), closed.decisions_after(case.score, case.X)
    )
    X = torch.from_numpy(case.X)
    for response in (written, closed):
        case.score.zero_grad()
        response.scores_after(case.score, X).sum().backward()
        response.gradient = case.score.weight.grad.clone()
    np.testing.assert_allclose(written.gradient, closed.gradient, rtol=1e-4, atol=1e-5)


def test_a_mixture_with_extra_constraints_goes_the_conic_way(case):
    actions = ActionSet(A=[[1.0, 1.0, 0.0, 0.0]], b=[0.1], lower=-np.ones(4), upper=np.ones(4))
    cost = MixtureCost([1.0, -1.0, 0.5, 0.2], gamma=0.4)
    with pytest.raises(CostError, match="ConicResponse"):
        ScalarResponse(cost, actions).respond(case.score, case.X)
    for response in (BestResponse(cost, actions), ConicResponse(cost, actions)):
        found = response.respond(case.score, case.X)
        assert actions.contains(case.X, found.x_new - case.X, tolerance=1e-6).all()


@pytest.mark.parametrize(
    ("build", "says"),
    [
        (lambda x, x_new: -cp.sum_squares(x_new - x), "not convex"),
        (lambda x, x_new: cp.sqrt(cp.sum(x_new)), "not convex"),
        (lambda x, x_new: x_new - x, "scalar"),
        (lambda x, x_new: 3.0, "scalar"),
        (lambda x, x_new: cp.quad_over_lin(x_new - x, x[0]), "not convex|not parametrisable"),
        (lambda x, x_new: cp.sum_squares(cp.multiply(x, x_new)) * cp.abs(x[0]), "DPP|convex"),
    ],
)
def test_costs_without_a_unique_response_are_refused(case, build, says):
    with pytest.raises(CostError, match=says):
        ConicResponse(ConicCost(build)).respond(case.score, case.X)


def test_nan_never_reaches_a_solver(case):
    X = case.X.copy()
    X[3, 0] = np.nan
    with pytest.raises(DataError, match="rows 3"):
        ConicResponse(QuadraticCost()).respond(case.score, X)


def test_senseless_settings_are_refused():
    for settings in ({"start": "near"}, {"gradient": "x"}, {"temperature": 0.0}):
        with pytest.raises(ParameterError):
            ConicResponse(**settings)


def test_a_cost_rescaled_to_standard_units_is_the_same_cost(case):
    unit = np.array([2.0, 0.5, 1.0, 3.0])
    written = ConicCost(written_quadratic).rescaled(unit)
    wanted = ScalarResponse(QuadraticCost().rescaled(unit), case.actions)
    np.testing.assert_allclose(
        ConicResponse(written, case.actions).respond(case.score, case.X).x_new,
        wanted.respond(case.score, case.X).x_new,
        atol=1e-5,
    )


def forced(case, rng):
    """Return bounds that allow most to stay, force some up or down, and hold some in a column."""
    lower, upper = np.full(case.X.shape, -0.4), np.full(case.X.shape, 0.5)
    pushed, column = rng.random(len(case.X)) < 0.6, rng.integers(0, 4, len(case.X))
    up = rng.random(len(case.X)) < 0.5
    who = np.arange(len(case.X))
    lower[who[pushed & up], column[pushed & up]] = 0.2
    upper[who[pushed & ~up], column[pushed & ~up]] = -0.3
    return ActionSet(lower, upper), pushed


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("rows", [False, True], ids=["box", "constraint"])
def test_whoever_may_not_stay_moves_under_a_conic_cost_as_under_the_same_in_closed_form(
    make_case, seed, rows
):
    case = make_case("quadratic", seed, True, n=30, d=4)
    actions, pushed = forced(case, np.random.default_rng(seed))
    if rows:  # everybody's first two columns have to rise by .1 together
        actions = ActionSet([-0.4] * 4, [0.5] * 4, A=[[1.0, 1.0, 0.0, 0.0]], b=[-0.1])
        pushed = np.ones(len(case.X), bool)
    written = BestResponse(ConicCost(written_quadratic), actions)
    closed = BestResponse(QuadraticCost(), actions)
    ours, wanted = (people.respond(case.score, case.X) for people in (written, closed))
    assert (wanted.moved[pushed]).all()
    np.testing.assert_array_equal(ours.moved, wanted.moved)
    np.testing.assert_allclose(ours.x_new, wanted.x_new, atol=2e-5)
    np.testing.assert_allclose(ours.cost, wanted.cost, atol=2e-5)
    assert actions.contains(case.X, ours.x_new - case.X, tolerance=1e-6).all()
    for ours, wanted in zip(
        written.crossing_and_floor(case.score, case.X),
        closed.crossing_and_floor(case.score, case.X),
        strict=True,
    ):
        np.testing.assert_allclose(ours, wanted, atol=2e-5)
    X = torch.from_numpy(case.X)
    np.testing.assert_allclose(
        written.scores_after(case.score, X).detach(),
        closed.scores_after(case.score, X).detach(),
        atol=1e-4,
    )
    decided = written.decisions_after(case.score, case.X)
    np.testing.assert_array_equal(decided, closed.decisions_after(case.score, case.X))
