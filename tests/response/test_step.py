"""The smoothed step: one function in torch, in NumPy and compiled, and its derivatives."""

import numpy as np
import torch

from countermove.response.step import (
    INFLECTION,
    bend,
    price_derivatives,
    price_rows,
    rise,
    smoothed_step,
    step,
)

Y = np.concatenate([np.linspace(-6.0, 6.0, 97), [-1e6, 1e6]])
SCORES = np.linspace(-3.0, 3.0, 41)


def test_the_step_goes_from_minus_one_to_one_and_is_odd():
    there = smoothed_step(torch.from_numpy(Y)).numpy()
    assert (np.diff(there[:-2]) > 0.0).all()
    assert (np.abs(there) <= 1.0).all()
    np.testing.assert_array_equal(there[:97], -there[96::-1])
    np.testing.assert_allclose(there[-2:], [-1.0, 1.0], atol=1e-11)


def test_compiled_and_torch_forms_and_their_derivatives_agree():
    y = torch.from_numpy(Y).requires_grad_()
    value = smoothed_step(y)
    (first,) = torch.autograd.grad(value.sum(), y, create_graph=True)
    (second,) = torch.autograd.grad(first.sum(), y)
    np.testing.assert_allclose([step(t) for t in Y], value.detach(), rtol=1e-14)
    np.testing.assert_allclose([rise(t) for t in Y], first.detach(), rtol=1e-9, atol=1e-14)
    np.testing.assert_allclose([bend(t) for t in Y], second, rtol=1e-7, atol=1e-13)


def test_the_slope_is_convex_up_to_the_inflection_and_concave_after_it():
    y = -INFLECTION + np.array([-1e-4, 0.0, 1e-4])
    left, middle, right = (bend(t) for t in y)
    assert left < middle > right


def by_difference(function, *arguments):
    h = 1e-6
    for k, value in enumerate(arguments):
        high, low = list(arguments), list(arguments)
        high[k], low[k] = value + h, value - h
        yield (function(*high) - function(*low)) / (2.0 * h)


def test_price_derivatives_are_those_of_the_two_price_equations():
    def price(sharpness, score):
        return price_rows(float(sharpness), np.broadcast_to(score, SCORES.shape).copy())[0]

    by_sharpness, by_score = by_difference(price, 1.7, SCORES)
    parts = price_derivatives(1.7, SCORES, SCORES[::-1], False)
    np.testing.assert_allclose(parts.by_score, by_score, atol=1e-8)
    np.testing.assert_allclose(parts.by_sharpness, by_sharpness, atol=1e-8)
    assert not parts.by_last.any()

    def proxy(sharpness, score, last):
        up, down = sharpness * last + 1.0, sharpness * score - 1.0
        return 0.5 * sharpness * (up / np.hypot(1.0, up) - down / np.hypot(1.0, down))

    last = SCORES[::-1] * 0.5
    by_sharpness, by_score, by_last = by_difference(proxy, 1.7, SCORES, last)
    parts = price_derivatives(1.7, SCORES, last, True)
    np.testing.assert_allclose(parts.by_score, by_score, atol=1e-8)
    np.testing.assert_allclose(parts.by_last, by_last, atol=1e-8)
    np.testing.assert_allclose(parts.by_sharpness, by_sharpness, atol=1e-8)
