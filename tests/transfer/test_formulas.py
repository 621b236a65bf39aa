"""No deterministic bound is ever broken where every term of it is known exactly."""

from __future__ import annotations

import numpy as np
import pytest

from countermove.errors import ParameterError
from countermove.transfer import formulas

from .populations import (
    CELLS,
    Populations,
    covariate_shift,
    divergence,
    random,
    target_shift,
    weight_variance,
    with_favourable,
)

CASES = 4000
ROUNDING = 1e-12


@pytest.fixture
def rng():
    return np.random.default_rng(3)


@pytest.fixture
def source(rng):
    return random(rng, CASES)


@pytest.fixture
def thresholds(rng):
    return rng.integers(0, CELLS + 1, size=(2, CASES))


def source_optimal(source):
    return source.errors().argmin(axis=1)


def joint_error(one, other):
    return (one.errors() + other.errors()).min(axis=1)


def holds(difference, bound):
    assert np.all(difference <= bound + ROUNDING)


def test_theorem_3_1(rng, source, thresholds):
    induced = random(rng, CASES)
    bound = formulas.theorem_3_1(
        source.error(thresholds[0]), joint_error(source, induced), divergence(source, induced)
    )
    holds(induced.error(thresholds[0]), bound)


def test_theorem_3_2_and_its_solved_form(rng, thresholds):
    own, best = random(rng, CASES), random(rng, CASES)
    at, other = thresholds
    terms = best.error(at), joint_error(own, best), divergence(own, best)
    holds(own.error(at) - best.error(other), formulas.theorem_3_2(own.error(at), *terms))
    holds(own.error(at), formulas.theorem_3_2_solved(best.error(other), *terms))


def test_theorem_3_3_and_corollary_3_4(rng, source, thresholds):
    induced = random(rng, CASES)
    at = thresholds[0]
    larger = np.maximum(source.error(at), induced.error(at))
    shares = source.favourable, induced.favourable
    value = formulas.theorem_3_3(*shares, source.accepted(at), induced.accepted(at))
    assert (value > 0.01).any()
    assert np.all(value >= 0)
    holds(value, larger)
    variation = 0.5 * np.abs(source.mass.sum(axis=2) - induced.mass.sum(axis=2)).sum(axis=1)
    weaker = formulas.corollary_3_4(*shares, variation)
    holds(weaker, value)


def test_theorem_4_2_for_the_source_optimal_rule(rng, source, thresholds):
    own, best = (covariate_shift(rng, source, strength) for strength in (0.6, 0.6))
    at, other = source_optimal(source), thresholds[1]
    variances = weight_variance(source, own), weight_variance(source, best)
    loss = own.error(at) - best.error(other)
    printed = formulas.theorem_4_2(source.error(other), *variances)
    tighter = formulas.theorem_4_2_tighter(source.error(at), source.error(other), *variances)
    holds(loss, tighter)
    holds(tighter, printed)


def test_tighter_theorem_4_2_needs_no_optimal_rule_and_the_printed_one_does(
    rng, source, thresholds
):
    own, best = (covariate_shift(rng, source, strength) for strength in (0.3, 0.3))
    at, other = thresholds
    variances = weight_variance(source, own), weight_variance(source, best)
    loss = own.error(at) - best.error(other)
    holds(loss, formulas.theorem_4_2_tighter(source.error(at), source.error(other), *variances))
    assert np.any(loss > formulas.theorem_4_2(source.error(other), *variances) + 0.05)


def test_coarser_weights_never_loosen_the_bound(source, rng):
    """Two cells of a label joined: the variance of the weights falls."""
    induced = covariate_shift(rng, source, 1.0)
    joined = [
        Populations(p.mass.reshape(CASES, CELLS // 2, 2, 2).sum(axis=2)) for p in (source, induced)
    ]
    fine, coarse = weight_variance(source, induced), weight_variance(*joined)
    assert np.all(coarse <= fine + ROUNDING)


def test_assumptions_of_theorem_4_6_are_what_the_paper_integrates(rng, source, thresholds):
    """Four shares say as much as the paper's integrals over w >= 1 and w < 1."""
    induced = covariate_shift(rng, source, 1.0)
    at = thresholds[0]
    weight = induced.mass.sum(axis=2) / source.mass.sum(axis=2)
    up = weight >= 1
    accepted = (np.arange(CELLS) >= at[:, None]) * source.mass.sum(axis=2)
    margins = formulas.assumptions_4_3_to_4_5(
        source.favourable, induced.favourable, source.accepted(at), induced.accepted(at)
    )
    for margin, part in zip(margins[:2], (source.mass[:, :, 1], accepted), strict=True):
        rising = np.abs((part * (1 - weight) * up).sum(axis=1))
        falling = np.abs((part * (1 - weight) * ~up).sum(axis=1))
        clear = np.abs(rising - falling) > 1e-9
        assert np.array_equal((rising >= falling)[clear], (margin >= 0)[clear])
    covariance = ((source.mass[:, :, 1] - accepted) * (weight - 1)).sum(axis=1)
    assert np.allclose(covariance, margins[2], atol=1e-12)


def test_theorem_4_6_is_positive_under_its_assumptions(rng, source, thresholds):
    induced = covariate_shift(rng, source, 1.0)
    at = thresholds[0]
    shares = source.favourable, induced.favourable, source.accepted(at), induced.accepted(at)
    first, second, third = formulas.assumptions_4_3_to_4_5(*shares)
    met = (first >= 0) & (second >= 0) & (third > 1e-12)
    value = formulas.theorem_4_6(*shares)
    assert met.sum() > 100
    assert np.all(value[met] > 0)
    holds(value, np.maximum(source.error(at), induced.error(at)))


def test_proposition_4_7_with_its_factor(rng):
    """People as Setups 1 to 4 describe them: uniform, weights as Lemma A.3 has them."""
    budget, n, cells = 0.2, 2000, 100
    x = (np.arange(cells) + 0.5) / cells
    chance = rng.random((n, cells))
    chance = np.where(rng.random((n, 1)) < 0.5, np.sort(chance, axis=1), chance)

    def errors(threshold):
        wrong = np.where(x >= threshold[:, None], 1 - chance, chance)
        away = (x - threshold[:, None]) / budget
        weight = np.where((away < 0) & (away >= -1), -away, 1.0)
        weight = np.where((away >= 0) & (away < 1), 2.0 - away, weight)
        return wrong.mean(axis=1), (weight * wrong).mean(axis=1), weight.var(axis=1)

    grid = np.linspace(budget, 1 - budget, 13)
    on_source = np.stack([errors(np.full(n, t))[0] for t in grid])
    _, own, variance = errors(grid[on_source.argmin(axis=0)])
    assert np.allclose(variance, 2 * budget / 3, atol=0.01)
    source_best, best, _ = errors(rng.choice(grid, n))
    holds(own - best, formulas.proposition_4_7(source_best, budget))
    assert formulas.proposition_4_7(0.3, 0.2) == pytest.approx(np.sqrt(8 * 0.2 * 0.3 / 3))


def test_theorem_5_1_for_the_source_optimal_rule(rng, source, thresholds):
    own, best = target_shift(rng, source), target_shift(rng, source)
    at, other = source_optimal(source), thresholds[1]
    loss = own.error(at) - best.error(other)
    shares = source.favourable, own.favourable, best.favourable
    rates, others = source.rates(at), source.rates(other)
    printed = formulas.theorem_5_1(*shares, rates[0] - others[0], rates[1] - others[1])
    sharper = formulas.theorem_5_1_sharper(*shares, rates, others)
    holds(loss, sharper)
    holds(sharper, printed)
    assert sharper.mean() < 0.5 * printed.mean()


def test_sharper_theorem_5_1_needs_no_optimal_rule(rng, source, thresholds):
    own, best = target_shift(rng, source), target_shift(rng, source)
    at, other = thresholds
    loss = own.error(at) - best.error(other)
    shares = source.favourable, own.favourable, best.favourable
    holds(loss, formulas.theorem_5_1_sharper(*shares, source.rates(at), source.rates(other)))


def test_theorem_5_2(rng, source, thresholds):
    induced = target_shift(rng, source)
    at = thresholds[0]
    value = formulas.theorem_5_2(source.favourable, induced.favourable, *source.rates(at))
    holds(value, np.maximum(source.error(at), induced.error(at)))


def test_proposition_5_3_holds_as_a_sum_and_not_as_the_printed_product(source, thresholds):
    shares, facts = [], []
    for at in thresholds:
        error, (true, _) = source.error(at), source.rates(at)
        p = source.favourable * true / (1 - error)
        shares.append(with_favourable(source, np.clip(p, 0, 1)).favourable)
        facts.append((error, true))
    (error, true), (other_error, other_true) = facts
    apart = np.abs(shares[0] - shares[1])
    bound = formulas.proposition_5_3(source.favourable, error, other_error, true, other_true)
    holds(apart, bound)
    product = source.favourable * np.abs(error - other_error) * np.abs(true - other_true)
    product /= (1 - error) * (1 - other_error)
    assert np.mean(apart > product + 1e-9) > 0.5


@pytest.mark.parametrize(
    ("call", "named"),
    [
        (lambda: formulas.theorem_3_1(1.2, 0.1, 0.1), "error_source"),
        (lambda: formulas.theorem_3_3(0.5, -0.1, 0.5, 0.5), "label_induced"),
        (lambda: formulas.theorem_4_2(0.1, -1.0, 0.0), "variance_own"),
        (lambda: formulas.theorem_5_2(0.5, 0.5, float("nan"), 0.5), "true_positive_rate"),
        (lambda: formulas.proposition_5_3(0.5, 1.0, 0.5, 0.5, 0.5), "always wrong"),
    ],
)
def test_shares_that_are_none_are_refused_by_name(call, named):
    with pytest.raises(ParameterError, match=named):
        call()
