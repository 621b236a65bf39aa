"""Newton's method ends at the optimum, and says so when it does not."""

import numpy as np
import pytest

from countermove import ActionSet, StrategicClassifier
from countermove.training.newton import Derivatives, NewtonRun, minimise


def quadratic(matrix, centre):
    def function(point):
        off = point - centre
        return Derivatives(0.5 * off @ matrix @ off, matrix @ off, matrix)

    return function


def test_a_quadratic_takes_one_step_from_anywhere():
    matrix, centre = np.array([[2.0, 0.5], [0.5, 1.0]]), np.array([1.0, -2.0])
    found = minimise(quadratic(matrix, centre), np.array([0.3, 0.1]))
    assert found.converged
    assert found.steps == 1
    np.testing.assert_allclose(found.point, centre, atol=1e-12)


def test_a_saddle_is_left_downhill():
    """x^4/4 - x^2/2 + y^2/2: plain Newton would go to the saddle at the origin."""

    def function(point):
        x, y = point
        value = 0.25 * x**4 - 0.5 * x**2 + 0.5 * y**2
        hessian = np.diag([3.0 * x**2 - 1.0, 1.0])
        return Derivatives(value, np.array([x**3 - x, y]), hessian)

    found = minimise(function, np.array([0.1, 1.0]))
    assert found.converged
    np.testing.assert_allclose(found.point, [1.0, 0.0], atol=1e-7)


def test_curvature_that_is_not_known_is_learned_from_gradients():
    """Of Rosenbrock's valley only a sphere is known."""

    def function(point):
        x, y = point
        value = (1.0 - x) ** 2 + 5.0 * (y - x * x) ** 2
        gradient = np.array([-2.0 * (1.0 - x) - 20.0 * x * (y - x * x), 10.0 * (y - x * x)])
        return Derivatives(value, gradient, np.eye(2), exact=False)

    found = minimise(function, np.array([-0.5, 0.5]))
    assert found.converged
    assert found.steps < 60
    np.testing.assert_allclose(found.point, [1.0, 1.0], atol=1e-6)


def test_a_kink_ends_the_descent_and_is_named():
    def function(point):
        return Derivatives(abs(point[0]), np.sign(point) + (point == 0.0), np.eye(1))

    found = minimise(function, np.array([0.7]))
    assert not found.converged
    assert "kink" in found.ended


def test_a_kink_is_not_looked_at_ever_more_closely():
    """At (0.8, 0.8) the slope in x jumps over zero; halving 40 times took 371 trials."""
    tried = []

    def function(point):
        tried.append(point)
        x, y = point
        value = 0.5 * (x - 1.0) ** 2 + 0.5 * (y - x) ** 2 + 0.3 * abs(x - 0.8)
        gradient = np.array([x - 1.0 + 0.3 * np.sign(x - 0.8) + x - y, y - x])
        return Derivatives(value, gradient, np.array([[2.0, -1.0], [-1.0, 1.0]]))

    found = minimise(function, np.array([-0.7, 0.3]))
    assert "kink" in found.ended
    np.testing.assert_allclose(found.at.value, 0.02, atol=1e-9)
    assert len(tried) < 200


def test_too_few_steps_are_named_with_the_gradient():
    found = minimise(
        lambda p: Derivatives(p[0] ** 4, 4 * p**3, np.diag(12 * p**2)), np.ones(1), max_steps=3
    )
    assert not found.converged
    assert "stopped after 3 steps, gradient" in found.ended


def test_sums_and_multiples_keep_what_is_known():
    one = Derivatives(1.0, np.ones(2), np.eye(2))
    part = Derivatives(2.0, np.ones(2), np.eye(2), exact=False)
    both = one + part * 0.5
    assert both.value == pytest.approx(2.0)
    np.testing.assert_allclose(both.hessian, 1.5 * np.eye(2))
    assert not both.exact


@pytest.mark.parametrize("steps", [5, 22, 25, 27])
def test_a_descent_that_stalls_ends_after_a_stop_where_it_would_have_ended(
    tmp_path, monkeypatch, steps
):
    """Jumps of the response let its loss fall by ever less: the last eight steps decide."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3))
    y = X @ [1.0, 0.5, -0.5] + rng.normal(size=60) > 0.0
    box = ActionSet(lower=[-0.5] * 3, upper=[0.3] * 3)
    rule = {"response": ["none", "best"], "actions": box, "selection": "none"}
    straight = StrategicClassifier(**rule).fit(X, y)
    assert straight.history_.ended.startswith("stopped where further steps do not lower the loss")
    file = tmp_path / "run.checkpoint"
    step, done = NewtonRun.step, []

    def until_the_power_is_cut(run):
        done.append(run)
        if len(done) > steps:
            raise KeyboardInterrupt
        step(run)

    with monkeypatch.context() as patched:
        patched.setattr(NewtonRun, "step", until_the_power_is_cut)
        with pytest.raises(KeyboardInterrupt):
            StrategicClassifier(**rule).fit(X, y, checkpoint=file)
    resumed = StrategicClassifier(**rule).fit(X, y, checkpoint=file)
    np.testing.assert_array_equal(resumed.coef_, straight.coef_)
    assert len(resumed.history_) == len(straight.history_)
    assert resumed.history_.ended == straight.history_.ended
