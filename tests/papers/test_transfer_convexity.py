"""Prop. D.1 of the transferability paper: when weight times loss is convex in the rule."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

H = np.linspace(0.0, 1.0, 201)


@dataclass(frozen=True)
class Convexity:
    """The conditions of Prop. D.1 along a line of rules, and what it concludes.

    That weights and losses are not negative the proposition needs and does not say.
    """

    not_negative: bool
    convex_weight: bool
    convex_loss: bool
    same_direction: bool
    product_convex: bool

    @property
    def guaranteed(self) -> bool:
        return self.not_negative and self.convex_weight and self.convex_loss and self.same_direction


def convexity(rules: np.ndarray, weight: np.ndarray, loss: np.ndarray) -> Convexity:
    apart = (weight[:, None] - weight) * (loss[:, None] - loss)
    return Convexity(
        not_negative=bool(weight.min() >= 0.0 and loss.min() >= 0.0),
        convex_weight=is_convex(rules, weight),
        convex_loss=is_convex(rules, loss),
        same_direction=bool(apart.min() >= -1e-9),
        product_convex=is_convex(rules, weight * loss),
    )


def is_convex(positions: np.ndarray, values: np.ndarray) -> bool:
    slopes = np.diff(values) / np.diff(positions)
    return bool(np.all(np.diff(slopes) >= -1e-9 * max(1.0, float(np.abs(slopes).max()))))


def test_the_example_of_the_paper_is_not_convex():
    """At a fixed person of label 1: w = 2h, loss (h - 1)^2 / 2, product h (h - 1)^2."""
    found = convexity(H, 2.0 * H, 0.5 * (H - 1.0) ** 2)
    assert (found.not_negative, found.convex_weight, found.convex_loss) == (True, True, True)
    assert not found.same_direction
    assert not found.guaranteed
    assert not found.product_convex


def test_for_label_zero_the_conditions_hold_and_the_product_is_convex():
    found = convexity(H, 2.0 * H, 0.5 * H**2)
    assert found.guaranteed
    assert found.product_convex


def test_the_proposition_needs_values_that_are_not_negative():
    """w = h^2 and loss h^2 - 1 satisfy everything that is printed; h^4 - h^2 is not convex."""
    line = np.linspace(-1.0, 1.0, 201)
    found = convexity(line, line**2, line**2 - 1.0)
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
        found = convexity(line, weight, loss)
        guaranteed += found.guaranteed
        assert found.product_convex or not found.guaranteed
    assert guaranteed > 100


def test_h_of_x_equal_x_is_not_the_least_squares_line():
    """The paper calls it the minimiser; it is 9/8 x through 0, and has slope 3/2 with intercept."""
    x = (np.arange(20_000) + 0.5) / 20_000
    y = (x >= 0.5).astype(float)
    assert np.sum(x * y) / np.sum(x * x) == pytest.approx(9.0 / 8.0, abs=1e-4)
    assert np.polyfit(x, y, 1)[0] == pytest.approx(1.5, abs=1e-4)
