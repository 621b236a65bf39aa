"""Units: raw rows and standardised rows are the same people, and nothing converts twice."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from countermove.errors import CostError, ParameterError
from countermove.people import (
    ActionSet,
    ConicCost,
    Cost,
    LinearCost,
    MahalanobisCost,
    MixtureCost,
    QuadraticCost,
    WeightedQuadraticCost,
    cost_from_description,
)
from countermove.people.cost_boxes import CostBox
from countermove.response import BestResponse, ConicResponse, ScalarResponse
from countermove.scores import LinearScore

D = 3
SCALE, MEAN = np.array([250.0, 0.4, 3.0]), np.array([1000.0, 2.0, -5.0])
WEIGHT, BIAS = np.array([0.004, 1.5, -0.2]), -8.5
SQUARE = np.linalg.inv(np.diag(SCALE) @ (np.eye(D) + 0.3) @ np.diag(SCALE))
CLOSED = {
    "quadratic": lambda units: QuadraticCost(0.05, units=units),
    "weighted": lambda units: WeightedQuadraticCost([2e-5, 4.0, 0.1], units=units),
    "mahalanobis": lambda units: MahalanobisCost(SQUARE, units=units),
    "linear": lambda units: LinearCost([0.003, 1.0, -0.2], units=units),
    "mixture": lambda units: MixtureCost([0.003, 1.0, 0.1], 0.3, 1.5, [2e-5, 4.0, 0.1], units),
}
every_cost = pytest.mark.parametrize("make", CLOSED.values(), ids=CLOSED.keys())
ACTIONS = {
    "lower": [-500.0, -1.0, -4.0],
    "upper": [400.0, 0.8, 6.0],
    "min_value": [100.0, 0.2, -30.0],
    "max_value": [1900.0, 3.5, 20.0],
    "only_increase": [1],
}
A, b = np.array([[0.002, 1.0, 0.1]]), np.array([0.7])


def rows(n: int = 60) -> np.ndarray:
    X = np.random.default_rng(1).normal(MEAN, SCALE, size=(n, D))
    return X.clip([150.0, 0.3, -29.0], [1850.0, 3.4, 19.0])


def score(weight: np.ndarray, bias: float) -> LinearScore:
    made = LinearScore(D)
    made.load_state_dict({"weight": torch.tensor(weight), "bias": torch.tensor(bias).double()})
    return made


RAW, STANDARD = score(WEIGHT, BIAS), score(WEIGHT * SCALE, float(BIAS + WEIGHT @ MEAN))


def both(make, constrained: bool):
    """Return cost and actions as raw rows read them, and converted to standardised ones."""
    extra = {"A": A, "b": b} if constrained else {}
    plain = make("standardised"), ActionSet(**ACTIONS, **extra)
    stated = make("original"), ActionSet(**ACTIONS, **extra, units="original")
    return plain, tuple(one.standardised(MEAN, SCALE) for one in stated)


# A kink beside constraints is left to the conic solver, whose tolerance is 1e-5.
SMOOTH = ("quadratic", "weighted", "mahalanobis")


@pytest.mark.parametrize(
    ("kind", "constrained"), [(k, False) for k in CLOSED] + [(k, True) for k in SMOOTH]
)
def test_rational_people_move_alike_in_both_units(kind, constrained):
    make = CLOSED[kind]
    raw, standard = both(make, constrained)
    X = rows()
    here = BestResponse(*raw).respond(RAW, X)
    there = BestResponse(*standard).respond(STANDARD, (X - MEAN) / SCALE)
    assert here.moved.any()
    np.testing.assert_array_equal(here.moved, there.moved)
    np.testing.assert_allclose(there.x_new * SCALE + MEAN, here.x_new, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(there.cost, here.cost, rtol=1e-9, atol=1e-9)


@every_cost
def test_smoothed_people_move_alike_in_both_units(make):
    raw, standard = both(make, False)
    X = rows()
    # The temperature is a distance; a distance along the score is rescaled like its slope.
    ratio = float(np.linalg.norm(WEIGHT * SCALE) / np.linalg.norm(WEIGHT))
    here = ScalarResponse(*raw, temperature=0.5 * ratio).respond(RAW, X)
    there = ScalarResponse(*standard, temperature=0.5).respond(STANDARD, (X - MEAN) / SCALE)
    assert here.moved.any()
    move, expected = (there.x_new * SCALE + MEAN - X) / SCALE, (here.x_new - X) / SCALE
    np.testing.assert_allclose(move, expected, atol=1e-9)


LEVEL = 1300.0


def beyond(x, x_new, action):
    """A price that depends on where people stand: beyond a level feature 0 costs extra."""
    import cvxpy as cp

    weights = np.array([0.004, 2.0, 0.3])
    return cp.sum_squares(cp.multiply(weights, action)) + 0.001 * cp.pos(x_new[0] - LEVEL)


def test_a_conic_cost_sees_rows_as_the_table_has_them():
    X = np.minimum(rows(12), [LEVEL, np.inf, np.inf])
    actions = ActionSet(**ACTIONS, units="original").standardised(MEAN, SCALE)
    cost = ConicCost(beyond, units="original").standardised(MEAN, SCALE)
    there = ConicResponse(cost, actions).respond(STANDARD, (X - MEAN) / SCALE)
    ratio = float(np.linalg.norm(WEIGHT * SCALE) / np.linalg.norm(WEIGHT))
    here = ConicResponse(ConicCost(beyond), ActionSet(**ACTIONS), temperature=0.5 * ratio)
    found = there.x_new * SCALE + MEAN
    np.testing.assert_allclose((found - here.respond(RAW, X).x_new) / SCALE, 0.0, atol=1e-4)
    assert there.moved.any()
    assert (found[:, 0] > LEVEL + 1.0).any()


@every_cost
def test_converting_is_done_once(make):
    stated = make("original")
    once = stated.standardised(MEAN, SCALE)
    assert once.units == "standardised"
    assert once.standardised(MEAN, SCALE) is once
    usual = make("standardised")
    assert usual.standardised(MEAN, SCALE) is usual
    np.testing.assert_allclose(
        once.price(np.zeros((1, D)), np.ones((1, D))),
        usual.price(np.zeros((1, D)), SCALE[None, :]),
        rtol=1e-12,
    )


@every_cost
def test_units_survive_descriptions_and_multiples(make):
    stated = make("original")
    assert stated.describe()["units"] == "original"
    assert "units" not in make("standardised").describe()
    again = cost_from_description(stated.describe())
    for cost in (again, stated.times(2.0).times(0.5)):
        assert cost.describe() == stated.describe()


def test_a_cost_of_one_is_one_standard_deviation():
    per_unit = WeightedQuadraticCost(1.0 / SCALE**2, units="original").standardised(MEAN, SCALE)
    move = np.eye(D)
    np.testing.assert_allclose(per_unit.price(np.zeros((D, D)), move), 1.0, rtol=1e-12)
    np.testing.assert_allclose(QuadraticCost(1.0).price(np.zeros((D, D)), move), 1.0, rtol=1e-12)


def test_a_gradient_passes_through_the_conversion():
    scale = torch.tensor(0.7, dtype=torch.float64, requires_grad=True)
    cost = QuadraticCost(scale, units="original").standardised(MEAN, SCALE)
    cost.price(torch.zeros(1, D).double(), torch.ones(1, D).double()).sum().backward()
    assert float(scale.grad) == pytest.approx(float((SCALE**2).sum()))


@every_cost
@pytest.mark.parametrize("response", [BestResponse, ScalarResponse, ConicResponse])
def test_a_cost_that_was_not_converted_is_refused(make, response):
    people = response(make("original"), ActionSet(lower=[-1.0] * D, upper=[1.0] * D))
    for use in (people.respond, people.decisions_after):
        with pytest.raises(CostError, match=r"units='original'.*standardised\(mean, scale\)"):
            use(STANDARD, np.zeros((2, D)))
    with pytest.raises(CostError, match="columns' own units"):
        people.cost.price(np.zeros((2, D)), np.ones((2, D)))


def test_a_conic_cost_that_was_not_converted_is_refused():
    with pytest.raises(CostError, match="units='original'"):
        ConicResponse(ConicCost(beyond, units="original")).respond(STANDARD, np.zeros((2, D)))


@pytest.mark.parametrize("response", [BestResponse, ScalarResponse, ConicResponse])
def test_actions_that_were_not_converted_are_refused(response):
    people = response(QuadraticCost(), ActionSet(**ACTIONS, units="original"))
    with pytest.raises(ParameterError, match=r"ActionSet is in the columns' own units"):
        people.respond(STANDARD, np.zeros((2, D)))


def test_a_set_is_converted_once_and_keeps_its_people():
    own = ActionSet(upper=np.abs(rows(4)), A=A, b=b, units="original")
    once = own.standardised(MEAN, SCALE)
    np.testing.assert_allclose(once.upper, np.abs(rows(4)) / SCALE)
    np.testing.assert_allclose(once.A, A * SCALE)
    assert once.standardised(MEAN, SCALE) is once
    assert ActionSet(**own.describe()).units == own.of_rows([1, 2]).units == "original"
    assert "units" not in once.describe()


def test_bounds_given_standardised_stay_and_whole_steps_are_of_the_column():
    given = ActionSet(lower=[-1.0, -1.0, -1.0], integer=[2], units="standardised")
    known = given.standardised(MEAN, SCALE)
    np.testing.assert_array_equal(known.lower, given.lower)
    X = np.zeros((1, D))
    assert known.contains(X, np.array([[0.0, 0.0, 1.0 / SCALE[2]]])).all()
    assert not known.contains(X, np.array([[0.0, 0.0, 0.5]])).any()
    assert known.standardised(MEAN, SCALE) is known


class Own(Cost):
    """A user's cost that says nothing about units."""

    kind = "own"

    def canonical(self, n_features):
        return None

    def rescaled(self, scale):
        raise NotImplementedError("stated in standardised units")

    def describe(self):
        return {"kind": self.kind}


def test_a_cost_of_the_users_own_is_standardised_unless_it_says_otherwise():
    cost = Own()
    assert cost.standardised(MEAN, SCALE) is cost


@pytest.mark.parametrize(
    ("use", "says"),
    [
        (lambda: QuadraticCost(units="metres"), "units is 'metres'; known: original, standard"),
        (lambda: ActionSet(units="raw"), "units is 'raw'"),
        (lambda: QuadraticCost(units="original").standardised(MEAN, -SCALE), "scale positive"),
        (lambda: QuadraticCost(units="original").standardised(MEAN[:2], SCALE), "one number per"),
        (lambda: ActionSet(units="original").standardised(MEAN, SCALE * np.nan), "finite"),
        (lambda: ActionSet(lower=[0.0]).standardised(MEAN, SCALE), "1 features .* have 3"),
        (
            lambda: CostBox(QuadraticCost(units="original"), "scale", 0.5, 2.0),
            "box holds standardised coefficients",
        ),
    ],
)
def test_senseless_units_are_refused(use, says):
    with pytest.raises(ParameterError, match=says):
        use()
