"""Prop. D.1 and its example; reweighted training finds the best deployed threshold."""

from __future__ import annotations

import numpy as np
import pytest

from countermove.errors import DataError, ParameterError
from countermove.transfer.minimise_weighted import product_convexity, reweighted_erm
from countermove.transfer.uniform_response import UniformResponse

H = np.linspace(0.0, 1.0, 201)


def test_the_example_of_the_paper_is_not_convex():
    """At a fixed person of label 1: w = 2h, loss (h - 1)^2 / 2, product h (h - 1)^2."""
    found = product_convexity(H, 2.0 * H, 0.5 * (H - 1.0) ** 2)
    assert (found.not_negative, found.convex_weight, found.convex_loss) == (True, True, True)
    assert not found.same_direction
    assert not found.guaranteed
    assert not found.product_convex


def test_for_label_zero_the_conditions_hold_and_the_product_is_convex():
    found = product_convexity(H, 2.0 * H, 0.5 * H**2)
    assert found.guaranteed
    assert found.product_convex


def test_the_proposition_needs_values_that_are_not_negative():
    """w = h^2 and loss h^2 - 1 satisfy everything that is printed; h^4 - h^2 is not convex."""
    line = np.linspace(-1.0, 1.0, 201)
    found = product_convexity(line, line**2, line**2 - 1.0)
    assert found.convex_weight
    assert found.convex_loss
    assert found.same_direction
    assert not found.not_negative
    assert not found.product_convex
    assert not found.guaranteed


def test_what_is_guaranteed_is_convex():
    rng, line, guaranteed = np.random.default_rng(0), np.linspace(-1.0, 1.0, 81), 0
    for _ in range(400):
        a, b = rng.uniform(-1.0, 1.0, 2)
        if rng.random() < 0.5:  # the same valley, so often the same direction
            b = a
        weight = rng.uniform(0, 2) * (line - a) ** 2 + rng.uniform(0, 1)
        loss = rng.uniform(0, 2) * np.abs(line - b) ** rng.choice([1.0, 2.0, 3.0])
        found = product_convexity(line, weight, loss)
        guaranteed += found.guaranteed
        assert found.product_convex or not found.guaranteed
    assert guaranteed > 100


def test_h_of_x_equal_x_is_not_the_least_squares_line():
    """The paper calls it the minimiser; it is 9/8 x through 0, and has slope 3/2 with intercept."""
    x = (np.arange(20_000) + 0.5) / 20_000
    y = (x >= 0.5).astype(float)
    assert np.sum(x * y) / np.sum(x * x) == pytest.approx(9.0 / 8.0, abs=1e-4)
    assert np.polyfit(x, y, 1)[0] == pytest.approx(1.5, abs=1e-4)


def test_reweighting_the_source_finds_the_best_deployed_threshold():
    def chances(x):
        return 1.0 / (1.0 + np.exp(-15.0 * (x - 0.5)))

    rng = np.random.default_rng(0)
    x = rng.random(60_000)
    y = rng.random(60_000) < chances(x)
    thresholds = np.linspace(0.25, 0.75, 21)
    people = [UniformResponse(float(t), 0.2) for t in thresholds]
    weights = np.stack([person.weights(x) for person in people])
    losses = np.stack([(x >= t) != y for t in thresholds]).astype(float)
    found = reweighted_erm(weights, losses)
    exact = np.array([person.induced_error(chances) for person in people])
    assert found.risks == pytest.approx(exact, abs=0.01)
    assert exact[found.index] == pytest.approx(exact.min(), abs=0.002)
    assert found.mean_weights == pytest.approx(1.0, abs=0.01)
    assert np.all(found.effective_rows < 60_000)
    # The source-optimal threshold is another one.
    assert abs(thresholds[found.index] - 0.5) > 0.05


def test_negative_weights_are_refused_by_row():
    with pytest.raises(DataError, match="candidate 0, row 2") as error:
        reweighted_erm(np.array([[1.0, 1.0, -0.5]]), np.zeros((1, 3)))
    assert error.value.rows == (2,)


def test_candidates_whose_people_are_nowhere_are_refused():
    with pytest.raises(DataError, match=r"candidate\(s\) 1"):
        reweighted_erm(np.array([[1.0, 1.0], [0.0, 0.0]]), np.zeros((2, 2)))


@pytest.mark.parametrize("arguments", [(H[::-1], H, H), (H[:2], H[:2], H[:2]), (H, H[:5], H)])
def test_lines_that_are_none_are_refused(arguments):
    with pytest.raises(ParameterError):
        product_convexity(*arguments)


def test_shapes_must_agree():
    with pytest.raises(ParameterError, match="shape"):
        reweighted_erm(np.ones((2, 3)), np.ones((3, 2)))
